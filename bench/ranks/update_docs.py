#!/usr/bin/python3 -B
"""Writes the figures of "By ranks" in docs/BENCHMARKS.md from a run, between its markers. Nothing there is typed by hand.

  bench/ranks/update_docs.py                     runs `build/bin/farsum bench ranks --json` (minutes) and keeps its lines in build/bench/
  bench/ranks/update_docs.py --from LINES.jsonl  takes the lines of an earlier run, of whatever machine
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOC = ROOT / "docs" / "BENCHMARKS.md"
COMMAND = ["build/bin/farsum", "bench", "ranks", "--json"]


def run_benchmark(keep):
    keep.parent.mkdir(parents=True, exist_ok=True)
    with open(keep, "w", encoding="utf-8") as out:
        subprocess.run(COMMAND, cwd=ROOT, stdout=out, check=True)
    return keep


def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def cell(line):
    """Ours, and the same library alone; a missed aim in bold."""
    if line is None:
        return ""
    ours = f"**{number(line['ours'])}**" if line["met"] is False else number(line["ours"])
    return ours if line["library"] == "native" else f"{ours} ({number(line['alone'])})"


def table(lines, libraries):
    rows = ["| case | unit | bare | aim | " + " | ".join(libraries) + " |", "|---|---|--:|--:|" + "---|" * len(libraries)]
    for name in dict.fromkeys(line["case"] for line in lines):
        by_library = {line["library"]: line for line in lines if line["case"] == name}
        one = next(iter(by_library.values()))
        aim = "" if one["aim_figure"] is None else f"{'>=' if one['better'] == 'higher' else '<='} {number(one['aim_figure'])}"
        cells = " | ".join(cell(by_library.get(library)) for library in libraries)
        rows.append(f"| {name} | {one['unit']} | {number(one['limit'])} | {aim} | {cells} |")
    return "\n".join(rows)


def machine(header):
    versions = ", ".join(f"{name} ({version})" for name, version in header["libraries"].items())
    return f"{header['processor']}, {header['usable_processors']} processors that may be used; {header['system']}; {versions}."


def notes(lines):
    told = dict.fromkeys(f"{line['case']}: {line['note']}" for line in lines if "note" in line)
    return "\n\nMissing: " + "; ".join(told) + "." if told else ""


def section(lines):
    header = next((line for line in lines if "processor" in line), None)
    rows = [line for line in lines if "row" in line]
    libraries = list(dict.fromkeys(line["library"] for line in rows))
    judged = [line["met"] for line in rows if line["met"] is not None]
    parts = [machine(header)] if header else []
    parts.append(f"{sum(judged)} of {len(judged)} aims met.")
    parts.append(table(rows, libraries) + notes(rows))
    return "\n\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="lines", type=Path)
    options = parser.parse_args()
    path = options.lines or run_benchmark(ROOT / "build" / "bench" / "ranks.jsonl")
    with open(path, encoding="utf-8") as source:
        lines = [json.loads(line) for line in source if line.startswith("{")]
    begin, end = "<!-- ranks: written by bench/ranks/update_docs.py -->", "<!-- end of ranks -->"
    head, _, rest = DOC.read_text(encoding="utf-8").partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        sys.exit(f"{DOC} has no markers for ranks")
    DOC.write_text(f"{head}{begin}\n\n{section(lines)}\n\n{end}{tail}", encoding="utf-8")
    print(f"wrote {DOC.relative_to(ROOT)}: {len(lines)} lines")


main()
