#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Passes if the compiler rejects a source for the reason that the source names.

    must_not_compile.py CASE.cpp COMPILER [FLAG...]

A source contains one comment line with a regular expression that must match the compiler's message:

    // expect: this allocator cannot free one block

The source is compiled twice. As it is, the compilation must fail with that message. With
QUARRY_CONTROL defined, it must succeed, which shows that only the code under
`#ifndef QUARRY_CONTROL` makes it fail.
"""
import os
import re
import subprocess
import sys

EXPECT = re.compile(r"^//[ \t]*expect:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)


def compile_only(source, command):
    """Returns (whether the source compiled, the messages of the compiler)."""
    environment = dict(os.environ, LC_ALL="C")
    done = subprocess.run([*command, "-fsyntax-only", source], env=environment,
                          capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout + done.stderr


def fault(source, command):
    """Returns a description of the failure, or None."""
    with open(source, encoding="utf-8") as file:
        expected = EXPECT.findall(file.read())
    if len(expected) != 1:
        return f"{source}: needs one line '// expect: REGEX', has {len(expected)}"
    compiled, messages = compile_only(source, [*command, "-DQUARRY_CONTROL"])
    if not compiled:
        return f"{source}: does not compile with QUARRY_CONTROL:\n{messages}"
    compiled, messages = compile_only(source, command)
    if compiled:
        return f"{source}: compiles, but must not (expected: {expected[0]})"
    if not re.search(expected[0], messages):
        return f"{source}: is rejected, but not with '{expected[0]}':\n{messages}"
    return None


def main():
    if len(sys.argv) < 3:
        print("usage: must_not_compile.py CASE.cpp COMPILER [FLAG...]", file=sys.stderr)
        return 2
    found = fault(sys.argv[1], sys.argv[2:])
    if found:
        print(found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
