#!/usr/bin/python3 -B
"""Writes the figures of "By ranks" in docs/results/benchmarks.md from a run, between the markers for so many processors. Nothing there is
typed by hand.

  bench/ranks/update_docs.py                     runs `build/bin/farsum bench ranks --json` (minutes) and keeps its lines in build/bench/
  bench/ranks/update_docs.py --from LINES.jsonl  takes the lines of an earlier run, of whatever machine
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import bench_lines  # noqa: E402
import doc_section  # noqa: E402

DOC = ROOT / "docs" / "results" / "benchmarks.md"


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
    lines = bench_lines.asked_for("ranks", __doc__)
    processors = next(line["usable_processors"] for line in lines if "processor" in line)
    doc_section.update(DOC, f"ranks on {processors} processors", "bench/ranks/update_docs.py", section(lines))
    print(f"wrote {DOC.relative_to(ROOT)}: {len(lines)} lines")


main()
