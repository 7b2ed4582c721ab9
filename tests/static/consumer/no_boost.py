#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles a program with a bare compiler command and checks that it reads no header of Boost.

    no_boost.py SOURCE OUTPUT COMPILER [FLAG...]

The compiler lists the files that it reads (-MD). The test fails if the compiler fails, or if a path
in that list contains a folder boost/.
"""
import re
import subprocess
import sys

BOOST = re.compile(r"\S*/boost/\S*")


def boost_headers(dependencies):
    """Returns the headers of Boost in a dependency list of a compiler."""
    return BOOST.findall(dependencies)


def main():
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    source, output, *command = sys.argv[1:]
    listing = output + ".d"
    done = subprocess.run([*command, "-MD", "-MF", listing, "-o", output, source], check=False)
    if done.returncode != 0:
        print(f"{source}: does not compile with {' '.join(command)}")
        return 1
    with open(listing, encoding="utf-8") as file:
        dependencies = file.read()
    if "quarry/" not in dependencies:
        print(f"{listing}: lists no header of Quarry, so the check is void")
        return 1
    found = boost_headers(dependencies)
    for header in found:
        print(f"{source}: reads {header}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
