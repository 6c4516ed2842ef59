"""MPICH's own one-sided tests: fetches them from Debian's source package, builds them for an MPI library, reads their lists."""

import fcntl
import os
import re
import shutil
import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import conformance_cases as cases
import source_tree

FOLDERS = ("rma", "errors/rma", "threads/rma", "f77/rma", "f90/rma", "f08/rma")
JUDGES = {"": cases.judged_by_no_errors, "TestStatus": cases.judged_by_failure, "TestErrFatal": cases.judged_by_failure,
          "TestStatusNoErrors": cases.judged_by_failure_and_no_errors}
# runtests gives a test 180 s unless its line says otherwise; a longer limit there is the same multiple of the limit here.
RUNTESTS_LIMIT_S = 180

# What the suite's configure finds on Linux with gcc and gfortran. configure itself takes a minute per library and wants a
# Fortran compiler of each.
CONFIGURATION = """#ifndef MPITESTCONF_H_INCLUDED
#define MPITESTCONF_H_INCLUDED
#define F77_NAME_LOWER_USCORE 1
#define HAVE_DOUBLE__COMPLEX 1
#define HAVE_FLOAT__COMPLEX 1
#define HAVE_LONG_DOUBLE__COMPLEX 1
#define HAVE_FORTRAN_BINDING 1
#define HAVE_GETRUSAGE 1
#define HAVE_INTTYPES_H 1
#define HAVE_LONG_DOUBLE 1
#define HAVE_LONG_LONG 1
#define HAVE_LONG_LONG_INT 1
#define HAVE_MPI_INIT_THREAD 1
#define HAVE_MPI_IO 1
#define HAVE_MPI_SPAWN 1
#define HAVE_MPI_WIN_CREATE 1
#define HAVE_PTHREAD_BARRIER_INIT 1
#define HAVE_PTHREAD_H 1
#define HAVE_STDARG_H 1
#define HAVE_STDINT_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRDUP 1
#define HAVE_STRINGS_H 1
#define HAVE_STRING_H 1
#define HAVE_SYS_RESOURCE_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_UNISTD_H 1
#define HAVE_USLEEP 1
#define HAVE__BOOL 1
#define POINTERINT_t long
#define SIZEOF_INT 4
#define SIZEOF_LONG 8
#define SIZEOF_LONG_LONG 8
#define SIZEOF_MPI_OFFSET 8
#define SIZEOF_SHORT 2
#define SIZEOF_VOID_P 8
#define STDCALL
#define STDC_HEADERS 1
#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX
#endif
"""
FORTRAN_ADDRESS = "integer*8"


class Unavailable(Exception):
    """The tests cannot be had on this machine now; the message says why."""


def run(command, **options):
    result = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            check=False, **options)
    if result.returncode != 0:
        raise Unavailable(f"{' '.join(map(str, command))}:\n{result.stdout}")
    return result.stdout


def fetch():
    """The suite's folder test/mpi, fetched with apt when it is not in the cache, by one of those who ask at once."""
    home = cases.cache_home() / "source"
    home.mkdir(parents=True, exist_ok=True)
    with open(home / "fetching", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return fetch_into(home)


def fetch_into(home):
    """No configuration of the system is touched: apt reads a list of its own, made of the system's own sources, and keeps its
    state beside it."""
    ready = sorted(home.glob("mpich-*/test/mpi/runtests.in"))
    if ready:
        return ready[-1].parent
    if not shutil.which("apt-get"):
        raise Unavailable("MPICH's tests come from Debian's source package, and there is no apt-get here")
    apt = home / "apt"
    for folder in ("lists/partial", "cache/archives/partial", "empty"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    targets = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)|$(ORIGIN)",
                   "Created-By: Packages"])
    keyring = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    signed = f"[signed-by={keyring}] " if keyring.exists() else ""
    sources = sorted({line.split("|")[0] for line in targets.splitlines() if line.endswith("|Debian")})
    (apt / "sources.list").write_text("".join(f"deb-src {signed}{source}\n" for source in sources), encoding="utf-8")
    options = [f"-oDir::Etc::SourceList={apt}/sources.list", f"-oDir::Etc::SourceParts={apt}/empty",
               f"-oDir::State::Lists={apt}/lists", f"-oDir::Cache={apt}/cache", "-oAPT::Sandbox::User=root",
               "-oAcquire::Retries=2", "-qq"]
    run(["apt-get", *options, "update"])
    run(["apt-get", *options, "source", "--download-only", "mpich"], cwd=home)
    # Debian's patches leave the tests alone, so the original archive is all that is needed.
    archives = sorted(home.glob("mpich_*.orig.tar.*"))
    if not archives:
        raise Unavailable("apt-get brought no original archive of mpich")
    fresh = home / "unpacking"
    shutil.rmtree(fresh, ignore_errors=True)
    with tarfile.open(archives[-1]) as archive:
        archive.extractall(fresh, members=(entry for entry in archive if re.match(r"[^/]+/test/mpi/", entry.name)))
    unpacked = next(fresh.glob("mpich-*"))
    unpacked.rename(home / unpacked.name)
    shutil.rmtree(fresh)
    return home / unpacked.name / "test" / "mpi"


