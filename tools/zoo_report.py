"""What the zoo's results look like: a table in the terminal, and docs/results/zoo.md with its pictures."""

import json
from xml.sax.saxutils import escape

import doc_section
import source_tree
from zoo_runs import RIGHT, WORST_FIRST, Cell

PAGE = source_tree.ROOT / "docs" / "results" / "zoo.md"
FIGURES = source_tree.ROOT / "docs" / "figures"
WRITER = "tools/zoo"


def read(path):
    return [Cell.from_json(record) for record in json.loads(path.read_text(encoding="utf-8"))] if path.exists() else []


def write(path, cells, keep):
    """Each cell stands once; those that were run now go before earlier ones where those are kept."""
    earlier = read(path) if keep else []
    ours = {cell.identity for cell in cells}
    everything = [cell for cell in earlier if cell.identity not in ours] + cells
    path.write_text(json.dumps([cell.as_json() for cell in everything], indent=1) + "\n", encoding="utf-8")


def outcome(cell, farsum):
    """Median and range of the times of runs that were right, or what became of one that was not."""
    times, verdict = cell.times(farsum), cell.verdict(farsum)
    if not cell.of(farsum):
        return "-"
    shown = f"{cell.median(farsum):.2f}" + (f" ({times[0]:.2f} to {times[-1]:.2f})" if len(times) > 1 else "") if times else ""
    if verdict == RIGHT:
        return shown + answers(cell, farsum)
    said = [run.verdict for run in cell.of(farsum)]
    if said.count(verdict) == len(said):
        return verdict
    bad = ", ".join(f"{one} in {said.count(one)}" for one in WORST_FIRST if one in said and one != RIGHT)
    return f"{bad} of {len(said)}" + (f"; {shown}" if times else "")


def answers(cell, farsum):
    """What the runs came to, where that may differ."""
    said = [run.answer for run in cell.of(farsum) if run.answer]
    return f"; {', '.join(dict.fromkeys(said))}" if said else ""


def ratio(cell):
    """None where either was wrong in any run: a wrong answer has no time to compare with."""
    if cell.verdict(False) != RIGHT or cell.verdict(True) != RIGHT:
        return None
    return cell.median(True) / cell.median(False)


def row(cell):
    value = ratio(cell)
    return [cell.title, f"{cell.library} {cell.version}", str(cell.ranks), outcome(cell, False), outcome(cell, True),
            "" if value is None else f"{value:.2f}", str(cell.windows), amount(cell.operations), amount(cell.bytes), " ".join(cell.paths),
            "; ".join(cell.left)]


HEADING = ["program", "MPI", "ranks", "alone, s", "with Farsum, s", "ratio", "windows", "operations", "bytes", "paths",
           "left to the library"]


def amount(number):
    """Three digits and a unit of thousands."""
    for unit in ("", " k", " M", " G"):
        if number < 1000:
            return f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:.3g} T"


def plain_table(cells):
    rows = [HEADING, *map(row, cells)]
    widths = [max(len(line[i]) for line in rows) for i in range(len(HEADING))]
    return "\n".join("  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip() for line in rows)


def ordered(cells, programs):
    names = list(programs)
    return sorted((cell for cell in cells if cell.program in programs), key=lambda cell: (names.index(cell.program), cell.library, cell.ranks))


def commit_of(cell):
    return cell.commit or "unknown"


def section(cells):
    """The commit that was measured stands above the table, or in each row where rows differ in it."""
    commits = {commit_of(cell) for cell in cells}
    if len(commits) > 1:
        return doc_section.markdown([*HEADING, "commit"], [[*row(cell), commit_of(cell)] for cell in cells], left=2)
    return "".join(f"Commit measured: {commit}.\n\n" for commit in commits) + doc_section.markdown(HEADING, map(row, cells), left=2)


def what_they_are(programs):
    return doc_section.markdown(["program", "from", "its windows", "name"],
                                [[one.title, one.origin, one.windows, f"`{one.name}`"] for one in programs.values()], left=4)


def update_docs(cells, programs):
    cells = ordered(cells, programs)
    doc_section.update(PAGE, "programs", WRITER, what_they_are(programs))
    for count, name in ((1, "one node"), (2, "two hosts")):
        doc_section.update(PAGE, name, WRITER, section([cell for cell in cells if cell.hosts == count]))
    (FIGURES / "zoo.svg").write_text(bars(cells), encoding="utf-8")


INK, GREY, GREEN, RED = "#222222", "#9a9a9a", "#3f8f4f", "#c0392b"
NAME_WIDTH, BAR_WIDTH, ROW = 330, 330, 19


def bars(cells):
    """For each cell a bar of what the program takes with Farsum as a share of what it takes alone; where it is not right alone or with
    Farsum, that is said in the bar's place."""
    height = 60 + ROW * len(cells)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{NAME_WIDTH + BAR_WIDTH + 150}" height="{height}" '
             f'viewBox="0 0 {NAME_WIDTH + BAR_WIDTH + 150} {height}" font-family="sans-serif" font-size="12">',
             "<title>Time of programs with Farsum as a share of their time alone</title>",
             f'<rect width="100%" height="{height}" fill="white"/>',
             text(NAME_WIDTH, 20, "time with Farsum; the grey bar is the time alone", "start")]
    for place, cell in enumerate(cells):
        parts += bar_of(cell, 34 + ROW * place)
    return "\n".join([*parts, "</svg>"]) + "\n"


def text(x, y, words, anchor="end", colour=INK):
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'


def box(x, y, width, height, colour):
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{colour}"/>'


def bar_of(cell, y):
    where = ", 2 hosts" if cell.hosts > 1 else ""
    parts = [text(NAME_WIDTH - 8, y + 11, f"{cell.title}, {cell.library}{where}")]
    if cell.verdict(True) != RIGHT:
        return parts + [box(NAME_WIDTH, y + 4, 3, 8, RED),
                        text(NAME_WIDTH + 8, y + 12, f"with Farsum: {outcome(cell, True)}", "start", RED)]
    alone, farsum = cell.median(False), cell.median(True)
    if alone is None or cell.verdict(False) != RIGHT:
        return parts + [box(NAME_WIDTH, y + 4, 3, 8, GREEN),
                        text(NAME_WIDTH + 8, y + 12, f"{farsum:.1f} s; alone: {cell.verdict(False) or 'not run'}", "start", RED)]
    longest = max(alone, farsum)
    parts += [box(NAME_WIDTH, y + 2, BAR_WIDTH * alone / longest, 5, GREY), box(NAME_WIDTH, y + 8, BAR_WIDTH * farsum / longest, 5, GREEN)]
    return parts + [text(NAME_WIDTH + BAR_WIDTH + 8, y + 11, f"{alone:.1f} s, {farsum:.1f} s", "start")]
