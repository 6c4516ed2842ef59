#!/usr/bin/python3 -B
"""Draws figures 11, 12 and 13 of paper 5 from what `farsum bench reduce --simulate` says; figure 1 is the host of figure 11.

  bench/reduce/plot_simulated.py LINES.jsonl --out FIGURE.svg

LINES.jsonl has the lines that `farsum bench reduce --simulate --json` prints. Black squares are what the paper states.
"""

from collections import defaultdict

from panels import draw_panels, elements_text, label_axes

COLOURS = {"host": "tab:red", "card": "tab:blue", "agent as a thread": "tab:orange", "dedicated agent": "tab:green"}
USUAL_NOISE_US = (0, 1000)


def draw_latencies(axes, lines, vector):
    """Solid with one rank a node, dashed with two."""
    curves, stated = defaultdict(list), set()
    for line in lines:
        if line["figure"] != "figure 11" or line["quantity"] != "average" or line["vector"] != vector:
            continue
        if line["noise_length_us"] not in USUAL_NOISE_US:
            continue
        curves[line["curve"], line["ranks"] // line["nodes"]].append((line["nodes"], line["ours"]))
        if "paper" in line:
            stated.add((line["nodes"], line["paper"], line["curve"]))
    for (curve, ranks), points in curves.items():
        axes.plot(*zip(*sorted(points)), "-" if ranks == 1 else "--", color=COLOURS[curve], marker="o", markersize=3,
                  label=f"{curve}, {ranks} a node")
    for nodes, us, curve in sorted(stated):
        axes.plot(nodes, us, "s", markersize=7, markerfacecolor="none", color="black")
        axes.annotate(f"the paper's {curve}: {us:.0f}", (nodes, us), fontsize=6.5, ha="right", va="bottom", xytext=(-5, 1),
                      textcoords="offset points")
    axes.set_xscale("log", base=2)
    axes.set_ylim(0, 240)
    label_axes(axes, f"figure 11: {vector}, 1 element", "nodes", "us a call")
    axes.legend(fontsize=7)


def draw_distribution(axes, lines):
    curves = defaultdict(list)
    for line in lines:
        if "from_us" in line:
            curves[line["curve"]].append((line["from_us"], line["ours"]))
    for curve, points in curves.items():
        name, _, variant = curve.partition(", ")
        axes.plot(*zip(*sorted(points)), ":" if variant else "-", color=COLOURS[name], marker="o", markersize=3, label=curve)
    axes.set_yscale("log")
    label_axes(axes, "figure 12: calls by time, float64 sum on 900 nodes", "us", "share of calls in 5 us")
    axes.legend(fontsize=7)


def draw_splits(axes, lines):
    curves, stated = defaultdict(list), []
    for line in lines:
        if line["figure"] == "figure 13" and line["quantity"] == "average" and line["curve"] == "degree 4":
            curves[line["elements"]].append((line["splits"], line["ours"]))
            if "paper" in line:
                stated.append((line["splits"], line["paper"]))
    for elements, points in reversed(curves.items()):
        axes.plot(*zip(*sorted(points)), marker="o", markersize=3, label=elements_text(elements))
    for splits, us in stated:
        axes.plot(splits, us, "s", markersize=7, markerfacecolor="none", color="black", label="the paper, 16 elements")
    axes.set_ylim(bottom=0)
    axes.set_xticks(range(5))
    label_axes(axes, "figure 13: float64 sum on 512 nodes, degree 4", "splits", "us")
    axes.legend(fontsize=7)


draw_panels(__doc__, "reduction-simulated.svg",
            [lambda axes, lines: draw_latencies(axes, lines, "int32 sum"),
             lambda axes, lines: draw_latencies(axes, lines, "float64 sum"), draw_distribution, draw_splits])