class Recipe:
    """What a folder's Makefile.am says of its programs: sources and definitions, where they are not the obvious ones."""

    def __init__(self, source, folder):
        self.folder = folder
        text = (source / folder / "Makefile.am").read_text(encoding="utf-8").replace("\\\n", " ")
        self.values = {match.group(1): match.group(2).split()
                       for match in re.finditer(r"^(\w+)\s*=[ \t]*(.*)$", text, re.MULTILINE)}
        self.suffix = {"f77": ".f", "f90": ".f90", "f08": ".f90"}.get(folder.split("/", maxsplit=1)[0], ".c")

    def sources(self, program):
        return [name for name in self.values.get(f"{program}_SOURCES", [program + self.suffix]) if not name.endswith(".h")]

    def definitions(self, program):
        return [word for word in self.values.get(f"{program}_CPPFLAGS", []) if word.startswith("-D")]


class Build:
    """The suite for one library, out of tree."""

    def __init__(self, source, library):
        self.source, self.library = source, library
        self.folder = cases.cache_home() / "build" / library["name"]
        self.include = self.folder / "include"
        # ccache, where there is one, makes a second build from an empty folder quick.
        compiler = "ccache gcc" if shutil.which("ccache") else "gcc"
        self.environment = {**os.environ, "OMPI_CC": compiler, "MPICH_CC": compiler}
        if library["name"] == "impi":
            self.environment = dict(os.environ)

    def c_flags(self):
        # The headers of dtpools, a library that none of these tests calls, are included by some; c2f2cwin.c asks for
        # ../../include/mpitestconf.h.
        return ["-O1", "-w", "-pthread", f"-I{self.include}", f"-I{self.source / 'include'}", f"-I{self.source / 'dtpools/include'}",
                f"-I{self.folder / 'f77/rma'}"]

    def make_common(self):
        """Headers that configure would make, and the objects that every program takes."""
        for folder in (self.include, self.folder / "f77/rma"):
            folder.mkdir(parents=True, exist_ok=True)
        files = {"mpitestconf.h": CONFIGURATION}
        for header in ("f77/rma/addsize.h.in", "f77/attr/attraints.h.in"):
            text = (self.source / header).read_text(encoding="utf-8")
            files[Path(header).name.removesuffix(".in")] = text.replace("@F77_MPI_ADDRESS@", FORTRAN_ADDRESS)
        for name, text in files.items():
            if not (self.include / name).exists() or (self.include / name).read_text(encoding="utf-8") != text:
                (self.include / name).write_text(text, encoding="utf-8")
        common = [self.source / "util" / f"mtest{part}.c" for part in ("", "_common", "_single", "_thread")]
        with ThreadPoolExecutor(source_tree.job_count()) as pool:
            list(pool.map(self.compile_common, common))

    def common_object(self, source):
        return self.folder / "common" / (source.stem + ".o")

    def compile_common(self, source):
        target = self.common_object(source)
        if target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_suffix(f".{os.getpid()}.o")
        run([self.library["compiler"], *self.c_flags(), "-c", source, "-o", temporary], env=self.environment)
        temporary.rename(target)

    def common_objects(self, threads):
        parts = ["mtest", "mtest_common", "mtest_thread" if threads else "mtest_single"]
        return [self.folder / "common" / f"{part}.o" for part in parts]

    def program(self, recipe, name):
        """The built program, or the compiler's complaint."""
        target = self.folder / recipe.folder / name
        if target.exists():
            return target, ""
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f"{name}.{os.getpid()}")
        try:
            if recipe.suffix == ".c":
                self.compile_c(recipe, name, temporary)
            else:
                self.compile_fortran(recipe, name, temporary)
        except Unavailable as problem:
            return target, str(problem)
        temporary.rename(target)
        return target, ""

    def compile_c(self, recipe, name, target):
        threads = recipe.folder.startswith("threads")
        flags = ["-DMTEST_USE_THREAD"] if threads else []
        sources = [self.source / recipe.folder / source for source in recipe.sources(name)]
        # One object at a time, for that is what ccache keeps.
        objects = []
        for source in sources:
            objects.append(target.with_name(f"{target.name}.{source.stem}.o"))
            run([self.library["compiler"], *self.c_flags(), *flags, *recipe.definitions(name), "-c", source, "-o", objects[-1]],
                env=self.environment)
        run([self.library["compiler"], "-pthread", *objects, *self.common_objects(threads), "-lm", "-o", target],
            env=self.environment)
        for made in objects:
            made.unlink()

    def compile_fortran(self, recipe, name, target):
        language = recipe.folder.split("/", maxsplit=1)[0]
        helper = self.source / "util" / f"mtest_{language}{recipe.suffix}"
        objects = []
        modules = target.with_name(f"{target.name}.modules")
        modules.mkdir(exist_ok=True)
        fortran = [self.library["fortran"], "-O1", "-w", "-fallow-argument-mismatch", f"-I{self.include}", f"-J{modules}"]
        # The helper is compiled with each program: the modules that it makes are the program's.
        for source in [helper, *(self.source / recipe.folder / source for source in recipe.sources(name))]:
            made = modules / f"{source.stem}.o"
            if source.suffix == ".c":
                run([self.library["compiler"], *self.c_flags(), "-c", source, "-o", made], env=self.environment)
            else:
                run([*fortran, "-c", source, "-o", made])
            objects.append(made)
        run([*fortran, *objects, "-o", target])
        shutil.rmtree(modules)


