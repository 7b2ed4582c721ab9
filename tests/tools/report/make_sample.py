#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes MADE-UP records of every kind for the tests of quarry report. No value was measured.

usage: make_sample.py > sample.jsonl
"""
import json
import math
import random

ALLOCATORS = ["Quarry", "AtomicMalloc", "AtomicMalloc-warp", "AWMalloc", "AWMalloc-warp",
              "CudaMalloc",
              "CudaMalloc-warp", "CMalloc", "CMalloc-warp", "CFMalloc", "CFMalloc-warp", "CMMalloc",
              "CMMalloc-warp", "CFMMalloc", "CFMMalloc-warp", "ScatterAlloc", "ScatterAlloc-warp",
              "XMalloc",
              "FDGMalloc", "Imaginary"]
GPU = {"backend": "cuda", "device": "Imaginary GPU (made up)", "driver": "1.2.3", "cuda": "13.0",
       "compiler": "nvcc 13.0.0", "commit": "0123456789ab", "date": "2026-01-02T03:04:05Z"}
CPU = {"backend": "cpu", "device": "Imaginary CPU, 2 threads (made up)", "driver": "", "cuda": "",
       "compiler": "g++ 12.2.0", "commit": "0123456789ab-dirty", "date": "2026-01-03T03:04:05Z"}
chance = random.Random(7)


def put(**line):
    print(json.dumps(line, ensure_ascii=False))


def experiment(name, title, x, y, **more):
    put(kind="experiment", id=name, title=title, x=x, y=y, **more)


def spread(name, value):
    """A median with least and most around it."""
    if value is None:
        return {name: None, "min_" + name: None, "max_" + name: None}
    return {name: round(value, 5), "min_" + name: round(value * chance.uniform(0.9, 1), 5),
            "max_" + name: round(value * chance.uniform(1, 1.2), 5)}


def point(where, name, allocator, x, outcome="ok", series=None, **fields):
    line = {"kind": "point", "experiment": name, "allocator": allocator, "series": series
            or allocator, "x": x,
            "command": f"quarry bench --backend {where['backend']} --experiments {name} "
            f"--allocators {allocator}",
            **where, "outcome": outcome, "note": "", "repeats": 5, "failures": 0, "corrupt": 0,
            "misaligned": 0}
    line.update(fields)
    put(**line)


def base(number):
    """Allocators differ by powers of ten."""
    return 0.03 * 10 ** (4.2 * number / len(ALLOCATORS))


def sizes():
    experiment("sizes", "Every lane allocates one block", {"name": "block size", "unit": "B",
                                                           "scale": "log"},
               [{"field": "ms", "name": "time to allocate", "unit": "ms", "scale": "log"},
                {"field": "free_ms", "name": "time to free", "unit": "ms", "scale": "log"},
                {"field": "atomics_per_call", "name": "atomics a call", "scale": "linear"}],
               source="Example 2026, Figure 1 (made up)", form="lines",
               note="Made-up figures: </script> & \"quotes\" in a note do no harm.")
    for where in (GPU, CPU):
        for number, name in enumerate(ALLOCATORS):
            frees = not name.startswith(("Atomic", "AW"))
            for power in range(4, 14):
                size = 2 ** power
                gpu = where is GPU
                ms = base(number) * (1 + size / 2000) * (1 if gpu else 20) * chance.uniform(0.9,
                        1.1)
                fields = {**spread("ms", ms), **spread("free_ms", ms / 3 if frees else None),
                          "atomics_per_call": None if gpu else round(1 + number / 7, 3),
                          "values": []}
                outcome = "ok"
                if gpu and name == "CMalloc" and size >= 4096:
                    outcome = "timed out"
                    fields = {"ms": None, "note": "20 s"}
                if gpu and name == "CFMalloc" and size == 8192:
                    outcome = "crashed"
                    fields = {"ms": None, "note": "signal 11"}
                if name == "AWMalloc" and size == 8192:
                    outcome = "skipped"
                    fields = {"ms": None, "note": "it would overwrite its own blocks"}
                if gpu and name == "ScatterAlloc" and size == 64:
                    fields["corrupt"] = 12
                if gpu and name == "CMalloc-warp" and size in (16, 32):
                    fields["misaligned"] = 3
                if name == "FDGMalloc" and size == 8192:
                    fields["failures"] = 4096
                point(where, "sizes", name, size, outcome, **fields)


def lanes():
    experiment("lanes", "malloc and free by some lanes of each warp",
               {"name": "working lanes a warp", "unit": "", "scale": "log"},
               [{"field": "ms", "name": "time", "unit": "ms", "scale": "log"}],
               source="Example 2026, Figure 2 (made up)")
    for series, allocator, factor in (("XMalloc, 4 FIFOs", "XMalloc", 1), ("XMalloc, 16 FIFOs",
            "XMalloc", 0.8),
                                      ("CudaMalloc", "CudaMalloc", 30), ("Quarry", "Quarry", 0.4)):
        for x in (1, 2, 4, 8, 16, 32):
            point(GPU, "lanes", allocator, x, series=series, **spread("ms", factor * (2 + x / 3)))


def churn():
    experiment("churn", "malloc, write, free, over and over", {"name": "", "unit": "",
            "scale": "category"},
               [{"field": "ms", "name": "time", "unit": "ms", "scale": "log"}], form="bars")
    for number, name in enumerate(ALLOCATORS):
        if name.startswith("Atomic"):
            point(GPU, "churn", name, "", "skipped", ms=None, note="frees no single block")
        elif name == "ScatterAlloc-warp":
            point(GPU, "churn", name, "", "failed", ms=None, note="the heap's metadata is wrong")
        else:
            point(GPU, "churn", name, "", **spread("ms", base(number) * 7))


def phases():
    experiment("graph", "A graph that changes", {"name": "phase", "unit": "", "scale": "category"},
               [{"field": "ms", "name": "time", "unit": "ms", "scale": "linear"}], form="bars",
               source="Example 2026, Figure 3 (made up)")
    for number, name in enumerate(("Quarry", "CudaMalloc", "ScatterAlloc", "XMalloc")):
        for k, phase in enumerate(("initialisation", "update", "focused update", "expansion")):
            point(GPU, "graph", name, phase, **spread("ms", 3 + 2 * number + k))


def scenes():
    experiment("kd-tree", "kd-tree build", {"name": "scene", "unit": "", "scale": "category"},
               [{"field": "triangles", "name": "triangles", "unit": "", "scale": "linear"},
                {"field": "build_ms", "name": "build", "unit": "ms", "scale": "linear"},
                {"field": "slowdown", "name": "slowdown", "unit": "", "scale": "linear"}],
               form="table", source="Example 2026, Table 1 (made up)")
    for scene, triangles in (("hare", 69451), ("teapot", 6320)):
        for number, name in enumerate(("AtomicMalloc", "CFMalloc", "ScatterAlloc")):
            point(GPU, "kd-tree", name, scene, triangles=triangles, **spread("build_ms",
                    triangles / 5000 * (1 + number)),
                  slowdown=1 + number)


def fill_level():
    experiment("fill-level", "Cost against how full the pool is", {"name": "pool full",
            "unit": "%", "scale": "linear"},
               [{"field": "us", "name": "a call", "unit": "µs", "scale": "linear"}])
    for number, name in enumerate(("Quarry", "CFMMalloc", "ScatterAlloc")):
        for x in (0, 10, 25, 50, 75, 90, 95, 99):
            point(GPU, "fill-level", name, x, us=round(0.4 + number * 0.3 + 4 ** (x / 50) / 8, 4))


def use():
    experiment("use", "Utilisation while sizes drift", {"name": "", "unit": "",
                                                        "scale": "category"},
               [{"field": "values", "name": "utilisation", "unit": "", "scale": "linear",
                 "better": "more",
                 "x": {"name": "second", "unit": "s"}}])
    for number, name in enumerate(("Quarry", "CFMMalloc", "XMalloc")):
        curve = [round(0.9 - 0.1 * number * (1 - math.exp(-i / 20)) + 0.01 * math.sin(i / 3), 4)
                 for i in range(60)]
        point(GPU, "use", name, "", values=curve)


def alloc():
    experiment("alloc", "Every lane allocates once", {"name": "block size", "unit": "B",
                                                      "scale": "log"},
               [{"field": "ms", "name": "time to allocate", "unit": "ms", "scale": "log"},
                {"field": "free_ms", "name": "time to free", "unit": "ms", "scale": "log"}],
               source="Example 2026 (made up)")
    for name in ("Quarry", "CFMMalloc"):
        for size in (16, 256):
            point(GPU, "alloc", name, size, **spread("ms", size / 100), **spread("free_ms", None))


def clusters():
    """What `quarry cluster` writes."""
    where = {"backend": "simulated network", "device": "", "outcome": "ok"}
    experiment("cluster-scaling", "Cost of a call against the number of workers",
               {"name": "workers", "scale": "log"},
               [{"field": "call_us", "name": "waiting time of a worker per call", "unit": "µs",
                 "scale": "log"},
                {"field": "queue_us", "name": "queueing time of a message", "unit": "µs",
                 "scale": "log"},
                {"field": "messages_per_call", "name": "messages per call", "better": "less"},
                {"field": "busiest_share", "name": "fraction of messages at the busiest scheduler",
                 "better": "none"}])
    for workers in (1, 8, 64):
        for tree in ("one scheduler", "tree"):
            put(kind="point", experiment="cluster-scaling", series=tree, x=workers, **where,
                command="quarry cluster scaling", call_us=6 + (workers if tree != "tree" else 0),
                queue_us=0.0 if workers == 1 else 0.1 * workers, messages_per_call=2.0,
                busiest_share=1.0)
    experiment("cluster-barnes-hut", "barnes-hut: time of a worker by activity",
               {"name": "workers (schedulers)", "scale": "category"},
               [{"field": "mean_seconds", "name": "mean time of a worker", "unit": "s"}],
               form="layers")
    for workers in (1, 2, 4):
        for name, seconds in (("computation", 4 / workers), ("worker communication", 0.1 * workers),
                              ("scheduler communication", 0.05 * workers)):
            put(kind="point", experiment="cluster-barnes-hut", series=name, x=f"{workers} (1)",
                **where,
                command="quarry cluster barnes-hut", mean_seconds=seconds)


def others():
    put(kind="claim", id="a", source="Example 2026 (made up)", claim="48 x over CUDA's malloc",
        paper=48, ours=75.4,
        unit="x", how="median time of CudaMalloc / XMalloc at 32 lanes, experiment lanes",
        backend="cuda")
    put(kind="claim", id="b", source="Example 2026 (made up)", claim="1.13 to 4.33 x faster build",
        paper=[1.13, 4.33],
        ours=[1.5, 1.5], unit="x", how="experiment kd-tree", backend="cuda")
    put(kind="claim", id="c", source="Example 2026 (made up)", claim="10 to 1000 x",
        paper="10–1000", ours=None, unit="x",
        how="not measured", backend="cuda")
    for name, colour in (("Quarry", "#1b6ca8"), ("CFMalloc", "#d1495b")):
        cells = "".join(f'<rect x="{5 * (i % 40)}" y="{5 * (i // 40)}" width="5" height="5" '
                        f'fill="{colour}" '
                        f'fill-opacity="{chance.random():.2f}"/>' for i in range(400))
        put(kind="map", title=f"{name} after 50 rounds (made up)", allocator=name, backend="cuda",
            svg=f'<svg xmlns="http://www.w3.org/2000/svg" width="200" height="50" viewBox="0 0 '
            f'200 50">{cells}</svg>')
    put(kind="of a later time", anything=[1, 2, 3])


if __name__ == "__main__":
    for part in (sizes, lanes, churn, phases, scenes, fill_level, use, alloc, clusters, others):
        part()
