#!/usr/bin/python3 -B
"""Writes the figures of docs/results/benchmarks.md from a run, between its markers. Nothing there is typed by hand.

  bench/update_docs.py                     runs `build/bin/farsum bench engine --json` (minutes) and keeps its lines in build/bench/
  bench/update_docs.py --from LINES.jsonl  takes the lines of an earlier run on this machine
"""

import os
import platform
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import bench_lines  # noqa: E402
import doc_section  # noqa: E402

DOC = ROOT / "docs" / "results" / "benchmarks.md"
WRITER = "bench/update_docs.py"
COUNTERS = ("messages", "bytes", "locks", "wakeups", "context_switches")
PAPER_BYTES = 720_000
# The points of figure 2 that the table shows; the figure has them all.
SHOWN_SIZES = (8, 512, 8192, 8200, 65536, PAPER_BYTES, 1 << 20, 16 << 20)


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


def main():
    lines = bench_lines.asked_for("engine", __doc__)
    rows = [line for line in lines if "ratio" in line]
    points = [line for line in lines if "mb_per_s" in line]

    text = DOC.read_text(encoding="utf-8")
    text = doc_section.replaced(text, "machine", WRITER, machine())
    text = doc_section.replaced(text, "ratios", WRITER, rows_table([row for row in rows if row["bench"] != "sum-bandwidth"]))
    text = doc_section.replaced(text, "figure", WRITER, figure_table(points))
    text = doc_section.replaced(text, "paper", WRITER, rows_table([row for row in rows if row["bench"] == "sum-bandwidth"]))
    DOC.write_text(text, encoding="utf-8")
    print(f"wrote {DOC.relative_to(ROOT)}: {len(rows)} rows, {len(points)} points")


main()
