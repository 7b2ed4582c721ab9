#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles warp_bump.cu and compares the library's kernel with one that is written by hand.

The library's kernel must not need more registers, and must contain the same atomic instructions.
The comparison uses SASS if cuobjdump is installed, and PTX otherwise.
"""
import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

KERNELS = ("through_the_library", "by_hand")


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def registers(report):
    found = re.findall(r"Compiling entry function '(\w+)'.*?Used (\d+) registers", report, re.S)
    return {name: int(count) for name, count in found}


def bodies(listing, start):
    """Returns the text of each kernel in a listing. `start` matches the first line of a kernel."""
    parts = re.split(start, listing)
    return {name: body for name, body in zip(parts[1::2], parts[2::2]) if name in KERNELS}


def ptx_atomics(body):
    # State space and memory order are implicit in one notation and explicit in the other.
    body = body.split("\n}")[0]
    found = re.findall(r"\b(?:atom|red)\.([\w.]+)", body)
    implicit = ("global", "relaxed", "gpu")
    kept = [".".join(p for p in op.split(".") if p not in implicit) for op in found]
    return collections.Counter(re.sub(r"\.[bus](32|64)$", r".\1", op) for op in kept)


def sass_atomics(body):
    return collections.Counter(re.findall(r"\b((?:ATOMG?|REDG?)\.[\w.]+)", body))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nvcc", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--arch", default="sm_90")
    args = parser.parse_args()
    source = pathlib.Path(__file__).with_name("warp_bump.cu")
    flags = [args.nvcc, "-std=c++20", "--extended-lambda", f"-arch={args.arch}",
             "-I", args.include, source]
    with tempfile.TemporaryDirectory() as folder:
        cubin = pathlib.Path(folder, "warp_bump.cubin")
        count = registers(run(*flags, "-cubin", "-Xptxas", "-v", "-o", cubin))
        cuobjdump = shutil.which("cuobjdump") or shutil.which(
            "cuobjdump", path=str(pathlib.Path(args.nvcc).parent))
        if cuobjdump:
            kind, atomics = "SASS", sass_atomics
            code = bodies(run(cuobjdump, "--dump-sass", cubin), r"Function : (\w+)")
        else:
            ptx = pathlib.Path(folder, "warp_bump.ptx")
            run(*flags, "-ptx", "-o", ptx)
            kind, atomics = "PTX", ptx_atomics
            code = bodies(ptx.read_text(), r"\.entry (\w+)\(")
    issued = {name: atomics(code[name]) for name in KERNELS}
    library, hand = KERNELS
    for name in KERNELS:
        print(f"{name}: {count[name]} registers, atomics in {kind}: {dict(issued[name])}")
    if not issued[hand]:
        sys.exit("no atomic instruction was found in the listing")
    if count[library] > count[hand]:
        sys.exit("the library's kernel takes more registers than the one written by hand")
    if issued[library] != issued[hand]:
        sys.exit("the two kernels issue different atomics")
    print("the library costs nothing here")


if __name__ == "__main__":
    main()
