"""What a conformance case is, how it is run under one MPI library, and how its output is judged."""

import fnmatch
import os
import re
import select
import shlex
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from process_stacks import stacks_of

PASSED, FAILED, TIMED_OUT, UNBUILT, SKIPPED = "passed", "failed", "timed out", "not built", "skipped"
UNENDED = "did not end in the library's MPI_Finalize"
MARK = "FARSUM_CONFORMANCE_JOB"
TERMINATION_GRACE_S = 3
TAIL_LINES = 6
# A program that finds that this machine or library lacks what it is about.
SAYS_SKIPPED = re.compile(r"^SKIPPED: (.*)$", re.MULTILINE)
# What Farsum says on stderr is for people; a test that passes passes with it.
FARSUM_SAYS = re.compile(r"^\s*(\[[^]]*\]\s*)?farsum\b", re.IGNORECASE)
# What Open MPI 5's wheel says at every window, and mpirun when its remote shell was quicker than itself: no complaints of a test.
LIBRARY_SAYS = re.compile(r"OSC UCX component priority set inside component query failed|plm:rsh: Warning: setpgid\(")


def cache_home():
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "farsum" / "conformance"


def last_lines(text, count=TAIL_LINES):
    """The end of what was said; of what says WRONG the beginning, which launchers follow with much of their own."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return [line for line in lines if line.startswith("WRONG")][:count] or lines[-count:]


def judged_by_no_errors(status, output):
    """As MPICH's runtests: ' No Errors' is printed, nothing else is, and the launcher succeeds."""
    seen = False
    for line in output.splitlines():
        if re.fullmatch(r"\s*No [Ee]rrors\s*", line):
            seen = True
        elif line.strip() and not re.fullmatch(r"\s*Test Passed\s*", line) and "FORTRAN STOP" not in line and \
                not FARSUM_SAYS.match(line) and not LIBRARY_SAYS.search(line):
            return False
    return seen and status == 0


def judged_by_failure(status, _output):
    """runtests' TestStatus and TestErrFatal: the job has to end with an error."""
    return status != 0


def judged_by_failure_and_no_errors(status, output):
    """runtests' TestStatusNoErrors."""
    return status != 0 and judged_by_no_errors(0, output)


@dataclass
class Case:
    """One job to start: `mpirun -n ranks program...`. suite and name together are what lists and patterns speak of."""
    suite: str
    name: str
    ranks: int
    program: list
    judge: object = judged_by_no_errors
    limit_s: float = 15
    environment: dict = field(default_factory=dict)
    folder: Path = None
    unbuilt: str = ""
    # What this machine lacks for it.
    skip: str = ""
    # Where it runs: without or with Farsum, on one node or over several hosts.
    modes: list = field(default_factory=lambda: ["native", "farsum"])
    places: list = field(default_factory=lambda: ["node", "hosts"])
    # The words in front of the whole command, and options of `farsum mpi`.
    around: list = field(default_factory=list)
    options: list = field(default_factory=list)
    # With Farsum the output has to match this regular expression, too.
    hears: str = ""

    @property
    def identity(self):
        return f"{self.suite}/{self.name}"


@dataclass
class Result:
    case: Case
    library: str
    mode: str
    status: str
    seconds: float
    log: Path
    tail: list
    exception: str = ""
    remark: str = ""

    def as_json(self):
        return {"library": self.library, "mode": self.mode, "suite": self.case.suite, "test": self.case.name,
                "ranks": self.case.ranks, "status": self.status, "seconds": round(self.seconds, 2), "exception": self.exception,
                "remark": self.remark, "log": str(self.log), "tail": self.tail}


def matches(case, patterns):
    """Whether any pattern names the case: its identity, its name, or part of its identity; * and ? as in a shell."""
    return any(fnmatch.fnmatchcase(case.identity, pattern) or fnmatch.fnmatchcase(case.name, pattern) or
               (not set(pattern) & set("*?") and pattern in case.identity) for pattern in patterns)


def end_jobs_on_signals():
    """A run that is interrupted leaves no ranks behind, which would poll for ever."""
    def end(number, _frame):
        for job in list(Job.running):
            job.end()
        os._exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


