"""Text between markers in a document, written by a tool: nothing there is typed by hand."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class NoMarkers(Exception):
    """The document has no such section."""


def markers(name, writer):
    return f"<!-- {name}: written by {writer} -->", f"<!-- end of {name} -->"


def replaced(text, name, writer, section):
    """The document's text with another section of that name."""
    begin, end = markers(name, writer)
    head, begun, rest = text.partition(begin)
    _, ended, tail = rest.partition(end)
    if not begun or not ended:
        raise NoMarkers(f"there is no section '{begin}' ... '{end}'")
    return f"{head}{begin}\n\n{section.strip()}\n\n{end}{tail}"


def update(document, name, writer, section):
    document = Path(document)
    document.write_text(replaced(document.read_text(encoding="utf-8"), name, writer, section), encoding="utf-8")


def source():
    """Of which source figures are that are taken now: they outlive it in a document."""
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    changed = subprocess.run(["git", "status", "--porcelain", "--untracked-files=no", "src", "fronts", "include", "lab"], cwd=ROOT,
                             stdout=subprocess.PIPE, text=True, check=True).stdout
    return f"commit {head}{' with changes' if changed else ''}"


def markdown(heading, rows, left=1):
    """A table; its first columns are to the left, the others to the right."""
    rule = "|" + "---|" * left + "--:|" * (len(heading) - left)
    return "\n".join(["| " + " | ".join(heading) + " |", rule, *("| " + " | ".join(row) + " |" for row in rows)])
