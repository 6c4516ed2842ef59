"""What the figures of `farsum bench reduce` share: panels from its lines, two in a row, in one file."""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from svg_figures import load_pyplot, save  # noqa: E402


def label_axes(axes, title, x, y):
    axes.set_title(title, fontsize=9)
    axes.set_xlabel(x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)
    axes.grid(alpha=0.3)


def elements_text(count):
    return f"{count} element{'' if count == 1 else 's'}"


def draw_panels(description, usual_name, draws, more=lambda lines: []):
    """The program: reads lines and a file's name from the command line. Each of `draws`, and of what `more` makes of the
    lines, is given axes and all lines."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", type=Path)
    parser.add_argument("--out", type=Path, default=Path(usual_name))
    options = parser.parse_args()
    lines = [json.loads(line) for line in options.lines.read_text(encoding="utf-8").splitlines()]
    pyplot = load_pyplot()
    if pyplot is None:
        sys.exit(f"{Path(sys.argv[0]).name}: there is no matplotlib here")
    pyplot.rcParams["svg.fonttype"] = "none"
    draws = [*draws, *more(lines)]
    rows = (len(draws) + 1) // 2
    figure, panels = pyplot.subplots(rows, 2, figsize=(10, 4 * rows))
    for axes, draw in zip(panels.flat, draws):
        draw(axes, lines)
    for axes in panels.flat[len(draws):]:
        axes.axis("off")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    save(pyplot, figure, options.out)
    print(f"wrote {options.out}", file=sys.stderr)
