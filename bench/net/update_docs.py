#!/usr/bin/python3 -B
"""Writes the figures of "Across hosts" in docs/results/benchmarks.md from a run, between its markers. Nothing there is typed by hand.

  bench/net/update_docs.py                     runs `build/bin/farsum bench net --json` (three minutes) and keeps its lines in build/bench/
  bench/net/update_docs.py --from LINES.jsonl  takes the lines of an earlier run on this machine
  bench/net/update_docs.py --figures           the papers' figures instead: tables, and plots in docs/figures (three minutes)
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import doc_section  # noqa: E402
import figure_tables  # noqa: E402
from report import ratio_text, short  # noqa: E402

DOC = ROOT / "docs" / "results" / "benchmarks.md"
QUIET_LOAD = 0.5
TITLES = {
    "tcp": "8 bytes alone, the owner asleep, beside TCP's round trip",
    "stream": "Bulk, the owner asleep, beside TCP's stream",
    "updates": "Small updates, beside the stream's bytes",
    "mpi": "Beside the fastest MPI library alone, its owner waiting in a barrier",
    "counter": "Paper 3's counter, irregular tasks, drawn from the other host",
    "ucx": "Beside `ucx_perftest`, for orientation",
}


def run_benchmark(build, keep, *options):
    keep.parent.mkdir(parents=True, exist_ok=True)
    with open(keep, "w", encoding="utf-8") as out:
        subprocess.run([build / "bin" / "farsum", "bench", "net", "--json", *options], stdout=out, check=True)
    return keep


def ours_cell(line):
    if line is None:
        return ""
    if line["ratio"] is None:
        return short(line["ours"])
    ratio = ratio_text(line["ratio"])
    shown = f"**{ratio}**" if line["met"] is False else ratio
    return f"{short(line['ours'])} of {short(line['limit'])}: {shown} ({ratio_text(line['ratio_low'])} to {ratio_text(line['ratio_high'])})"


def aim_cell(line):
    return "" if line["aim"] is None else f"{'<=' if line['better'] == 'lower' else '>='} {line['aim']:g}"


def row_table(lines, fronts):
    rows = []
    for name, peer in dict.fromkeys((line["case"], line["peer"] if line["row"] in ("ucx", "mpi") else "") for line in lines):
        of_case = [line for line in lines if line["case"] == name and (not peer or line["peer"] == peer)]
        by_front = {line["library"]: line for line in of_case}
        rows.append([name, f"{of_case[0]['unit']}{', ' + peer if peer else ''}", aim_cell(of_case[0]),
                     *(ours_cell(by_front.get(front)) for front in fronts)])
    return doc_section.markdown(["case", "unit, limit" if lines[0]["row"] in ("ucx", "mpi") else "unit", "aim",
                                 *(f"{front} with Farsum" for front in fronts)], rows, left=3)


def alone_table(lines):
    """What each library alone takes, for the cases of the row `mpi`."""
    of_row = {line["case"]: line.get("alone", {}) for line in lines if line["row"] == "mpi"}
    libraries = list(dict.fromkeys(library for alone in of_row.values() for library in alone))
    if not libraries:
        return ""
    rows = [[case, *(short(alone.get(library)) for library in libraries)] for case, alone in of_row.items()]
    return "**The libraries alone**, us\n\n" + doc_section.markdown(["case", *libraries], rows)


def missing(lines):
    notes = dict.fromkeys(note for line in lines for note in line.get("notes", []))
    return "Missing: " + "; ".join(notes) + "." if notes else ""


def streams(lines):
    shapes = dict.fromkeys(f"{line['peer']} ({line['library']}'s slices)" for line in lines if line["row"] == "stream")
    return "The fastest stream: " + "; ".join(shapes) + "." if shapes else ""


def section(lines):
    fronts = list(dict.fromkeys(line["library"] for line in lines))
    rounds = max((line.get("pairs", 0) for line in lines), default=0)
    busy = lines[0]["load"] >= QUIET_LOAD
    parts = [f"{doc_section.source()}, {rounds} rounds on {os.cpu_count()} processors; load average before the run {lines[0]['load']}."
             + (" **Provisional: the machine had other work.**" if busy else "")]
    for row, title in TITLES.items():
        of_row = [line for line in lines if line["row"] == row]
        if of_row:
            judged = [line for line in of_row if line["met"] is not None]
            score = f": {sum(line['met'] for line in judged)} of {len(judged)} met" if judged else ""
            parts.append(f"**{title}**{score}\n\n{row_table(of_row, fronts)}")
    parts += [streams(lines), alone_table(lines), missing(lines)]
    return "\n\n".join(part for part in parts if part)


def read_lines(path):
    with open(path, encoding="utf-8") as source:
        lines = [json.loads(line) for line in source if line.startswith("{")]
    if not lines:
        sys.exit(f"{path} has no lines")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="lines", type=Path)
    parser.add_argument("--figures", action="store_true")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build folder")
    options = parser.parse_args()
    name = "net-figures" if options.figures else "net"
    path = options.lines or run_benchmark(options.build, options.build / "bench" / f"{name}.jsonl", *(["--figures"] if options.figures else []))
    lines = read_lines(path)
    if options.figures:
        doc_section.update(DOC, name, "bench/net/update_docs.py --figures", figure_tables.section(lines, QUIET_LOAD))
        figure_tables.draw(lines, ROOT / "docs" / "figures")
    else:
        doc_section.update(DOC, name, "bench/net/update_docs.py", section(lines))
    print(f"wrote {DOC.relative_to(ROOT)}: {len(lines)} lines")


main()
