#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a header includes only headers of its own folder and of folders before it.

    layering.py INCLUDE/quarry

Headers directly in the root are umbrellas: they may include everything, and nothing in a
folder may include them. Exit code 0: sound. 1: broken, one line for each include at fault.
"""
import pathlib
import re
import sys

ORDER = ["simt", "core", "pool", "layer", "heap", "check", "region", "cluster"]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def included(root, header):
    """Yields (line number, path below root) for each include of a Quarry header."""
    text = header.read_text(encoding="utf-8")
    for match in INCLUDE.finditer(text):
        quote, name = match.groups()
        line = text.count("\n", 0, match.start(2)) + 1
        beside = (header.parent / name).resolve()
        if name.startswith(root.name + "/"):
            yield line, pathlib.PurePath(name).relative_to(root.name)
        elif quote == '"' and beside.is_relative_to(root):
            yield line, beside.relative_to(root)


def folder_of(path):
    return path.parts[0] if len(path.parts) > 1 else None


def faults(root):
    root = pathlib.Path(root).resolve()
    for header in sorted(root.rglob("*.hpp")):
        here = header.relative_to(root)
        folder = folder_of(here)
        if folder is None:
            continue
        if folder not in ORDER:
            yield f"{here}: folder {folder}/ has no place in the order {' '.join(ORDER)}"
            continue
        for line, target in included(root, header):
            other = folder_of(target)
            if other is None:
                yield f"{here}:{line}: includes the umbrella header {target}"
            elif other not in ORDER:
                yield f"{here}:{line}: includes {target}, whose folder has no place in the order"
            elif ORDER.index(other) > ORDER.index(folder):
                yield f"{here}:{line}: {folder}/ may not include {target}"


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1]).is_dir():
        print("usage: layering.py INCLUDE/quarry", file=sys.stderr)
        return 2
    found = list(faults(sys.argv[1]))
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
