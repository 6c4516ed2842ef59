#!/usr/bin/python3 -B
"""Draws docs/figures/crossover.svg: paper 1's caller and owner by size for its two wake-ups, as the cost model predicts and as the
simulator has it.

  bench/model/crossover.py                    runs `test_sim --gtest_filter=Paper1*` of build/ and draws what it says
  bench/model/crossover.py --build /tmp/b --output crossover.svg
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from svg_figures import load_pyplot, save  # noqa: E402

STYLES = {"owner": ("tab:red", "s"), "caller": ("tab:blue", "^")}
# Where paper 1 has its owner faster from, bytes by wake-up.
PAPER = {54.5: 45_000, 12.0: 1_200}


def points_of(build):
    """(wake-up, way, bytes) to (simulated, predicted), microseconds."""
    with tempfile.TemporaryDirectory(prefix="farsum-crossover-") as folder:
        report = Path(folder) / "report.json"
        subprocess.run([build / "bin" / "tests" / "test_sim", "--gtest_filter=Paper1*", f"--gtest_output=json:{report}"],
                       stdout=subprocess.DEVNULL, check=True)
        suites = json.loads(report.read_text(encoding="utf-8"))["testsuites"]
    points = {}
    for key, value in (item for suite in suites for test in suite["testsuite"] for item in test.items()):
        named = re.fullmatch(r"(\w+) (\d+) bytes woken in ([\d.]+) us", key)
        if named:
            said = re.fullmatch(r"simulated ([\d.]+) predicted ([\d.]+)", value)
            if not said:
                sys.exit(f"crossover.py: cannot read what the test says of {key}: {value}")
            points[float(named[3]), named[1], int(named[2])] = (float(said[1]), float(said[2]))
    if {(woken, way) for woken, way, _ in points} != {(woken, way) for woken in PAPER for way in STYLES}:
        sys.exit("crossover.py: the test does not say points of each way and wake-up")
    return points


def draw_times(panel, points, wake_up):
    sizes = sorted({size for woken, _, size in points if woken == wake_up})
    for way, (colour, marker) in STYLES.items():
        panel.plot(sizes, [points[wake_up, way, size][1] for size in sizes], color=colour, label=f"{way}, model")
        panel.plot(sizes, [points[wake_up, way, size][0] for size in sizes], color=colour, marker=marker, linestyle="", markersize=4,
                   label=f"{way}, simulator")
    panel.axvline(PAPER[wake_up], color="grey", linestyle=":", label="the paper's owner is faster from here")
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xlabel("bytes")
    panel.set_ylabel("us a sum")
    panel.set_title(f"woken in {wake_up:g} us", fontsize=9)
    panel.grid(alpha=0.3)
    panel.legend(fontsize=7)


def draw_ratios(panel, points):
    for wake_up, colour in zip(sorted(PAPER, reverse=True), ("tab:green", "tab:purple")):
        sizes = sorted({size for woken, _, size in points if woken == wake_up})
        for which, marker, name in ((1, "", "model"), (0, "o", "simulator")):
            ratios = [points[wake_up, "caller", size][which] / points[wake_up, "owner", size][which] for size in sizes]
            panel.plot(sizes, ratios, color=colour, marker=marker, linestyle="" if marker else "-", markersize=4,
                       label=f"{wake_up:g} us, {name}")
    panel.axhline(1, color="grey", linestyle=":")
    panel.set_xscale("log", base=2)
    panel.set_xlabel("bytes")
    panel.set_ylabel("bandwidth of owner / caller")
    panel.set_title("ratio of the two (figures 3 and 4)", fontsize=9)
    panel.grid(alpha=0.3)
    panel.legend(fontsize=7, loc="lower right")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build folder")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "figures" / "crossover.svg")
    options = parser.parse_args()
    points = points_of(options.build)
    pyplot = load_pyplot()
    if pyplot is None:
        sys.exit("crossover.py: there is no matplotlib here")
    pyplot.rcParams["svg.fonttype"] = "none"
    figure, panels = pyplot.subplots(1, 3, figsize=(12, 4))
    for panel, wake_up in zip(panels, PAPER):
        draw_times(panel, points, wake_up)
    draw_ratios(panels[2], points)
    save(pyplot, figure, options.output)
    print(f"wrote {options.output}: {len(points)} points")


main()
