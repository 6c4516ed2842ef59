#!/usr/bin/python3 -B
"""Writes the figures of docs/BENCHMARKS.md from a run, between its markers. Nothing there is typed by hand.

  bench/update_docs.py                     runs `build/bin/farsum bench engine --json` (minutes) and keeps its lines in build/bench/
  bench/update_docs.py --from LINES.jsonl  takes the lines of an earlier run on this machine
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOC = ROOT / "docs" / "BENCHMARKS.md"
COMMAND = ["build/bin/farsum", "bench", "engine", "--json"]
COUNTERS = ("messages", "bytes", "locks", "wakeups", "context_switches")
PAPER_BYTES = 720_000
# The points of figure 2 that the table shows; the figure has them all.
SHOWN_SIZES = (8, 512, 8192, 8200, 65536, PAPER_BYTES, 1 << 20, 16 << 20)


def run_benchmark(keep):
    keep.parent.mkdir(parents=True, exist_ok=True)
    with open(keep, "w", encoding="utf-8") as out:
        subprocess.run(COMMAND, cwd=ROOT, stdout=out, check=True)
    return keep


def first_of(path, key):
    with open(path, encoding="utf-8") as lines:
        return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), "unknown")


def machine():
    memory_gib = int(first_of("/proc/meminfo", "MemTotal").split()[0]) / 2**20
    compiler = subprocess.run(["g++", "--version"], text=True, stdout=subprocess.PIPE).stdout.splitlines()[0]
    caches = subprocess.run(["lscpu"], text=True, stdout=subprocess.PIPE).stdout
    sizes = [line.split(":")[1].strip() for line in caches.splitlines() if line.startswith(("L2 cache", "L3 cache"))]
    huge = Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
    lines = [
        f"{first_of('/proc/cpuinfo', 'model name')}, family {first_of('/proc/cpuinfo', 'cpu family')}, {os.cpu_count()} processors"
        f"{', virtual' if 'hypervisor' in first_of('/proc/cpuinfo', 'flags') else ''}; L2 {sizes[0]}, L3 {sizes[1]}; {memory_gib:.0f} GiB",
        f"Linux {platform.release()}; transparent huge pages for shared memory: {huge.read_text().strip() if huge.exists() else 'unknown'}",
        f"{compiler}, release build",
    ]
    return "\n".join(f"- {line}" for line in lines)


def number(value):
    if value == 0:
        return "0"
    if value >= 1e6:
        return f"{value / 1e6:.3g} M"
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}" if value >= 0.001 else f"{value:.0e}"


def rows_table(rows):
    table = ["| row | case | ours | limit | unit | ratio (quartiles) | aim | | " + " | ".join(c.replace("_", " ") for c in COUNTERS) + " |",
             "|---|---|--:|--:|---|--:|--:|---|" + "--:|" * len(COUNTERS)]
    for row in rows:
        sign = "<=" if row["better"] == "lower" else ">="
        aim = f"{sign} {row['aim']}" if row["aim"] is not None else ""
        verdict = {True: "met", False: "**missed**", None: ""}[row["met"]]
        counters = " | ".join(number(row[c]) if c in row else "" for c in COUNTERS)
        table.append(f"| {row['bench']} | {row['case']} | {number(row['ours'])} | {number(row['limit'])} | {row['unit']} "
                     f"| {row['ratio']:.2f} ({row['ratio_low']:.2f} to {row['ratio_high']:.2f}) | {aim} | {verdict} | {counters} |")
    return "\n".join(table)


def size_text(size):
    if size == PAPER_BYTES:
        return "720 KB"
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1024 and size % 1024 == 0 else f"{size} B"


def figure_table(points):
    curves = defaultdict(dict)
    for point in points:
        curves[point["memory"], point["path"], point["owner"]][point["bytes"]] = point["mb_per_s"]
    table = ["| memory | path | owner | " + " | ".join(size_text(size) for size in SHOWN_SIZES) + " |",
             "|---|---|---|" + "--:|" * len(SHOWN_SIZES)]
    for (memory, path, owner), curve in curves.items():
        cells = " | ".join(number(curve[size]) if size in curve else "" for size in SHOWN_SIZES)
        table.append(f"| {memory} | {path} | {owner} | {cells} |")
    return "\n".join(table)


def replace_between(text, name, body):
    begin, end = f"<!-- {name}: written by bench/update_docs.py -->", f"<!-- end of {name} -->"
    head, _, rest = text.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        sys.exit(f"{DOC} has no markers for {name}")
    return f"{head}{begin}\n\n{body}\n\n{end}{tail}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="lines", type=Path)
    options = parser.parse_args()
    path = options.lines or run_benchmark(ROOT / "build" / "bench" / "engine.jsonl")
    with open(path, encoding="utf-8") as source:
        lines = [json.loads(line) for line in source if line.startswith("{")]
    rows = [line for line in lines if "ratio" in line]
    points = [line for line in lines if "mb_per_s" in line]

    text = DOC.read_text(encoding="utf-8")
    text = replace_between(text, "machine", machine())
    text = replace_between(text, "ratios", rows_table([row for row in rows if row["bench"] != "sum-bandwidth"]))
    text = replace_between(text, "figure", figure_table(points))
    text = replace_between(text, "paper", rows_table([row for row in rows if row["bench"] == "sum-bandwidth"]))
    DOC.write_text(text, encoding="utf-8")
    print(f"wrote {DOC.relative_to(ROOT)}: {len(rows)} rows, {len(points)} points")


main()
