"""Farsum's own programs after what users reported (tests/reports), as conformance cases: reads their heads, builds them, judges them.

Nothing but a program's file says how it runs: tests/reports/README.md has the words of its RUN lines.
"""

import fnmatch
import hashlib
import os
import re
import resource
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import conformance_cases as cases
import conformance_programs
import source_tree

SUITE = "reports"
FOLDER = source_tree.ROOT / "tests" / "reports"
SUFFIXES = (".c", ".cpp")
HEAD_LINES = 40
C_FLAGS = ("-O1", "-g", "-Wall", "-Wextra", "-pthread", "-D_GNU_SOURCE", f"-I{FOLDER}")
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
LIMITS = {"as": resource.RLIMIT_AS, "memlock": resource.RLIMIT_MEMLOCK, "stack": resource.RLIMIT_STACK, "nofile": resource.RLIMIT_NOFILE}
# Root's capability sets the limit of locked memory aside, and a program that locks all of its memory then locks the machine's.
CAP_IPC_LOCK = 1 << 14
WITHOUT_LOCKING = ("setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock")
SINGLE_WORDS = ("as", "ranks", "on", "with", "libraries", "compiler", "file", "link", "hears", "seconds")
LISTED_WORDS = ("set", "limit", "flags", "option")


class HeadError(Exception):
    """A RUN line that says what nobody understands."""


class Lacking(Exception):
    """What this machine has not."""


def judged(status, output):
    """As MPICH's tests are; a program may say more, in lines that begin with `note:`."""
    return cases.judged_by_no_errors(status, re.sub(r"^note: .*$", "", output, flags=re.MULTILINE))


def judged_beside_others(status, output):
    """Where Farsum is asked to say something, too."""
    return status == 0 and bool(re.search(r"^\s*No Errors\s*$", output, re.MULTILINE)) and "WRONG" not in output


