#!/usr/bin/python3 -B
"""Draws the rows of `farsum bench ranks` by ranks, both axes logarithmic: a panel a row, bare processes dashed.

  bench/ranks/plot.py LINES.jsonl --out FIGURE.svg

LINES.jsonl has the lines that `farsum bench ranks --json` prints. Rows with threads are drawn by threads.
"""

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  (the backend comes first)

COLUMNS = 4
COLOURS = {"mpich": "tab:blue", "openmpi": "tab:orange", "mpich5": "tab:cyan", "openmpi5": "tab:red", "impi": "tab:green",
           "native": "black"}


def read_panels(path):
    """(row, memory, windows) -> the lines of that row."""
    panels = defaultdict(list)
    with open(path, encoding="utf-8") as source:
        for line in map(json.loads, source):
            if "row" in line:
                panels[line["row"], line["memory"], line["windows"]].append(line)
    return panels


def points_of(lines, along, figure):
    points = sorted((line[along], line[figure]) for line in lines if line[figure])
    return tuple(zip(*points)) if points else None


def draw_panel(axes, name, lines):
    row, memory, windows = name
    has_threads = row.startswith("threads-")
    along = "threads" if has_threads else "ranks"
    for library in dict.fromkeys(line["library"] for line in lines):
        own = [line for line in lines if line["library"] == library]
        colour = COLOURS.get(library, "tab:grey")
        for figure, style, filled in (("ours", "-", colour), ("alone", ":", "white")):
            points = points_of(own, along, figure)
            if points:
                label = library if library == "native" else f"{library} {'with Farsum' if figure == 'ours' else 'alone'}"
                axes.plot(*points, style, color=colour, marker="o", markersize=4, markerfacecolor=filled, linewidth=1.2, label=label)
    limit = points_of(lines, along, "limit")
    if limit:
        axes.plot(*limit, "--", color="grey", linewidth=1.2, label="bare processes")
    numbers = sorted({line[along] for line in lines})
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(numbers)
    axes.set_xticklabels([str(number) for number in numbers], fontsize=8)
    axes.grid(True, which="major", linewidth=0.4)
    place = f"{'a window each' if windows == 'each' else 'one window'}, by threads" if has_threads else memory
    axes.set_title(f"{row}: {place}", fontsize=9)
    axes.set_ylabel(lines[0]["unit"], fontsize=8)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines")
    parser.add_argument("--out", default="ranks.svg")
    options = parser.parse_args()
    panels = read_panels(options.lines)
    if not panels:
        sys.exit(f"{options.lines} has no lines of bench ranks")
    count = (len(panels) + COLUMNS - 1) // COLUMNS
    figure, all_axes = pyplot.subplots(count, COLUMNS, figsize=(4.2 * COLUMNS, 3.2 * count + 0.6), squeeze=False)
    for axes in list(all_axes.flat)[len(panels):]:
        axes.set_visible(False)
    labels = {}
    for axes, (name, lines) in zip(all_axes.flat, panels.items()):
        draw_panel(axes, name, lines)
        handles, names = axes.get_legend_handles_labels()
        labels.update(zip(names, handles))
    figure.legend(labels.values(), labels.keys(), fontsize=8, ncol=6, loc="lower center")
    figure.tight_layout(rect=(0, 0.6 / (3.2 * count + 0.6), 1, 1))
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=110)
    print(f"wrote {options.out}", file=sys.stderr)


main()
