#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles a program of the README as it is printed there.

    readme_program.py README HEADER SOURCE COMPILER [ARGUMENT...]

The program is the C++ block that includes HEADER and has a main function. It is written to SOURCE,
and COMPILER is called with the arguments and SOURCE. Exit code: that of the compiler; 2 if the
README has no such program.
"""

import re
import subprocess
import sys


def main() -> int:
    readme, header, source, *compiler = sys.argv[1:]
    with open(readme, encoding="utf-8") as file:
        blocks = re.findall(r"^```cpp\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
    programs = [b for b in blocks if f"#include <{header}>" in b and "int main(" in b]
    if len(programs) != 1:
        print(f"{readme} has {len(programs)} programs that include {header}", file=sys.stderr)
        return 2
    with open(source, "w", encoding="utf-8") as file:
        file.write(programs[0])
    return subprocess.run([*compiler, source], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
