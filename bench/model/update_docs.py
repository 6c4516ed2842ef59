#!/usr/bin/python3 -B
"""Writes the figures of "Choosing paths" in docs/results/benchmarks.md from a run, between its markers. Nothing there is typed by hand.

  bench/model/update_docs.py                     runs `build/bin/farsum bench model --json` (two minutes) and keeps its lines in build/bench/
  bench/model/update_docs.py --from LINES.jsonl  takes the lines of an earlier run on this machine
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import doc_section  # noqa: E402
from regret import AIM, PLACE_TEXT, mean_text, size_text  # noqa: E402

DOC = ROOT / "docs" / "results" / "benchmarks.md"
QUIET_LOAD = 0.5


def run_benchmark(build, keep):
    keep.parent.mkdir(parents=True, exist_ok=True)
    with open(keep, "w", encoding="utf-8") as out:
        subprocess.run([build / "bin" / "farsum", "bench", "--json", "model"], stdout=out, check=True)
    return keep


def time_text(us):
    return f"{us:.0f}" if us >= 100 else f"{us:.3g}"


def cell(row):
    regret = f"**{row['regret']:.2f}**" if row["regret"] > AIM else f"{row['regret']:.2f}"
    best = "" if row["best"] == row["taken"] else f" ({row['best']} {time_text(row['best_us'])})"
    return f"{row['taken']} {time_text(row['auto_us'])}{best}: {regret}"


def place_table(rows):
    sizes = sorted({row["bytes"] for row in rows})
    lines = {}
    for row in rows:
        key = (row["memory"], row["operation"], str(row["burst"]), str(row["origins"]))
        lines.setdefault(key, {})[row["bytes"]] = cell(row)
    heading = ["memory", "operation", "burst", "origins", *(size_text(size) for size in sizes)]
    return doc_section.markdown(heading, [[*key, *(cells.get(size, "") for size in sizes)] for key, cells in lines.items()], 4)


def section(lines):
    begin = next(line for line in lines if "choices" in line)
    busy = " **Provisional: the machine had other work.**" if begin["load"] >= QUIET_LOAD else ""
    text = [f"{begin['source']}, {begin['rounds']} rounds; load average before the run {begin['load']:.1f}.{busy} "
            f"SHA-256 of the choices, taken before: `{begin['sha256'][:16]}`."]
    text += [f"- {mean_text(line)}".replace("MISSED", "**missed**") for line in lines if "geometric_mean" in line]
    text += [f"- {PLACE_TEXT[line['place']]}: skipped: {line['skipped']}" for line in lines if "skipped" in line]
    text = [text[0], "\n".join(text[1:])]
    for place, title in PLACE_TEXT.items():
        rows = [line for line in lines if line.get("place") == place and "regret" in line]
        if rows:
            text.append(f"**{title[0].upper()}{title[1:]}**, us an operation: regret\n\n{place_table(rows)}")
    return "\n\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="lines", type=Path)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help=argparse.SUPPRESS)
    options = parser.parse_args()
    path = options.lines or run_benchmark(options.build, options.build / "bench" / "model.jsonl")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
    doc_section.update(DOC, "model", "bench/model/update_docs.py", section(lines))
    print(f"wrote {DOC.relative_to(ROOT)}")


main()
