#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Passes when a source is refused by the compiler for the reason it names.

    must_not_compile.py CASE.cpp COMPILER [FLAG...]

A case says in a comment line of its own what the compiler must say, as a regular expression:

    // expect: this allocator cannot free one block

It is compiled twice: as it is, which must fail with that message, and with QUARRY_CONTROL
defined, which must succeed. The control keeps the case honest: apart from what stands under
`#ifndef QUARRY_CONTROL` the source is sound, so nothing else makes it fail.
"""
import os
import re
import subprocess
import sys

EXPECT = re.compile(r"^//[ \t]*expect:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)


def compile_only(source, command):
    """Returns (whether it compiled, what the compiler said)."""
    environment = dict(os.environ, LC_ALL="C")
    done = subprocess.run([*command, "-fsyntax-only", source], env=environment,
                          capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout + done.stderr


def fault(source, command):
    """Returns what is wrong with the case, or None."""
    with open(source, encoding="utf-8") as file:
        expected = EXPECT.findall(file.read())
    if len(expected) != 1:
        return f"{source}: needs one line '// expect: REGEX', has {len(expected)}"
    compiled, said = compile_only(source, [*command, "-DQUARRY_CONTROL"])
    if not compiled:
        return f"{source}: does not compile with QUARRY_CONTROL:\n{said}"
    compiled, said = compile_only(source, command)
    if compiled:
        return f"{source}: compiles, but must not (expected: {expected[0]})"
    if not re.search(expected[0], said):
        return f"{source}: is refused, but not with '{expected[0]}':\n{said}"
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
