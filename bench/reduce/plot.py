#!/usr/bin/python3 -B
"""Draws figures 2, 10 and 14 of paper 5 from what `farsum bench reduce --model` predicts, and 2 and 10 of this machine, as far
as its lines have them.

  bench/reduce/plot.py LINES.jsonl --out FIGURE.svg

LINES.jsonl has the lines that `farsum bench reduce --model --json` prints.
"""

import math
import sys
from collections import defaultdict

from panels import draw_panels, elements_text, label_axes

COLOURS = {1: "tab:blue", 2: "tab:orange", 4: "tab:green", 8: "tab:red"}
STYLES = {"formula": ("-", "o"), "events, slot order": (":", ""), "events, arrival order": ("--", "")}


def vector_text(line):
    return line["operator"] if line["operator"] == "no_op" else f"{line['type']} {line['operator']}, {elements_text(line['elements'])}"


def draw_serial(axes, lines):
    curves = defaultdict(list)
    for line in lines:
        curves[vector_text(line)].append((line["ranks"], line["ours"]))
    for name, points in reversed(curves.items()):
        axes.plot(*zip(*points), marker="o", markersize=3, label=name)
    axes.set_ylim(bottom=0)
    label_axes(axes, "figure 2: serial reductions", "ranks", "us")
    axes.legend(fontsize=7)


def degree_curves(lines):
    """(elements, curve) -> the points by degree; and for each number of elements the degree that the paper calls best."""
    curves = defaultdict(list)
    best = {}
    for line in lines:
        if line["unit"] == "degree":
            best[line["elements"]] = line["paper"]
        else:
            curves[line["elements"], line["curve"]].append((line["degree"], line["ours"]))
    return curves, best


def draw_degrees(axes, lines):
    curves, best = degree_curves(lines)
    for elements, colour in reversed(COLOURS.items()):
        for curve, (style, marker) in STYLES.items():
            axes.plot(*zip(*curves[elements, curve]), style, color=colour, marker=marker, markersize=4,
                      label=elements_text(elements) if curve == "formula" else None)
        axes.plot(best[elements], dict(curves[elements, "formula"])[best[elements]], "s", markersize=9, markerfacecolor="none",
                  color=colour, label="best by the paper" if elements == 1 else None)
    axes.set_ylim(0, 180)
    label_axes(axes, "figure 10: float64 sum on 31 nodes", "degree of the tree", "us")
    axes.legend(fontsize=7, ncol=2, loc="upper left")


def draw_one_element(axes, lines):
    curves, best = degree_curves(lines)
    for curve, (style, marker) in STYLES.items():
        axes.plot(*zip(*curves[1, curve]), style, color=COLOURS[1], marker=marker, markersize=4, label=curve)
    axes.plot(best[1], dict(curves[1, "formula"])[best[1]], "s", markersize=9, markerfacecolor="none", color=COLOURS[1],
              label="best by the paper")
    axes.set_ylim(26, 36)
    label_axes(axes, "figure 10, 1 element: the axis does not begin at 0", "degree of the tree", "us")
    axes.legend(fontsize=7, loc="upper left")


def draw_crossings(axes, lines):
    degrees = [1 + step / 50 for step in range(301)]
    axes.plot(degrees, [degree * (math.log(degree) - 1) for degree in degrees], color="black", label="f (ln f - 1)")
    for line in lines:
        axes.axhline(line["height"], linewidth=0.8, color="tab:grey")
        axes.plot(line["ours"], line["height"], "o", markersize=4, color="tab:blue")
        axes.annotate(f"c = {line['combine_us']:.2f}: f = {line['ours']:.2f}", (6.9, line["height"]), fontsize=6.5, ha="right",
                      va="bottom" if line["height"] > -0.5 else "top" if line["height"] < -0.7 else "center",
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3})
    axes.set_xlim(1, 7)
    axes.set_ylim(-1.3, 5)
    label_axes(axes, "figure 14: the best degree of a full tree", "f", "horizontal: L / (r + c) - 1")
    axes.legend(fontsize=7, loc="upper left")


def draw_own(axes, lines, by):
    """What was measured as points, what the model has as lines, by a line's field."""
    curves = defaultdict(list)
    for line in lines:
        if line["unit"] == "us":
            curves[vector_text(line)].append((line[by], line["ours"], line["measured"]))
    for number, (name, points) in enumerate(reversed(curves.items())):
        places, modelled, measured = zip(*points)
        axes.plot(places, modelled, color=f"C{number}", linewidth=1)
        axes.plot(places, measured, "o", color=f"C{number}", markersize=4, label=name)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7)


def draw_own_serial(axes, lines):
    draw_own(axes, lines, "ranks")
    label_axes(axes, f"figure 2, this machine: nodes on {lines[0]['processors']} processors, and the fit", "nodes", "us")


def draw_own_degrees(axes, lines):
    draw_own(axes, lines, "degree")
    label_axes(axes, f"figure 10, this machine: {lines[0]['nodes']} nodes, and what is predicted", "degree of the tree", "us")


def own_panels(lines):
    there = {line["figure"] for line in lines}
    of_machine = {"figure 2, this machine": draw_own_serial, "figure 10, this machine": draw_own_degrees}
    return [of_figure(name, draw) for name, draw in of_machine.items() if name in there]


def of_figure(name, draw):
    def draw_those(axes, lines):
        own = [line for line in lines if line["figure"] == name]
        if not own:
            sys.exit(f"there are no lines of {name}")
        draw(axes, own)
    return draw_those


draw_panels(__doc__, "reduction-model.svg",
            [of_figure("figure 2", draw_serial), of_figure("figure 14", draw_crossings), of_figure("figure 10", draw_degrees),
             of_figure("figure 10", draw_one_element)], own_panels)
