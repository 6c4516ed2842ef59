"""Tables and plots of what `farsum bench net --figures` measured, for docs/results/benchmarks.md."""

import os

import doc_section
from svg_figures import load_pyplot, save
from report import ratio_text, short

SUM_STYLES = {"owner": ("tab:red", "s"), "caller": ("tab:blue", "^")}
# Paper 4's names: of the case, and in the tables.
WAYS = {"get-modify-put-8": "get, modify, put (GMP)", "lock-accumulate-unlock-8": "accumulate (ACC)",
        "accumulates-1": "accumulate, flush in lock_all", "fetch-and-op-8": "fetch-and-op (direct)"}
ALONE_STYLES = ("tab:green", "tab:orange", "tab:purple", "tab:brown")


class Points:
    """The lines of a run by figure, who and case."""

    def __init__(self, lines):
        self.lines = lines
        self.by_key = {(line["figure"], line["who"], line["case"]): line["median"] for line in lines if line["figure"] != "missing"}
        self.rounds = max(line.get("rounds", 0) for line in lines)
        self.load, self.library = lines[0]["load"], lines[0]["library"]
        self.missing = {line["who"]: line["why"] for line in lines if line["figure"] == "missing"}

    def us(self, who, case):
        return self.by_key.get(("calls", who, case))

    def numbers(self, kind):
        """The sizes or counts of the cases of a kind."""
        return sorted({int(case.rsplit("-", 1)[1]) for figure, _, case in self.by_key
                       if figure == "calls" and case.rsplit("-", 1)[0] == kind})

    def alone(self):
        return list(dict.fromkeys(who for figure, who, _ in self.by_key if figure == "calls" and who.endswith(" alone")))

    def mb_per_s(self, who, size):
        us = self.us(who, f"sum-{size}")
        return size / us if us else None

    def ratio(self, size):
        """Owner-computes beside caller-computes, as bandwidth."""
        owner, caller = self.us("owner", f"sum-{size}"), self.us("caller", f"sum-{size}")
        return caller / owner if owner and caller else None


def size_text(size):
    return f"{size} B" if size < 1024 else f"{size >> 10} KiB" if size < 1 << 20 else f"{size >> 20} MiB"


def sums(points):
    alone = points.alone()
    rows = [[size_text(size), *(short(points.mb_per_s(who, size)) for who in ("owner", "caller", *alone)),
             ratio_text(points.ratio(size)) if points.ratio(size) else "-"] for size in points.numbers("sum")]
    return doc_section.markdown(["sum of doubles", "owner", "caller", *alone, "owner / caller"], rows)


def latencies(points):
    alone = points.alone()
    rows = [[f"{kind}, {size_text(size)}", *(short(points.us(who, f"{kind}-{size}")) for who in ("owner", "caller", *alone))]
            for kind in ("put", "get", "sum") for size in points.numbers(kind) if size <= 4096]
    rows += [[name, *(short(points.us(who, case)) for who in ("owner", "caller", *alone))] for case, name in WAYS.items()]
    return doc_section.markdown(["call", "owner", "caller", *alone], rows)


def gathering(points):
    alone = points.alone()
    columns = [("one by one, owner", "owner", "accumulates"), ("one by one, aggregated", "aggregated", "accumulates"),
               ("datatype, owner", "owner", "gathered")]
    columns += [(f"{words}, {who}", who, kind) for who in alone for words, kind in (("one by one", "accumulates"), ("datatype", "gathered"))]
    rows = [[str(count), *(short(points.us(who, f"{kind}-{count}")) for _, who, kind in columns)] for count in points.numbers("accumulates")]
    return doc_section.markdown(["updates", *(heading for heading, _, _ in columns)], rows)


def updates(points):
    ways = list(dict.fromkeys(who for figure, who, _ in points.by_key if figure == "updates"))
    ranks = sorted({case for figure, _, case in points.by_key if figure == "updates"})
    rows = [[way.replace("card", "card (UCX's shared memory)"), *(short(points.by_key.get(("updates", way, count))) for count in ranks)]
            for way in sorted(ways)]
    return doc_section.markdown(["way, updates that may wait", *(f"{count} ranks" for count in ranks)], rows)


def section(lines, quiet_load):
    points = Points(lines)
    busy = " **Provisional: the machine had other work.**" if points.load >= quiet_load else ""
    parts = [f"{doc_section.source()}, medians of {points.rounds} rounds on {os.cpu_count()} processors; Farsum in {points.library}; load average "
             f"before the run {points.load}.{busy}",
             f"**Paper 1, figures 2 and 4**: MB/s by size, each sum complete at its target\n\n{sums(points)}\n\n"
             "![sums by size](../figures/net-sum.svg)",
             f"**Paper 4, figures 2a and 4a**: us of a call with its flush or its epochs\n\n{latencies(points)}",
             f"**Paper 4, figure 3a**: us of so many updates of 8 bytes at random places and one flush\n\n{gathering(points)}",
             f"**Paper 4, figures 2b, 3b, 4b and 5**: million updates a second of `gups`, all ranks\n\n{updates(points)}\n\n"
             "![updates](../figures/net-updates.svg)"]
    if points.missing:
        parts.append("Missing: " + "; ".join(f"{who}: {why}" for who, why in points.missing.items()) + ".")
    return "\n\n".join(parts)


