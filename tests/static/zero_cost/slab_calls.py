#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the functions that a kernel with one malloc and one free of the default heap calls.

In the default heap one lane acts for its warp. On an H200 the lanes of a warp did not always
reconverge after a function call by a single lane (docs/design/slab.md). So a kernel may call three
kinds of functions out of line: functions that each lane calls for itself, functions that all active
lanes call together, and the function that one lane calls last in free, when no other lane waits.
"""
import argparse
import pathlib
import re
import sys
import tempfile

from compare import run

ALLOWED = ["free_large", "give_up_last", "malloc_large", "malloc_late"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nvcc", required=True)
    parser.add_argument("--include", required=True)
    args = parser.parse_args()
    source = pathlib.Path(__file__).with_name("slab_calls.cu")
    with tempfile.TemporaryDirectory() as folder:
        ptx = pathlib.Path(folder, "slab_calls.ptx")
        run(args.nvcc, "-std=c++20", "--extended-lambda", "-arch=sm_90", "-ptx",
            "-I", args.include, source, "-o", ptx)
        kernel = ptx.read_text().split(".visible .entry", 1)[1].split("\n}", 1)[0]
    called = re.findall(r"call(?:\.uni)?\s[^;]*?(_Z\w+)", kernel)
    members = [re.search(r"EEEE\d+([a-z_]+)E|\d+index_set\d+([a-z_]+)E", name) for name in called]
    names = sorted(m.group(1) or m.group(2) if m else name for m, name in zip(members, called))
    print(f"called: {', '.join(names)}")
    if names != ALLOWED:
        sys.exit(f"expected: {', '.join(ALLOWED)}")


if __name__ == "__main__":
    main()
