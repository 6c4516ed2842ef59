#!/usr/bin/python3 -B
"""Draws paper 1's figure 2 for this machine: bandwidth of sum by message size and path.

  bench/plot_sum_bandwidth.py POINTS.jsonl --out FIGURE.svg     also writes FIGURE.png

POINTS.jsonl has the lines that `farsum bench engine --case sum-bandwidth --json` prints; lines of other kinds are passed over.
"""

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  (the backend comes first)

PAPER_BYTES = 720_000
PANELS = [("adopted", "idle"), ("adopted", "computing"), ("mapped", "idle"), ("mapped", "computing")]
TITLES = {"adopted": "user memory, not promoted", "mapped": "Farsum's memory, mapped"}
# One colour and mark for each path in all panels; caller's three locks share a colour.
STYLES = {
    "direct": ("tab:green", "-", "o"),
    "owner": ("tab:red", "-", "s"),
    "caller, region lock": ("tab:blue", "-", "^"),
    "caller, stripe locks": ("tab:blue", "--", "v"),
    "caller, element locks": ("tab:blue", ":", "<"),
    "attach": ("tab:orange", "-", "D"),
    "aggregated": ("tab:purple", "-", "P"),
}


def read_points(path):
    """(memory, owner) -> path -> sorted list of (bytes, MB/s)."""
    panels = defaultdict(lambda: defaultdict(list))
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            point = json.loads(line)
            if "mb_per_s" in point:
                panels[point["memory"], point["owner"]][point["path"]].append((point["bytes"], point["mb_per_s"]))
    for curves in panels.values():
        for points in curves.values():
            points.sort()
    return panels


def at_paper_size(curves, name):
    return next((rate for size, rate in curves.get(name, []) if size == PAPER_BYTES), None)


def draw_panel(axes, memory, owner, curves, inline_bytes):
    for name, (colour, line, mark) in STYLES.items():
        if name in curves:
            sizes, rates = zip(*curves[name])
            axes.plot(sizes, rates, line, color=colour, marker=mark, markersize=4, linewidth=1.3, label=name)
    axes.axvline(PAPER_BYTES, color="grey", linewidth=0.8)
    axes.axvline(inline_bytes, color="grey", linewidth=0.8, linestyle=":")
    owner_rate, caller_rate = at_paper_size(curves, "owner"), at_paper_size(curves, "caller, region lock")
    ratio = f"\nowner-computes / caller-computes (region lock) at 720 KB: {owner_rate / caller_rate:.2f}; paper: 1.81" if owner_rate and caller_rate else ""
    axes.set_title(f"{TITLES[memory]}; its owner {'sleeps' if owner == 'idle' else 'computes'}{ratio}", fontsize=9)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(0.01, 3e5)  # room for the close-up below the curves
    ticks = [2**power for power in range(3, 25, 3)]
    axes.set_xticks(ticks)
    axes.set_xticklabels([f"{t} B" if t < 1024 else f"{t >> 10} KiB" if t < 1 << 20 else f"{t >> 20} MiB" for t in ticks], fontsize=8)
    axes.grid(True, which="major", linewidth=0.4)
    axes.set_ylabel("MB/s")


def draw_switch(axes, curves, inline_bytes):
    """A close-up of owner-computes around the size from which its operand is pulled: there the curve drops, as in the paper."""
    near = [(size, rate) for size, rate in curves.get("owner", []) if inline_bytes / 4 <= size <= inline_bytes * 2]
    if len(near) < 3:
        return
    inset = axes.inset_axes([0.67, 0.07, 0.31, 0.22])
    inset.plot(*zip(*near), "-", color=STYLES["owner"][0], marker=STYLES["owner"][2], markersize=3, linewidth=1.1)
    inset.axvline(inline_bytes, color="grey", linewidth=0.8, linestyle=":")
    inset.set_ylim(0, None)
    inset.set_xticks([inline_bytes // 2, inline_bytes, inline_bytes * 2])
    inset.set_xticklabels([f"{size >> 10} KiB" for size in (inline_bytes // 2, inline_bytes, inline_bytes * 2)], fontsize=7)
    inset.tick_params(axis="y", labelsize=7)
    inset.set_title("owner: inline | pulled, MB/s", fontsize=7, pad=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("points")
    parser.add_argument("--out", default="sum-bandwidth.svg")
    parser.add_argument("--inline-bytes", type=int, default=8192, help="FARSUM_INLINE_BYTES of the run")
    options = parser.parse_args()
    panels = read_points(options.points)
    if not panels:
        sys.exit(f"{options.points} has no points of sum-bandwidth")

    figure, all_axes = pyplot.subplots(2, 2, figsize=(13, 9), sharex=True, sharey=True)
    for axes, (memory, owner) in zip(all_axes.flat, PANELS):
        curves = panels.get((memory, owner), {})
        draw_panel(axes, memory, owner, curves, options.inline_bytes)
        draw_switch(axes, curves, options.inline_bytes)
    # The panel of mapped memory has every path.
    figure.legend(*all_axes[1][0].get_legend_handles_labels(), fontsize=9, ncol=len(STYLES), loc="lower center")
    figure.suptitle("Sum of doubles, each message complete at its target. Solid grey: 720 KB; dotted: longer operands are pulled", fontsize=10)
    figure.tight_layout(rect=(0, 0.03, 1, 1))
    out = Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    for path in {out, out.with_suffix(".png"), out.with_suffix(".svg")}:
        figure.savefig(path, dpi=110)
        print(f"wrote {path}", file=sys.stderr)


main()
