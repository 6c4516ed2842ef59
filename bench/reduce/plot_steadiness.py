#!/usr/bin/python3 -B
"""Draws how long single calls take beside busy processes, from what `farsum bench reduce --steady` measures.

  bench/reduce/plot_steadiness.py LINES.jsonl --out FIGURE.svg

LINES.jsonl has the lines that `farsum bench reduce --steady --json` prints; the first call in them is drawn. Above, which part of
the calls takes how long, 20 steps to a power of ten; below, which part takes longer.
"""

from panels import draw_panels, label_axes

STEP = 10 ** (1 / 20)


def distributions(lines, raised):
    for line in lines:
        if "distributions" in line and ("raised priority" in line["case"]) == raised:
            return line["case"].split(":")[0], line["distributions"]
    return "not measured", {}


def style(name):
    return {"linewidth": 1.8 if name.startswith("farsum") else 1, "label": name.replace("farsum", "Farsum")}


def of_priority(raised, draw_one, y):
    def draw(axes, lines):
        title, contenders = distributions(lines, raised)
        for name, found in contenders.items():
            draw_one(axes, name, found)
        axes.set_xscale("log")
        label_axes(axes, title, "us from the last entry to the last return", y)
        if contenders:
            axes.legend(fontsize=7)
    return draw


def draw_shares(axes, name, found):
    edges, shares = [], []
    for start, count in found["bins"]:
        edges += [start, start, start * STEP, start * STEP]
        shares += [0, count, count, 0]
    axes.plot(edges, [100 * share / sum(count for _, count in found["bins"]) for share in shares], **style(name))


def draw_rest(axes, name, found):
    total = rest = sum(count for _, count in found["bins"])
    points = []
    for start, count in found["bins"]:
        points.append((start, rest / total))
        rest -= count
    axes.plot(*zip(*points), drawstyle="steps-post", **style(name))
    axes.set_yscale("log")


draw_panels(__doc__, "steadiness.svg",
            [of_priority(False, draw_shares, "% of the calls"), of_priority(True, draw_shares, "% of the calls"),
             of_priority(False, draw_rest, "part that takes longer"), of_priority(True, draw_rest, "part that takes longer")])