class Run:
    """One RUN line of a program's head: which cases there are of the program, and how it is built for them."""

    def __init__(self, source, line):
        self.source = source
        before, _, behind = f" {line} ".partition(" -- ")
        self.words = shlex.split(behind)
        self.single, self.listed = {}, {key: [] for key in LISTED_WORDS}
        for word in shlex.split(before):
            key, said, value = word.partition("=")
            if key in SINGLE_WORDS and said:
                self.single[key] = value
            elif key in LISTED_WORDS and said:
                self.listed[key].append(value)
            else:
                raise HeadError(f"{source.name}: nothing is known of '{word}' in a RUN line")

    def get(self, key, default=""):
        return self.single.get(key, default)

    @property
    def name(self):
        return self.source.stem + (f".{self.single['as']}" if "as" in self.single else "")

    def ranks(self):
        return [int(count) for count in self.get("ranks", "2").split(",")]

    @property
    def build_key(self):
        """What one program is built for several runs by."""
        return (self.source, *self.listed["flags"], *(self.get(key) for key in ("compiler", "file", "link")))

    def is_for(self, library):
        names = self.get("libraries", "*").split(",")
        return any(fnmatch.fnmatchcase(library["name"], name) for name in names)

    def limit_options(self):
        """prlimit's options for the run's limits."""
        options = []
        for limit in self.listed["limit"]:
            name, _, size = limit.partition(":")
            if name not in LIMITS:
                raise HeadError(f"{self.source.name}: no limit is called '{name}'")
            value = bytes_of(size)
            hard = resource.getrlimit(LIMITS[name])[1]
            if hard != resource.RLIM_INFINITY and (value is None or value > hard):
                raise Lacking(f"a limit of {size} for {name}: here it can be {hard} bytes at most")
            options.append(f"--{name}=unlimited:" if value is None else f"--{name}={value}:{value}")
        return options

    def around(self):
        """The words in front of the whole command, which set the limits."""
        options = self.limit_options()
        if not options:
            return []
        locks = any(option.startswith("--memlock") for option in options)
        words = ["prlimit", *options, *(WITHOUT_LOCKING if locks else [])]
        for program in ("prlimit", "setpriv"):
            if program in words and not shutil.which(program):
                raise Lacking(f"{program}, which sets limits")
        # Tried first: what locks its memory without the limit locks the machine's.
        tried = subprocess.run([*words, "grep", "CapEff:", "/proc/self/status"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, check=False)
        if tried.returncode:
            raise Lacking(f"limits that can be set: {tried.stdout.strip()}")
        if locks and int(tried.stdout.split()[1], 16) & CAP_IPC_LOCK:
            raise Lacking("a way to drop CAP_IPC_LOCK")
        return words


def bytes_of(size):
    """Bytes, from such as 300M; nothing for `unlimited`."""
    if size == "unlimited":
        return None
    found = re.fullmatch(r"(\d+)([KMG]?)", size)
    if not found:
        raise HeadError(f"no size: '{size}'")
    return int(found.group(1)) * UNITS[found.group(2)]


def programs():
    return sorted(path for path in FOLDER.iterdir() if path.suffix in SUFFIXES)


def runs_of(source):
    """The RUN lines of a program's head; a program without any runs as it is, on 2 ranks."""
    head = source.read_text(encoding="utf-8").splitlines()[:HEAD_LINES]
    found = [re.match(r"\s*(?:/?\*|//)\s*RUN:(.*)", line) for line in head if "RUN:" in line]
    if None in found or any("RUN:" in match.group(1) for match in found):
        raise HeadError(f"{source.name}: a RUN: in the middle of a line; clang-format filled a paragraph that has no empty line before it")
    return [Run(source, match.group(1).removesuffix("*/")) for match in found] or [Run(source, "")]


def list_cases(library, limit_s):
    """The cases of a library as (case, run); the programs are not built yet."""
    for source in programs():
        for run in runs_of(source):
            if run.is_for(library):
                yield from cases_of_run(library, run, limit_s)


def cases_of_run(library, run, limit_s):
    try:
        around, skip = run.around(), ""
    except Lacking as what:
        around, skip = [], str(what)
    hears = run.get("hears")
    settings = dict(setting.split("=", maxsplit=1) for setting in run.listed["set"])
    if run.get("link") == "no":
        settings = {**conformance_programs.environment(library), **settings}
    for ranks in run.ranks():
        yield cases.Case(suite=SUITE, name=run.name, ranks=ranks, program=[run.source, *run.words],
                         judge=judged_beside_others if hears else judged, limit_s=float(run.get("seconds", limit_s)),
                         environment=settings, modes=run.get("with", "native,farsum").split(","),
                         places=run.get("on", "node,hosts").split(","), around=around, skip=skip, hears=hears,
                         options=[option.format(abi=library["abi"]) for option in run.listed["option"]]), run


def with_clang(run, words):
    """The compiler's words with clang instead of gcc, which finds the sanitizers' libraries when the program starts, too."""
    name = "clang++" if run.source.suffix == ".cpp" else "clang"
    names = [name, *(f"{name}-{number}" for number in range(30, 10, -1))]
    found = next(filter(None, map(shutil.which, names)), None)
    if not found:
        raise Lacking("clang")
    runtime = subprocess.run([found, "-print-runtime-dir"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    return [found, *words[1:], f"-Wl,-rpath,{runtime}"]


class Builder:
    """Builds the programs for one library. What is built is kept under what it was built from."""

    def __init__(self, library):
        self.library = library
        self.folder = cases.cache_home() / "build" / library["name"] / SUITE
        self.headers = "".join(path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.h")))

    def wrapper(self, run):
        """The words of the library's compiler for the program's language."""
        wrapper = Path(self.library["compiler"])
        if run.source.suffix == ".cpp":
            wrapper = wrapper.with_name(wrapper.name.replace("mpicc", "mpicxx"))
            if not wrapper.exists():
                raise Lacking(f"a compiler for C++ of {self.library['name']}")
        shown = subprocess.run([wrapper, "-show"], stdout=subprocess.PIPE, text=True, check=True)
        words = shlex.split(shown.stdout)
        return with_clang(run, words) if run.get("compiler") == "clang" else words

    def build(self, run):
        """The program, why it cannot be built here, and what the compiler complains of."""
        try:
            words = self.wrapper(run)
            target = self.target(words, run)
            if target.exists():
                return target, "", ""
            target.parent.mkdir(parents=True, exist_ok=True)
            refuse_flags(words[0], run.listed["flags"], target.parent)
        except Lacking as what:
            return None, str(what), ""
        temporary = target.with_name(f"{target.name}.{os.getpid()}")
        complaint = self.compile(words, run, temporary)
        if not complaint:
            temporary.rename(target)
        return target, "", complaint

    def target(self, words, run):
        content = [run.source.read_text(encoding="utf-8"), self.headers, *words, *C_FLAGS, *map(str, run.build_key),
                   self.library["version"]]
        key = hashlib.sha256("\0".join(content).encode()).hexdigest()[:16]
        return self.folder / f"{run.source.stem}-{key}" / run.get("file", run.source.stem)

    @staticmethod
    def compile(words, run, target):
        """The compiler's complaint, or nothing."""
        flags = [*C_FLAGS, *run.listed["flags"]]
        steps = [[*words[:1], *flags, run.source, *words[1:], "-ldl", "-o", target]]
        made = target.with_name(target.name + ".o")
        if run.get("link") == "no":
            steps = [[*words[:1], *flags, *words[1:], "-c", run.source, "-o", made], [words[0], "-pthread", made, "-ldl", "-o", target]]
        for step in steps:
            done = subprocess.run(list(map(str, step)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode:
                return done.stdout
        made.unlink(missing_ok=True)
        return ""


def refuse_flags(compiler, flags, folder):
    """A sanitizer's library may be missing: the compiler tries the flags alone."""
    if not flags:
        return
    probe = folder / f"probe.{os.getpid()}"
    tried = subprocess.run([compiler, *flags, "-x", "c", "-", "-o", probe], input="int main(void) { return 0; }\n", text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    probe.unlink(missing_ok=True)
    if tried.returncode:
        raise Lacking(f"{' '.join(flags)} of {Path(compiler).name}")


def build(library, chosen):
    """Builds the programs of the chosen (case, run) and points the cases at them."""
    builder = Builder(library)
    unlike = {run.build_key: run for _, run in chosen}
    with ThreadPoolExecutor(source_tree.job_count()) as pool:
        made = dict(zip(unlike, pool.map(builder.build, unlike.values())))
    for case, run in chosen:
        path, skip, complaint = made[run.build_key]
        case.skip = case.skip or skip
        case.unbuilt = complaint
        if path:
            case.folder = path.parent
            case.program[0] = str(path)
