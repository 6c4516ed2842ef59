#!/usr/bin/python3 -B
"""Writes the tables of docs/results/reductions.md from runs of `farsum bench reduce`, each between markers of its own.

  bench/reduce/update_docs.py                            runs all of them, some 40 minutes, and keeps their lines in build/bench/
  bench/reduce/update_docs.py node hosts                 runs these alone
  bench/reduce/update_docs.py node --from LINES.jsonl --commit 9fd6ed1
                                                         takes the lines of an earlier run on this machine
"""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import bench_lines  # noqa: E402
import doc_section  # noqa: E402

DOC = ROOT / "docs" / "results" / "reductions.md"
WRITER = "bench/reduce/update_docs.py"
# Of each section, how it is measured.
SECTIONS = {
    "node": ["--measure", "--ranks", "2", "--pairs", "7", "--seconds", "0.05"],
    "hosts": ["--measure", "--hosts", "2", "--pairs", "3", "--seconds", "0.05"],
    "overlap": ["--overlap", "--dedicated", "--pairs", "3"],
    "overlap-hosts": ["--overlap", "--hosts", "2", "--pairs", "3"],
    "steady": ["--steady", "--dedicated", "--libraries", "mpich5,openmpi5,impi", "--seconds", "25"],
}


def number(value):
    return "" if value is None else f"{value:.4g}"


def judged(row):
    if row["aim"] is None:
        return ""
    return "met" if row["met"] else "**missed**"


def table(rows):
    heading = ["case", "ours", "best of the others", "unit", "ratio", "aim", ""]
    lines = []
    for row in rows:
        best = f"{number(row['limit'])} ({row['peer']})" if row["limit"] is not None else ""
        aim = "" if row["aim"] is None else f"{'<=' if row['better'] == 'lower' else '>='} {number(row['aim'])}"
        lines.append([row["case"], number(row["ours"]), best, row["unit"], number(row["ratio"]), aim, judged(row)])
    return doc_section.markdown(heading, lines)


def lines_of(section):
    kept = ROOT / "build" / "bench" / f"reduce-{section}.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with open(kept, "w", encoding="utf-8") as out:
        subprocess.run(["build/bin/farsum", "bench", "reduce", *SECTIONS[section], "--json"], cwd=ROOT, stdout=out, check=True)
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; all if none")
    parser.add_argument("--from", dest="lines", type=Path, help="of one section")
    parser.add_argument("--commit", help="that those are of")
    options = parser.parse_args()
    sections = options.sections or list(SECTIONS)
    if any(section not in SECTIONS for section in sections) or (options.lines and len(sections) != 1):
        parser.error(f"sections are {', '.join(SECTIONS)}, and --from is for one of them")
    for section in sections:
        print(f"{section} ...", flush=True)
        rows = bench_lines.read(options.lines or lines_of(section))
        command = " ".join(["farsum bench reduce", *SECTIONS[section]])
        source = f"commit {options.commit}" if options.commit else doc_section.source()
        doc_section.update(DOC, section, WRITER, f"`{command}`, {source}\n\n{table(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
