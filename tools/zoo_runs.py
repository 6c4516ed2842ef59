"""How programs of the zoo are started, alone and with Farsum in front, on this machine or on test hosts, and what came of it."""

import importlib.util
import json
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace

import hosts_mpi
import source_tree
from conformance_cases import MARK, Job, last_lines

ZOO = source_tree.ROOT / "zoo"
sys.path.insert(0, str(ZOO))

import pypi  # noqa: E402, F401
from program import Missing, NoAnswer, NotBuilt  # noqa: E402, F401

RIGHT, WRONG, FAILED, UNFINISHED = "right", "WRONG", "FAILED", "not finished"
# The answer was right, and not by Farsum alone, or not over hosts.
NO_WINDOW, LEFT, ONE_HOST = "no window", "not all windows", "one host"
# An answer that is wrong may go unseen, a failure does not.
WORST_FIRST = (WRONG, FAILED, UNFINISHED, NO_WINDOW, LEFT, ONE_HOST, RIGHT)
# What Debian's MPICH may need to end over hosts when all has been said (docs/notes/hosts.md); the program's answer stands.
END_LIMIT_S = 5


def load_programs():
    """All programs of the zoo by name: the lists PROGRAMS of the files of zoo/programs, in the order of the files' names."""
    programs = {}
    for path in sorted((ZOO / "programs").glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"zoo_programs.{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        programs.update((program.name, program) for program in module.PROGRAMS)
    return programs


def built_commit(farsum):
    """The commit that a built `farsum` names; '' where it was built outside a repository."""
    said = subprocess.run([str(farsum), "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = re.search(r"\(commit ([^)]+)\)", said)
    return found.group(1) if found else ""


@dataclass
class Run:
    """One start of one program."""
    farsum: bool
    seconds: float
    verdict: str
    remark: str = ""
    answer: str = ""
    tail: list = field(default_factory=list)


@dataclass
class Cell:
    """All starts of one program under one library on so many hosts, and what the statistics of one said of Farsum's windows."""
    program: str
    title: str
    library: str
    version: str
    hosts: int
    ranks: int
    limit_s: float
    runs: list = field(default_factory=list)
    windows: int = 0
    operations: int = 0
    to_other_hosts: int = 0  # of these
    bytes: int = 0
    paths: list = field(default_factory=list)
    left: list = field(default_factory=list)  # what was left to the library, a sentence each
    commit: str = ""  # that Farsum was built from; '' where it is not known

    @property
    def identity(self):
        return self.program, self.library, self.hosts, self.ranks

    def of(self, farsum):
        return [run for run in self.runs if run.farsum == farsum]

    def verdict(self, farsum):
        """That of the worst run; '' where none was started."""
        return min((run.verdict for run in self.of(farsum)), key=WORST_FIRST.index, default="")

    def times(self, farsum):
        return sorted(run.seconds for run in self.of(farsum) if run.verdict == RIGHT)

    def median(self, farsum):
        """Seconds; None where no run was right."""
        times = self.times(farsum)
        return statistics.median(times) if times else None

    def as_json(self):
        return asdict(self)

    @staticmethod
    def from_json(record):
        return Cell(**{**record, "runs": [Run(**run) for run in record["runs"]]})


class Starter:
    """Starts one prepared program under one library, on this machine or over hosts of its own."""

    def __init__(self, program, library, prepared, ranks, farsum, logs, hosts=None):
        self.program, self.library, self.prepared, self.ranks = program, library, prepared, ranks
        self.farsum, self.logs, self.hosts = farsum, logs, hosts

    def environment(self, with_farsum):
        """What is said to every program: one thread a rank. Open MPI's daemons do not see that test hosts share the processors;
        Farsum tells them, and here they are told without it, too."""
        wanted = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **self.prepared.environment}
        if not with_farsum:
            wanted.update(self.prepared.alone)
        if self.hosts and not with_farsum:
            wanted["OMPI_MCA_mpi_yield_when_idle"] = "1"
        return wanted

    def words(self, with_farsum, statistics_file, mark):
        front = [str(self.farsum), "mpi"] if with_farsum else []
        if with_farsum and statistics_file:
            front += ["--json-stats", str(statistics_file)]
        program = [str(word) for word in self.prepared.words]
        if not self.hosts:
            return [*front, *self.library["mpirun"], "-n", str(self.ranks), *program]
        launch = hosts_mpi.launch_words(self.library, self.hosts.names(), -(-self.ranks // self.hosts.count))
        launch = [*launch[:-1], str(self.ranks)]
        # The mark, too, by which what is left of a job on other hosts is found.
        for name, value in {**self.environment(with_farsum), MARK: mark}.items():
            launch += hosts_mpi.handed_over(self.library["name"], name, value)
        return [*self.hosts.words("exec", "a"), *front, *launch, *program]

    def start(self, with_farsum, number, statistics_file=None):
        """One run; its log stays."""
        place = f"-{self.hosts.count}-hosts" if self.hosts else ""
        mode = "farsum" if with_farsum else "alone"
        log = self.logs / f"{self.program.name.replace('/', '-')}-{self.library['name']}-{self.ranks}{place}-{mode}-{number}.log"
        mark = str(uuid.uuid4())
        words = self.words(with_farsum, statistics_file, mark)
        case = SimpleNamespace(environment=self.environment(with_farsum), folder=self.prepared.folder, limit_s=self.program.limit_s,
                               program=self.prepared.words)
        with open(log, "w", encoding="utf-8") as sink:
            sink.write(shlex.join(words) + "\n")
            sink.flush()
            begin = time.monotonic()
            job = Job(words, case, sink, mark)
            status, ended = self.wait(job, log, with_farsum)
            job.end()
        seconds = ended - begin
        return self.judge(status, seconds, log.read_text(encoding="utf-8", errors="replace"), with_farsum)

    def wait(self, job, log, with_farsum):
        """The launcher's status, or None, and when it ended. A library that may not end over hosts gets a few seconds once its answer
        is there, and has ended when it was."""
        if with_farsum or not self.hosts or self.library["name"] not in hosts_mpi.MAY_NOT_END:
            return job.wait(lambda: False, 0), time.monotonic()
        answered = []

        def has_answered():
            if not answered and self.is_right(log.read_text(encoding="utf-8", errors="replace")):
                answered.append(time.monotonic())
            return bool(answered)

        status = job.wait(has_answered, END_LIMIT_S)
        if status is None and has_answered():
            return 0, answered[0]
        return status, time.monotonic()

    def is_right(self, text):
        try:
            return not self.program.wrong(text)
        except NoAnswer:
            return False

    def verdict(self, status, text):
        """The verdict and a remark. A wrong answer comes first: a program may end with an error because its own answer is wrong."""
        lacking = ""
        try:
            if remark := self.program.wrong(text):
                return WRONG, remark
        except NoAnswer as reason:
            lacking = str(reason)
        if status is None:
            return UNFINISHED, f"did not end within {self.program.limit_s:g} s"
        if status != 0:
            return FAILED, f"the launcher ended with {status}"
        return (FAILED, lacking) if lacking else (RIGHT, "")

    def judge(self, status, seconds, text, with_farsum):
        run = Run(with_farsum, round(seconds, 3), *self.verdict(status, text))
        run.answer = self.program.answer(text)
        if run.verdict != RIGHT:
            run.tail = last_lines(re.sub(r"\x1b\[[0-9;]*m", "", text), 8)
        return run


def read_statistics(path, cell):
    """Of a run's statistics: how many windows were Farsum's, what was done in them on which paths, what was left to the library."""
    cell.windows, cell.operations, cell.to_other_hosts, cell.bytes, paths, cell.left = 0, 0, 0, 0, set(), []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        record = json.loads(line)
        if record["kind"] == "run":
            cell.windows = record["windows"]
        elif record["kind"] == "left_to_library":
            cell.left.append(record["sentence"])
        elif record["kind"] == "operation" and record["path"] not in ("", "-"):
            paths.add(record["path"])
            cell.operations += record["count"]
            cell.to_other_hosts += record["network_count"]
            cell.bytes += record["bytes"]
    cell.paths = sorted(paths)


def missed(cell):
    """The verdict and a sentence where a right answer is not owed to Farsum, or not to several hosts; two empty ones else."""
    if cell.operations == 0:
        return NO_WINDOW, "; ".join(cell.left) or "nothing was done in a window that Farsum served"
    if cell.left:
        return LEFT, "; ".join(cell.left)
    if cell.hosts > 1 and cell.to_other_hosts == 0:
        return ONE_HOST, "no operation went to another host"
    return "", ""


def order_of(repeats):
    """Which of each pair goes first: alone, Farsum, Farsum, alone and so on, so that a drift of the machine meets both."""
    return [farsum for pair in range(repeats) for farsum in ((False, True) if pair % 2 == 0 else (True, False))]


def run_cell(starter, cell, repeats, say):
    """All runs of one cell: first one with Farsum whose statistics are read and whose time counts only where it is the only one, then
    pairs in turn. What did not end without Farsum is not started again."""
    with tempfile.TemporaryDirectory(prefix="farsum-zoo-") as folder:
        file = Path(folder) / "statistics.jsonl"
        first = starter.start(True, 0, file)
        read_statistics(file, cell)
    verdict, remark = missed(cell)
    if first.verdict == RIGHT and verdict:
        first.verdict, first.remark = verdict, remark
    say(f"    with Farsum: {first.verdict}, {cell.windows} windows, {cell.operations} operations {' '.join(cell.paths)} {first.remark}")
    if first.verdict != RIGHT or not repeats:
        cell.runs.append(first)
    for number, farsum in enumerate(order_of(repeats), 1):
        if not farsum and any(run.verdict == UNFINISHED for run in cell.of(False)):
            continue
        run = starter.start(farsum, number)
        cell.runs.append(run)
        say(f"    {'with Farsum' if farsum else 'alone':<11}: {run.verdict} after {run.seconds:.2f} s {run.answer} {run.remark}")
