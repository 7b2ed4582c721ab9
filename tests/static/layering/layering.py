#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every #include of the tree against the layers in layers.txt.

    layering.py ROOT [LAYERS]      LAYERS: layers.txt beside this script, unless named

Exit code 0: every include is allowed. 1: one line for each include that is not, for each source
file outside all layers, and for each layer that does not exist. 2: layers.txt itself is wrong (a
cycle, an unknown name, a line that cannot be read).
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
SOURCES = {".hpp", ".h", ".cpp", ".cu", ".c"}
# The folders that quoted and angle-bracket includes are resolved against, in this order.
SEARCHED = ["include", ".", "tools", "src"]
CHECKED = ["include/quarry", "src", "apps", "tools", "bench", "examples"]
UMBRELLA = "include/quarry"


class LayersError(Exception):
    """layers.txt cannot be used."""


def read_layers(text):
    """Returns {layer: set of layers it may include, itself included}; raises LayersError."""
    direct = {}
    name = None
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#", 1)[0].rstrip()
        if not line:
            continue
        if line[0].isspace() and name:
            direct[name] += line.split()
            continue
        line = line.strip()
        name, colon, rest = line.partition(":")
        if not colon or not name or " " in name:
            raise LayersError(f"line {number}: expected 'LAYER: LAYER...', found '{line}'")
        if name in direct:
            raise LayersError(f"line {number}: layer {name} is defined twice")
        direct[name] = rest.split()
    for name, below in direct.items():
        for other in below:
            if other not in direct:
                raise LayersError(f"layer {name} names an unknown layer: {other}")

    closed = {}

    def close(name, path):
        if name in path:
            raise LayersError("cycle: " + " -> ".join([*path[path.index(name):], name]))
        if name not in closed:
            reached = {name}
            for other in direct[name]:
                reached |= close(other, [*path, name])
            closed[name] = reached
        return closed[name]

    for name in direct:
        close(name, [])
    return closed


def layer_of(path, layers):
    """Returns the innermost layer that holds the file, or None.

    The umbrella layer holds the files directly in its folder only.
    """
    for folder in path.parents:
        name = folder.as_posix()
        if name == UMBRELLA and path.parent.as_posix() != UMBRELLA:
            return None
        if name in layers:
            return name
    return None


def included(root, source):
    """Yields (line number, path below root) for each include of a file of this tree."""
    text = (root / source).read_text(encoding="utf-8")
    for match in INCLUDE.finditer(text):
        quote, name = match.groups()
        line = text.count("\n", 0, match.start(2)) + 1
        places = [root / folder / name for folder in SEARCHED]
        if quote == '"':
            places.insert(0, root / source.parent / name)
        for place in places:
            if place.is_file() and place.resolve().is_relative_to(root):
                yield line, place.resolve().relative_to(root)
                break


def faults(root, layers):
    root = pathlib.Path(root).resolve()
    for layer in layers:
        if not (root / layer).is_dir():
            yield f"layers.txt names {layer}, which is not a folder"
    for folder in CHECKED:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SOURCES or not path.is_file():
                continue
            source = path.relative_to(root)
            layer = layer_of(source, layers)
            if layer is None:
                yield f"{source}: the file is in no layer of layers.txt"
                continue
            for line, target in included(root, source):
                other = layer_of(target, layers)
                if other is None and any(target.is_relative_to(f) for f in CHECKED):
                    yield f"{source}:{line}: includes {target}, which is in no layer of layers.txt"
                elif other is not None and other not in layers[layer]:
                    yield f"{source}:{line}: {layer} may not include {target} ({other})"


def main():
    if len(sys.argv) not in (2, 3) or not pathlib.Path(sys.argv[1]).is_dir():
        print("usage: layering.py ROOT [LAYERS]", file=sys.stderr)
        return 2
    file = sys.argv[2] if len(sys.argv) == 3 else pathlib.Path(__file__).with_name("layers.txt")
    try:
        layers = read_layers(pathlib.Path(file).read_text(encoding="utf-8"))
    except (OSError, LayersError) as problem:
        print(f"layering.py: {file}: {problem}", file=sys.stderr)
        return 2
    found = list(faults(sys.argv[1], layers))
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
