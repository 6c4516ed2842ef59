"""The lines of a benchmark, from a run of it or from an earlier one's, for what writes them into a document."""

import argparse
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(name, keep):
    keep.parent.mkdir(parents=True, exist_ok=True)
    with open(keep, "w", encoding="utf-8") as out:
        subprocess.run(["build/bin/farsum", "bench", name, "--json"], cwd=ROOT, stdout=out, check=True)
    return keep


def read(path):
    with open(path, encoding="utf-8") as source:
        return [json.loads(line) for line in source if line.startswith("{")]


def asked_for(name, description):
    """Of the file that the command line names with --from, else of a run, whose lines are kept in build/bench."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="lines", type=Path)
    options = parser.parse_args()
    return read(options.lines or run(name, ROOT / "build" / "bench" / f"{name}.jsonl"))