class Launcher:
    """Starts jobs of one library, natively or with Farsum in front."""
    # Where it is set: what a job that has said all may take to end, beyond which its passing stands.
    end_limit_s = None

    def __init__(self, library, mode, build):
        self.library, self.mode, self.stacks = library, mode, False
        self.command = list(library["mpirun"])
        self.missing = ""
        if mode == "farsum":
            self.put_farsum_in_front(build)

    def put_farsum_in_front(self, build):
        program = build / "bin" / "farsum"
        preload = build / "lib" / f"libfarsum_mpi_{self.library['abi']}.so"
        if not preload.exists():
            self.missing = f"{preload} is not built"
        elif program.exists() and "farsum mpi" in subprocess.run([program, "mpi", "--help"], text=True, stdout=subprocess.PIPE,
                                                                 stderr=subprocess.STDOUT, check=False).stdout:
            self.command = [str(program), "mpi", *self.command]
        elif self.library["abi"] == "openmpi":
            self.command += ["-x", f"LD_PRELOAD={preload}"]
        else:
            self.command += ["-genv", "LD_PRELOAD", str(preload)]

    def run(self, case, log_folder):
        log = log_folder / (re.sub(r"[^\w.=+-]+", "_", case.identity) + f"_n{case.ranks}.log")
        log.parent.mkdir(parents=True, exist_ok=True)
        if case.skip:
            log.write_text(case.skip, encoding="utf-8")
            return Result(case, self.library["name"], self.mode, SKIPPED, 0, log, [], remark=case.skip)
        if case.unbuilt:
            log.write_text(case.unbuilt, encoding="utf-8")
            return Result(case, self.library["name"], self.mode, UNBUILT, 0, log, last_lines(case.unbuilt))
        mark = str(uuid.uuid4())
        command = self.words(case, {**case.environment, MARK: mark})
        started = time.monotonic()
        with open(log, "w", encoding="utf-8") as output:
            output.write(shlex.join(command) + "\n")
            output.flush()
            job = Job(command, case, output, mark)
            status, text, is_over = self.wait(job, log, output.tell())
        seconds = time.monotonic() - started
        remark = ""
        if is_over and case.judge(0, text):
            status, remark = 0, UNENDED
        if status is None:
            verdict = TIMED_OUT
        elif status == 0 and (said := SAYS_SKIPPED.search(text)):
            verdict, remark = SKIPPED, said.group(1)
        else:
            verdict = PASSED if self.passes(case, status, text) else FAILED
            if status != 0:
                text += f"\n(the launcher ended with {status})"
        return Result(case, self.library["name"], self.mode, verdict, seconds, log, last_lines(text), remark=remark)

    def passes(self, case, status, text):
        if not case.judge(status, text):
            return False
        return self.mode != "farsum" or not case.hears or bool(re.search(case.hears, text))

    def words(self, case, _variables):
        """The command of a case. Where all ranks are on this host its variables come with the environment."""
        return [*case.around, *self.with_options(self.command, case), "-n", str(case.ranks), *map(str, case.program)]

    def with_options(self, command, case):
        """The command with the case's options for `farsum mpi`, where it begins with that."""
        return [*command[:2], *case.options, *command[2:]] if command[1:2] == ["mpi"] else command

    def wait(self, job, log, offset):
        """The launcher's status, or None when a limit passed, what was said, and whether then only the library still ran where that
        may be; none of the job's processes is left."""
        def said():
            return log.read_bytes()[offset:].decode("utf-8", "replace")

        status = job.wait(lambda: self.end_limit_s is not None and job.case.judge(0, said()), self.end_limit_s or 0)
        text = said()
        if status is None and self.stacks:
            with open(log, "a", encoding="utf-8") as output:
                output.write(job.stacks())
        is_over = status is None and self.end_limit_s is not None and not job.engine_runs()
        job.end()
        return status, text, is_over


class Job:
    """A started job, its processes known by a mark in their environment: launchers put ranks into sessions of their own."""
    running = set()

    def __init__(self, command, case, output, mark=None):
        mark = mark or str(uuid.uuid4())
        self.case, self.mark = case, f"{MARK}={mark}"
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                        cwd=case.folder, start_new_session=True,
                                        env={**os.environ, **case.environment, MARK: mark})
        Job.running.add(self)

    def wait(self, has_said_all, end_limit_s):
        """The launcher's status, or None when the case's limit passed, or the one from when all had been said."""
        limit = time.monotonic() + self.case.limit_s
        said_all = False
        while True:
            if self.has_ended(min(0.2, max(0, limit - time.monotonic()))):
                return self.process.wait()
            if time.monotonic() >= limit:
                return None
            if not said_all and has_said_all():
                said_all = True
                limit = min(limit, time.monotonic() + end_limit_s)

    def has_ended(self, within_s):
        """Told at once: Popen's wait with a limit looks ever more seldom, and would make the times of short jobs alike."""
        descriptor = os.pidfd_open(self.process.pid)
        try:
            ended, _, _ = select.select([descriptor], [], [], within_s)
        finally:
            os.close(descriptor)
        return bool(ended)

    def finish(self):
        """The launcher's status, or None when the case's limit passed; either way none of the job's processes is left."""
        status = self.wait(lambda: False, 0)
        self.end()
        return status

    def engine_runs(self):
        """Whether Farsum still runs in any of the ranks: it ends its threads before the library goes on in MPI_Finalize."""
        names = set()
        for pid in self.processes():
            for thread in Path(f"/proc/{pid}/task").glob("*/comm"):
                try:
                    names.add(thread.read_text(encoding="utf-8").strip())
                except OSError:
                    pass
        return "farsum-agent" in names

    def stacks(self):
        """What each rank is doing, from gdb."""
        program = Path(self.case.program[0]).name
        ranks = [pid for pid in self.processes() if program_of(pid) == program]
        return stacks_of(ranks)

    def end(self):
        leftover = self.processes()
        shared = {path for pid in leftover for path in shared_files(pid)} if leftover else set()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(TERMINATION_GRACE_S)
            except subprocess.TimeoutExpired:
                pass
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        Job.running.discard(self)
        # Killed ranks leave their segments behind, which would fill the memory of a long run.
        for path in shared:
            try:
                os.unlink(path)
            except OSError:
                pass

    def processes(self):
        mark = self.mark.encode()
        found = []
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                try:
                    if mark in Path(entry.path, "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
                except OSError:
                    pass
        return found


def program_of(pid):
    """The name of the file that a process runs; nothing where it is gone."""
    try:
        return Path(os.readlink(f"/proc/{pid}/exe")).name
    except OSError:
        return ""


def shared_files(pid):
    """The files of /dev/shm that a process has mapped."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    return set(re.findall(r"(/dev/shm/\S+)$", maps, re.MULTILINE))
