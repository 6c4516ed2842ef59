#!/usr/bin/python3 -B
"""Draws what `farsum bench reduce --overlap` measures: Farsum beside each MPI library, a group of bars for each call.

  bench/reduce/plot_overlap.py LINES.jsonl --out FIGURE.svg

LINES.jsonl has the lines that `farsum bench reduce --overlap --json` prints.
"""

import re

from panels import draw_panels, label_axes

CASE = re.compile(r"^(?:overlap of )?(?P<call>[a-z]+/\d+), (?P<ranks>\d+ ranks(?: on \d+ hosts)?)(?:, (?P<choice>[^:]+))?: (?P<what>.*)$")


def bars_of(lines, what, of_ours):
    """For each contender its numbers by call, with our choices first."""
    bars = {}
    for line in lines:
        found = CASE.match(line["case"])
        if not found or not found["what"].startswith(what) or line["ours"] is None:
            continue
        call = f"{found['call']}, {found['ranks']}"
        bars.setdefault(f"Farsum{', ' + found['choice'] if found['choice'] else ''}", {})[call] = of_ours(line)
        for name, number in line["peers"].items():
            bars.setdefault(name, {})[call] = number
    return bars


def of_bars(what, title, unit, of_ours, change=lambda number: number, scale="linear"):
    def draw(axes, lines):
        bars = bars_of(lines, what, of_ours)
        calls = list(dict.fromkeys(call for numbers in bars.values() for call in numbers))
        width = 0.8 / max(1, len(bars))
        for place, (name, numbers) in enumerate(bars.items()):
            present = [(index + place * width, change(numbers[call])) for index, call in enumerate(calls) if call in numbers]
            axes.bar([x for x, _ in present], [y for _, y in present], width, align="edge", label=name)
        axes.set_xticks([index + 0.4 for index in range(len(calls))], calls, fontsize=6.5)
        axes.set_yscale(scale)
        label_axes(axes, title, "", unit)
        axes.legend(fontsize=6)
    return draw


draw_panels(__doc__, "overlap.svg",
            [of_bars("computing with it", "what the call costs 1 ms of computing", "% more", lambda line: line["ratio"],
                     lambda ratio: 100 * (ratio - 1)),
             of_bars("it has ended", "it has ended when the computing has", "share", lambda line: line["ours"]),
             of_bars("hidden", "hidden behind the computing, as OSU says it", "%", lambda line: line["ours"]),
             of_bars("waited for", "waited for, the middle rank computes 10 ms", "us", lambda line: line["ours"], scale="log")])