def by_size(axes, sizes):
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes[::3])
    axes.set_xticklabels([size_text(size) for size in sizes[::3]], fontsize=8)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def styles(points):
    return {**SUM_STYLES, **{who: (colour, "x") for who, colour in zip(points.alone(), ALONE_STYLES)}}


def plot_line(axes, found, **style):
    known = [(x, y) for x, y in found if y]
    axes.plot([x for x, _ in known], [y for _, y in known], markersize=4, **style)


def draw_sums(pyplot, points, path):
    figure, (rates, ratio) = pyplot.subplots(1, 2, figsize=(11, 4))
    sizes = points.numbers("sum")
    for who, (colour, mark) in styles(points).items():
        plot_line(rates, [(size, points.mb_per_s(who, size)) for size in sizes], color=colour, marker=mark, label=who)
    rates.set_yscale("log")
    rates.set_ylabel("MB/s")
    rates.set_title("sum of doubles over TCP (paper 1, figure 2)", fontsize=9)
    plot_line(ratio, [(size, points.ratio(size)) for size in sizes], color="black", marker="o", label="owner / caller")
    ratio.axhline(1, color="grey", linewidth=0.8)
    ratio.set_yscale("log", base=2)
    ratio.yaxis.set_major_formatter("{x:g}")
    ratio.set_title("bandwidth of owner- beside caller-computes (paper 1, figure 4)", fontsize=9)
    for axes in (rates, ratio):
        by_size(axes, sizes)
    save(pyplot, figure, path)


def draw_updates(pyplot, points, path):
    figure, (calls, gathered, rates) = pyplot.subplots(1, 3, figsize=(16, 4.5))
    sizes = [size for size in points.numbers("put")]
    for kind, mark in (("put", "o"), ("get", "s"), ("sum", "^")):
        for who, line in (("owner", "-"), *((who, ":") for who in points.alone()[:1])):
            plot_line(calls, [(size, points.us(who, f"{kind}-{size}")) for size in sizes], linestyle=line, marker=mark,
                      label=f"{kind}, {'Farsum' if who == 'owner' else who}")
    calls.set_yscale("log")
    calls.set_ylabel("us")
    calls.set_title("latencies (paper 4, figure 2a)", fontsize=9)
    by_size(calls, sizes)
    counts = points.numbers("accumulates")
    for label, who, kind in (("one by one, owner", "owner", "accumulates"), ("one by one, aggregated", "aggregated", "accumulates"),
                             ("datatype, owner", "owner", "gathered"),
                             *((f"one by one, {who}", who, "accumulates") for who in points.alone()[:1])):
        plot_line(gathered, [(count, points.us(who, f"{kind}-{count}")) for count in counts], marker="o", label=label)
    gathered.set_xscale("log", base=2)
    gathered.set_yscale("log")
    gathered.set_ylabel("us of all, flushed once")
    gathered.set_xlabel("updates")
    gathered.set_title("aggregation (paper 4, figure 3a)", fontsize=9)
    gathered.grid(alpha=0.3)
    gathered.legend(fontsize=7)
    ways = sorted({who for figure_name, who, _ in points.by_key if figure_name == "updates"})
    ranks = sorted({case for figure_name, _, case in points.by_key if figure_name == "updates"})
    for place, count in enumerate(ranks):
        width = 0.8 / len(ranks)
        values = [points.by_key.get(("updates", way, count)) or 0 for way in ways]
        rates.barh([row + place * width for row in range(len(ways))], values, width, label=f"{count} ranks")
    rates.set_yticks([row + 0.2 for row in range(len(ways))])
    rates.set_yticklabels(ways, fontsize=8)
    rates.set_xscale("log")
    rates.set_xlabel("million updates/s")
    rates.set_title("RandomAccess (paper 4, figures 2b, 3b, 4b, 5)", fontsize=9)
    rates.grid(alpha=0.3)
    rates.legend(fontsize=8)
    save(pyplot, figure, path)


def draw(lines, folder):
    pyplot, points = load_pyplot(), Points(lines)
    pyplot.rcParams["svg.fonttype"] = "none"
    folder.mkdir(parents=True, exist_ok=True)
    draw_sums(pyplot, points, folder / "net-sum.svg")
    draw_updates(pyplot, points, folder / "net-updates.svg")
