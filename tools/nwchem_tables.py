"""The wall times in docs/results/benchmarks.md from the records in nwchem_evidence's results.json."""

from doc_section import markdown

WRONG_BY = 1e-7  # Hartree
RANKS = (1, 2, 4)
PATHS = ("auto", "caller", "owner")


def key_of(record):
    """What makes two records runs of the same thing."""
    return (*(record[name] for name in ("case", "mpi", "ranks", "farsum", "path", "switch", "energy_only")), record.get("hosts", 0))


def merged(earlier, later):
    """Records of both; of the same thing the later one."""
    return list({key_of(record): record for record in [*earlier, *later]}.values())


def cell(record):
    """Seconds of a run that gave the right numbers, else what became of it."""
    if record is None:
        return ""
    if record["verdict"] == "not finished":
        return f"> {record['limit_s']:g} s"
    if record["verdict"] == "FAILED":
        return "aborts" if (record["energy_error"] or 0) <= WRONG_BY else "wrong energy, aborts"
    if record["verdict"] == "WRONG":
        return "wrong"
    wall_s = record["command_s"] if record["wall_s"] is None else record["wall_s"]
    return f"{wall_s:.1f} s"


def find(records, case, mpi, ranks, farsum, path="auto"):
    wanted = (case, mpi, ranks, farsum, path, "", False, 0)
    return next((record for record in records if key_of(record) == wanted), None)


def cases(records, titles, mpis):
    """Without and with Farsum by number of ranks, and the best time with Farsum by half of the reference's."""
    heading = ["case", "MPI", *(f"{ranks} rank{'s' if ranks > 1 else ''}{words}" for ranks in RANKS for words in ("", ", Farsum"))]
    rows = [[title, mpi, *(cell(find(records, case, mpi, ranks, farsum)) for ranks in RANKS for farsum in (False, True))]
            for case, title in titles.items() for mpi in mpis]
    return markdown(heading, [row for row in rows if any(row[2:])], 2)


def paths(records, titles, mpis):
    """Two ranks with each FARSUM_PATH that was tried, of the cases where several were."""
    rows = []
    for case, title in titles.items():
        for mpi in mpis:
            tried = [find(records, case, mpi, 2, True, path) for path in PATHS]
            if sum(record is not None for record in tried) > 1:
                rows.append([title, mpi, *map(cell, tried)])
    return markdown(["2 ranks", "MPI", *(f"`{path}`" for path in PATHS)], rows, 2) if rows else ""


def section(records, titles, mpis):
    return "\n\n".join(part for part in (cases(records, titles, mpis), paths(records, titles, mpis)) if part)
