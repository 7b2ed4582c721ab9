#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles and links kernels.cu with relocatable device code, and checks the kernels' registers.

ptxas and nvlink check the kernels with launch bounds. All kernels may have at most 64 registers, so
that blocks of 1,024 threads start. Exit code 77: this nvcc cannot bound the registers of functions.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

MOST = 64  # of the 65,536 registers of a multiprocessor, for 1,024 threads


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nvcc", required=True)
    parser.add_argument("--include", required=True)
    args = parser.parse_args()
    source = pathlib.Path(__file__).with_name("kernels.cu")
    target = [args.nvcc, "-arch=sm_90"]
    with tempfile.TemporaryDirectory() as folder:
        empty = pathlib.Path(folder, "empty.cu")
        empty.touch()
        if "__local_maxnreg__" not in run(*target, "-E", "-Xcompiler", "-dM", empty):
            print("this nvcc has no __local_maxnreg__")
            sys.exit(77)
        cubin = pathlib.Path(folder, "kernels.cubin")
        run(*target, "-std=c++20", "-rdc=true", "-cubin", "-I", args.include, source, "-o", cubin)
        report = run(*target, "-dlink", "-Xnvlink", "-v", cubin, "-o",
                     pathlib.Path(folder, "linked.o"))
    found = re.findall(r"Function properties for '(\w+)':.*?used (\d+) registers", report, re.S)
    for name, count in found:
        print(f"{count} registers: {name}")
    if not found:
        sys.exit(f"no kernels were found in the report of nvlink:\n{report}")
    if any(int(count) > MOST for _, count in found):
        sys.exit(f"a kernel has more than {MOST} registers")


if __name__ == "__main__":
    main()
