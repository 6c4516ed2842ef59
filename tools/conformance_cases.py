"""What a conformance case is, how it is run under one MPI library, and how its output is judged."""

import fnmatch
import os
import re
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

PASSED, FAILED, TIMED_OUT, UNBUILT = "passed", "failed", "timed out", "not built"
TERMINATION_GRACE_S = 3
TAIL_LINES = 6
# What Farsum says on stderr is for people; a test that passes passes with it.
FARSUM_SAYS = re.compile(r"^\s*(\[[^]]*\]\s*)?farsum\b", re.IGNORECASE)
# What Open MPI 5's wheel says at every window, and what is no complaint of a test.
LIBRARY_SAYS = re.compile(r"OSC UCX component priority set inside component query failed")


def cache_home():
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "farsum" / "conformance"


def last_lines(text, count=TAIL_LINES):
    return [line.rstrip() for line in text.splitlines() if line.strip()][-count:]


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

    def as_json(self):
        return {"library": self.library, "mode": self.mode, "suite": self.case.suite, "test": self.case.name,
                "ranks": self.case.ranks, "status": self.status, "seconds": round(self.seconds, 2), "exception": self.exception,
                "log": str(self.log), "tail": self.tail}


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

    def __init__(self, library, mode, build):
        self.library, self.mode = library, mode
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
        if case.unbuilt:
            log.write_text(case.unbuilt, encoding="utf-8")
            return Result(case, self.library["name"], self.mode, UNBUILT, 0, log, last_lines(case.unbuilt))
        command = [*self.command, "-n", str(case.ranks), *map(str, case.program)]
        started = time.monotonic()
        with open(log, "w", encoding="utf-8") as output:
            output.write(" ".join(command) + "\n")
            output.flush()
            offset = output.tell()
            status = Job(command, case, output).wait()
        seconds = time.monotonic() - started
        text = log.read_bytes()[offset:].decode("utf-8", "replace")
        if status is None:
            verdict = TIMED_OUT
        else:
            verdict = PASSED if case.judge(status, text) else FAILED
            if status != 0:
                text += f"\n(the launcher ended with {status})"
        return Result(case, self.library["name"], self.mode, verdict, seconds, log, last_lines(text))


class Job:
    """A started job, its processes known by a mark in their environment: launchers put ranks into sessions of their own."""
    running = set()

    def __init__(self, command, case, output):
        self.mark = f"FARSUM_CONFORMANCE_JOB={uuid.uuid4()}"
        name, value = self.mark.split("=")
        self.limit_s = case.limit_s
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                        cwd=case.folder, start_new_session=True,
                                        env={**os.environ, **case.environment, name: value})
        Job.running.add(self)

    def wait(self):
        """The launcher's status, or None when the limit passed; either way none of the job's processes is left."""
        try:
            status = self.process.wait(self.limit_s)
        except subprocess.TimeoutExpired:
            status = None
        self.end()
        Job.running.discard(self)
        return status

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


def shared_files(pid):
    """The files of /dev/shm that a process has mapped."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    return set(re.findall(r"(/dev/shm/\S+)$", maps, re.MULTILINE))
