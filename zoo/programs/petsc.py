"""PETSc's star forests of type window: values that go along the edges of a distributed graph, by MPI windows of PETSc's own."""

import shutil
import subprocess

import source_tree
from program import Missing, NoAnswer, NotBuilt, Prepared, Program, compile_program

SOURCE = source_tree.ROOT / "zoo" / "petsc" / "star_forest.c"
ROUNDS = 100


def build_words(library, program):
    """The words that compile the source against Debian's PETSc."""
    if not shutil.which("pkg-config"):
        raise Missing("pkg-config is not here", "tools/setup")
    words = ["pkg-config", "--cflags", "--libs", "PETSc"]
    found = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if found.returncode and "Package PETSc was not found" in found.stderr:
        raise Missing("PETSc is not here", "tools/setup --with-zoo")
    if found.returncode:
        raise NotBuilt("pkg-config does not know how it is linked", found.stderr)
    return [library["compiler"], "-O2", str(SOURCE), "-o", str(program), *found.stdout.split()]


class StarForest(Program):
    """Windows of one flavor, with fence, with locks, and with post and start. PETSc's own messages give the answers to compare with.
    Debian's build has neither the flavor allocate nor dynamic (its petscconf.h lacks PETSC_HAVE_MPI_FEATURE_DYNAMIC_WINDOW)."""
    origin = "Debian: petsc-dev 3.18"
    libraries = ("openmpi",)
    only = "Debian builds it for Open MPI alone"
    ranks = 4
    limit_s = 60

    def __init__(self, flavor, title, hosts):
        self.name, self.title, self.flavor, self.hosts = f"petsc/{flavor}", title, flavor, hosts
        self.windows = f"star forests, {flavor}: get, accumulate and get-accumulate of indexed types; fence, lock, post and start"

    def prepare(self, library, folder):
        program = folder / "star_forest"
        compile_program(build_words(library, program))
        words = [str(program), "-sf_window_flavor", self.flavor, "-rounds", str(ROUNDS)]
        return Prepared(words, folder)

    def wrong(self, output):
        if found := [line for line in output.splitlines() if line.startswith("WRONG: ")]:
            return found[0].removeprefix("WRONG: ")
        if "star forest right" not in output:
            raise NoAnswer("it did not come to its end")
        return ""


PROGRAMS = [
    StarForest("create", "PETSc, star forest, created windows", (1, 2)),
    StarForest("shared", "PETSc, star forest, shared windows", (1,)),
]
