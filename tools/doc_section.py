"""Text between markers in a document, written by a tool: nothing there is typed by hand."""

from pathlib import Path


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


def markdown(heading, rows, left=1):
    """A table; its first columns are to the left, the others to the right."""
    rule = "|" + "---|" * left + "--:|" * (len(heading) - left)
    return "\n".join(["| " + " | ".join(heading) + " |", rule, *("| " + " | ".join(row) + " |" for row in rows)])
