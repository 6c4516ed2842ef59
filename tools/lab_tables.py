"""The tables of docs/results/lab.md from the records of lab programs. A run is a dict: program, mpi, farsum, memory and mode where the run
was of one only, ended ("", or why it has not all records), complaint (the program's own sentence about that), records (what the
program printed as JSON lines)."""

import json
import re

from doc_section import markdown

MEMORIES = {"allocate": "allocated", "create": "user"}
MODE_COLUMNS = ("without", "with")
BARE = "bare"  # the counter that is a locked addition to shared memory


def read_records(text):
    """The JSON lines of an output; what else a launcher or a library says is passed over."""
    records = []
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def complaint(text):
    """What a lab program says before it aborts; "" where it says nothing."""
    found = re.search(r"^.*?rank \d+: (.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else ""


class Runs:
    """Finds the record of a measurement among all runs."""

    def __init__(self, runs):
        self.runs = runs

    def of(self, program):
        return Runs([run for run in self.runs if run["program"] == program])

    def libraries(self):
        return list(dict.fromkeys(run["mpi"] for run in self.runs))

    def versions(self):
        """Library -> what it calls itself."""
        return {run["mpi"]: record["library"] for run in self.runs for record in run["records"] if "library" in record}

    def find(self, mpi, farsum, **fields):
        """(record, "") or (None, why there is none)."""
        why = ""
        for run in self.runs:
            if run["mpi"] != mpi or run["farsum"] != farsum:
                continue
            for record in run["records"]:
                if all(record.get(name) == value for name, value in fields.items()):
                    return record, ""
            if all(run.get(name) in (None, fields.get(name)) for name in ("memory", "mode")):
                why = why or run["ended"]
        return None, why

    def values(self, name):
        """The different values of a field of measured records, as they came."""
        return list(dict.fromkeys(record[name] for run in self.runs for record in run["records"]
                                  if name in record and "excluded" not in record))


def short_number(value):
    if value >= 1e6:
        return f"{value / 1e6:.3g} M"
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}" if value >= 0.01 else f"{value:.2g}"


def cell(found, measure):
    """The median of a measure, or why there is none."""
    record, why = found
    if record is None:
        return why or "-"
    if "not_available" in record:
        return "n/a"
    return short_number(record[measure]["median"])


def ratio(above, below, measure):
    """Of the medians of two records, where both were measured."""
    above, below = above[0], below[0]
    if not above or not below or measure not in above or measure not in below or below[measure]["median"] == 0:
        return "-"
    return f"{above[measure]['median'] / below[measure]['median']:.2g}"


def counter(runs, program):
    """Microseconds to draw a number, the three cases beside one another, without and with Farsum."""
    own = runs.of(program)
    heading = ["library", "memory", "tasks", "counter", *(f"{mode}: {case}" for mode in MODE_COLUMNS for case in ("1", "2", "3", "1/2"))]
    rows = []
    for mpi in own.libraries():
        for memory, memory_words in MEMORIES.items():
            for tasks in own.values("tasks"):
                for kind in own.values("implementation"):
                    if kind == BARE:
                        continue
                    row = [mpi, memory_words, tasks, kind]
                    for farsum in (False, True):
                        found = [own.find(mpi, farsum, memory=memory, tasks=tasks, implementation=kind, case=case)
                                 for case in (1, 2, 3)]
                        row += [*(cell(one, "get_us") for one in found), ratio(found[0], found[1], "get_us")]
                    rows.append(row)
    return markdown(heading, rows, 4)


