#!/usr/bin/python3 -B
"""Writes the figures of "MPI front" in docs/results/benchmarks.md from a run, between its markers. Nothing there is typed by hand.

  bench/mpi/update_docs.py                     runs `build/bin/farsum bench mpi --json` (minutes) and keeps its lines in build/bench/
  bench/mpi/update_docs.py --from LINES.jsonl  takes the lines of an earlier run on this machine
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import bench_lines  # noqa: E402
import doc_section  # noqa: E402

DOC = ROOT / "docs" / "results" / "benchmarks.md"
TITLES = {
    "allocate": "`MPI_Win_allocate`",
    "nwchem": "NWChem's shapes",
    "create": "`MPI_Win_create`, owner idle",
    "owner-computing": "`MPI_Win_create`, owner computing",
    "path": "Path of a large heap window",
    "counter": "Paper 3's counter: a number while the owner computes, beside one while it waits",
    "automaton": "Paper 2's automaton: one-sided beside two-sided, both with Farsum",
}


def number(value):
    if value is None:
        return "-"
    if value >= 1e6:
        return f"{value / 1e6:.3g} M"
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def ratio(value):
    return f"{value:.2f}" if value >= 0.095 else f"{value:.1e}"


def cell(line):
    """Ours, its ratio, the path; a missed aim in bold."""
    if line is None:
        return ""
    path = f", {line['path']}" if line["path"] else ""
    if line["ours"] is None:
        return (line["path"] or "?") + ("" if line["met"] is None else "" if line["met"] else " **missed**")
    shown = f"{number(line['ours'])}: " + (ratio(line["ratio"]) if line["ratio"] is not None else "no peer")
    if line["met"] is False:
        shown = f"{number(line['ours'])}: **{ratio(line['ratio'])}**"
    if "ratio_without" in line:
        of_limit = f" of {number(line['limit_without'])}" if "limit_without" in line else ""
        shown += f" of {number(line['limit'])} (alone {ratio(line['ratio_without'])}{of_limit})"
    return shown + path


def limit_cell(line):
    peer = f", {line['peer']}" if line["peer"] else ""
    return f"{number(line['limit'])} {line['unit']}{peer}" if line["limit"] is not None else peer.lstrip(", ")


def aim_cell(lines):
    aims = sorted({line["aim"] for line in lines if line["aim"] is not None}, reverse=True)
    return " or ".join(f"<= {aim:g}" for aim in aims)


def row_table(lines, libraries):
    """A line a case, a column a library; where each library has a limit of its own, that stands with its figure."""
    own_limits = lines[0]["row"] in ("counter", "automaton", "path")
    table = ["| case | " + ("" if own_limits else "limit | ") + "aim | " + " | ".join(libraries) + " |",
             "|---|" + ("" if own_limits else "--:|") + "--:|" + "---|" * len(libraries)]
    for name in dict.fromkeys(line["case"] for line in lines):
        of_case = [line for line in lines if line["case"] == name]
        by_library = {line["library"]: line for line in of_case}
        limit = "" if own_limits else f"{limit_cell(of_case[0])} | "
        cells = " | ".join(cell(by_library.get(library)) for library in libraries)
        table.append(f"| {name} | {limit}{aim_cell(of_case)} | {cells} |")
    return "\n".join(table)


def missing(lines):
    notes = dict.fromkeys(line["note"] for line in lines if "note" in line)
    return "\n\nMissing: " + "; ".join(notes) + "." if notes else ""


def tables(lines):
    libraries = list(dict.fromkeys(line["library"] for line in lines))
    parts = []
    for row, title in TITLES.items():
        of_row = [line for line in lines if line["row"] == row]
        if of_row:
            judged = [line for line in of_row if line["met"] is not None]
            score = f": {sum(line['met'] for line in judged)} of {len(judged)} met" if judged else ""
            parts.append(f"**{title}**{score}\n\n{row_table(of_row, libraries)}{missing(of_row)}")
    return "\n\n".join(parts)


def main():
    lines = bench_lines.asked_for("mpi", __doc__)
    doc_section.update(DOC, "mpi", "bench/mpi/update_docs.py", tables(lines))
    print(f"wrote {DOC.relative_to(ROOT)}: {len(lines)} lines")


main()