def read_list(source, folder):
    """The lines of a folder's testlist as (program, ranks, {key: [values]}); large tests are not left out."""
    path = source / folder / "testlist.in"
    if not path.exists():
        path = path.with_suffix("")
    for line in path.read_text(encoding="utf-8").splitlines():
        words = re.sub(r"@\w+@", "", line.split("#", maxsplit=1)[0]).split()
        if words:
            keys = {}
            for word in words[2:]:
                key, value = word.split("=", maxsplit=1)
                keys.setdefault(key, []).append(value)
            yield words[0], int(words[1]) if len(words) > 1 else 2, keys


def list_cases(source, library, limit_s):
    """Every line of every list that the library has a compiler for; the programs are not built yet."""
    for folder in FOLDERS:
        if folder[0] == "f" and not library["fortran"]:
            continue
        for program, ranks, keys in read_list(source, folder):
            arguments = keys.get("arg", [])
            factor = max(1, float(keys.get("timeLimit", [0])[0]) / RUNTESTS_LIMIT_S)
            yield cases.Case(suite=folder, name=" ".join([program, *arguments]), ranks=ranks, program=[program, *arguments],
                             judge=JUDGES[keys.get("resultTest", [""])[0]], limit_s=limit_s * factor,
                             environment=dict(value.split("=", maxsplit=1) for value in keys.get("env", [])))


def build(source, library, chosen):
    """Builds the programs of the chosen cases and points the cases at them."""
    builder = Build(source, library)
    builder.make_common()
    recipes = {folder: Recipe(source, folder) for folder in FOLDERS}
    programs = sorted({(case.suite, case.program[0]) for case in chosen})
    with ThreadPoolExecutor(source_tree.job_count()) as pool:
        made = dict(zip(programs, pool.map(lambda item: builder.program(recipes[item[0]], item[1]), programs)))
    for case in chosen:
        path, case.unbuilt = made[case.suite, case.program[0]]
        case.folder = path.parent
        case.program[0] = str(path)