def numbers_after(runs):
    """Case 1 on allocated memory: a number after one of the own rank and after one of another, beside the processor's own addition."""
    own = runs.of("counter")
    columns = [("fetch-op", False, "without"), ("fetch-op", True, "with"), (BARE, True, BARE)]
    measures = {"get_us_after_own": "after own", "get_us_after_another": "after another's"}
    heading = ["library", "tasks", *(f"{words}: {after}" for _, _, words in columns for after in measures.values())]
    rows = [[mpi, tasks, *(cell(own.find(mpi, farsum, memory="allocate", tasks=tasks, implementation=kind, case=1), measure)
                           for kind, farsum, _ in columns for measure in measures)]
            for mpi in own.libraries() for tasks in own.values("tasks")]
    return markdown(heading, rows, 2)


def randomaccess(runs, op, memory):
    """Million updates a second."""
    own = runs.of("randomaccess")
    libraries = own.libraries()
    heading = ["updates", "depth", *(f"{mpi} {mode}" for mpi in libraries for mode in MODE_COLUMNS)]
    pairs = dict.fromkeys((record["mode"], record["depth"]) for run in own.runs for record in run["records"] if "depth" in record)
    order = {mode: place for place, mode in enumerate(own.values("mode"))}
    rows = [[mode, str(depth), *(cell(own.find(mpi, farsum, mode=mode, depth=depth, op=op, memory=memory), "million_updates_per_s")
                                 for mpi in libraries for farsum in (False, True))]
            for mode, depth in sorted(pairs, key=lambda pair: (order[pair[0]], pair[1]))]
    return markdown(heading, rows)


def automaton(runs):
    """Speed-up over the sequential program, and the time in two-sided's beside it."""
    own = runs.of("automaton")
    libraries = own.libraries()
    heading = ["exchange", "memory", *(f"{mpi} {mode}" for mpi in libraries for mode in MODE_COLUMNS)]

    def cells(mode, memory):
        for mpi in libraries:
            for farsum in (False, True):
                found = own.find(mpi, farsum, mode=mode, memory=memory)
                beside = "" if found[0] is None or mode == "two-sided" else f" ({found[0]['time_over_two_sided']['median']:.2f})"
                yield cell(found, "speedup") + beside

    rows = []
    for mode in own.values("mode"):
        for memory in ["-"] if mode == "two-sided" else MEMORIES:
            rows.append([mode, MEMORIES.get(memory, ""), *cells(mode, memory)])
    return markdown(heading, rows, 2)


def unfinished(runs):
    """One line for each run that has not all its records."""
    lines = []
    for run in runs.runs:
        if run["ended"]:
            part = ", ".join(word for word in (run.get("mode"), MEMORIES.get(run.get("memory"))) if word)
            said = f" ({run['complaint']})" if run["complaint"] else ""
            lines.append(f"- {run['program']}{f' ({part})' if part else ''} on {run['mpi']} "
                         f"{'with' if run['farsum'] else 'without'} Farsum: {run['ended']}{said}")
    return "\n".join(lines)


def section(runs, conditions):
    """All that stands between the markers."""
    runs = Runs(runs)
    names = ", ".join(f"`{name}` is {version}" for name, version in runs.versions().items())
    parts = [conditions + (f" {names}." if names else "")]
    for program, language in (("counter", "C"), ("counter-fortran", "Fortran")):
        if runs.of(program).runs:
            parts.append(f"### Counter in {language}: microseconds to draw a number\n\n{counter(runs, program)}")
    if BARE in runs.of("counter").values("implementation"):
        parts.append(f"### Counter on allocated memory, case 1: after a number of the own rank and after another's\n\n{numbers_after(runs)}")
    if runs.of("randomaccess").runs:
        for op in runs.of("randomaccess").values("op"):
            for memory, words in MEMORIES.items():
                parts.append(f"### RandomAccess, {op}, {words} memory: million updates a second\n\n{randomaccess(runs, op, memory)}")
    if runs.of("automaton").runs:
        parts.append(f"### Automaton: speed-up over the sequential program (time beside two-sided's)\n\n{automaton(runs)}")
    if unfinished(runs):
        parts.append(f"### Runs that did not end as they should\n\n{unfinished(runs)}")
    return "\n\n".join(parts)
