"""Sums `perf report --sort comm,dso -n` into the parts that docs/results/nwchem.md speaks of."""

import re

from doc_section import markdown

# The first pattern that a shared object's name matches has its samples.
PARTS = {
    "linear algebra": r"openblas|libblas|liblapack|libscalapack",
    "NWChem": r"^nwchem|^libm\.|libgfortran",
    "Farsum": r"farsum",
    "MPI library": r"^mca_|libmpi|libopen-|libmpich|libuc[pts]\.|libucm|libuct|libpmix|libfabric|libevent|libhwloc",
    "kernel": r"^\[",
    "C library": r"^libc\.|^ld-|libstdc",
    "other": r"",
}


def part_of(name):
    return next(part for part, pattern in PARTS.items() if re.search(pattern, name))


def seconds_by_part(report, ranks, frequency):
    """Seconds of one rank, on average, in the order of size; the launcher's are left out."""
    samples = {}
    for count, name in re.findall(r"^\s*[\d.]+%\s+(\d+)\s+nwchem\S*\s+(\S+)", report, re.MULTILINE):
        samples[part_of(name)] = samples.get(part_of(name), 0) + int(count)
    return dict(sorted(((part, count / frequency / ranks) for part, count in samples.items()), key=lambda item: -item[1]))


def table(columns):
    """columns: heading -> seconds by part; half of one rank belongs beside two."""
    rows = [[part, *(f"{seconds.get(part, 0):.2f}" for seconds in columns.values())] for part in PARTS]
    total = ["sum", *(f"{sum(seconds.values()):.2f}" for seconds in columns.values())]
    return markdown(["seconds of a rank", *columns], [*rows, total])
