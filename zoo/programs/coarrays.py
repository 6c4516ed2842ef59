"""Coarray Fortran on Debian's OpenCoarrays, which keeps coarrays in MPI windows. The programs are in zoo/coarrays."""

import re
from pathlib import Path

import source_tree
from program import Missing, NoAnswer, Prepared, Program, compile_program

SOURCES = source_tree.ROOT / "zoo" / "coarrays"
COMPILER = "gfortran"


class CoarrayProgram(Program):
    """One source file. Image 1 prints one line, which begins with the file's name and ends with `right` or `wrong: ...`."""
    origin = "zoo/coarrays, on Debian's libcoarrays-mpich-dev and libcoarrays-openmpi-dev 2.10"
    libraries = ("mpich", "openmpi")
    only = "Debian builds OpenCoarrays for its own two MPI libraries"

    def __init__(self, source, title, windows, short=()):
        self.source = source
        self.name, self.title, self.windows, self.short = f"coarrays/{source}", f"coarrays, {title}", windows, short

    def prepare(self, library, folder):
        if not (Path(library["lib"]) / f"libcaf_{library['name']}.so").exists():
            raise Missing(f"OpenCoarrays for {library['name']} is not here", "tools/setup")
        program = folder / self.source
        words = [COMPILER, "-O2", "-fcoarray=lib", SOURCES / f"{self.source}.f90", "-o", program, f"-L{library['lib']}",
                 f"-lcaf_{library['name']}"]
        compile_program(words)
        return Prepared([program], folder)

    def wrong(self, output):
        lines = re.findall(rf"^{self.source}: .*$", output, re.MULTILINE)
        if not lines:
            raise NoAnswer("it printed no answer")
        if len(lines) > 1:
            return f"it printed {len(lines)} answers"
        return "" if lines[0].endswith(": right") else lines[0]


PROGRAMS = [
    CoarrayProgram("put", "particles on a ring", "puts of 100 to 10,000 bytes into a neighbour's inbox"),
    CoarrayProgram("get", "a tabulated function", "gets of 32 bytes at random places"),
    CoarrayProgram("sections", "rows dealt out and in blocks", "puts and gets of strided sections in two dimensions"),
    CoarrayProgram("atomics", "squares in a hash table", "compare-and-swap, sums and bitwise and of single integers"),
    CoarrayProgram("events", "common subsequence in a pipeline", "posts, queries and waits; puts of 84 bytes", short=("mpich", "openmpi")),
    CoarrayProgram("locks", "charges between cells", "locks of single cells; puts and gets of 8 bytes under them"),
    CoarrayProgram("critical", "longest way to 1", "a lock on image 1; puts and gets of 4 and 8 bytes under it"),
    CoarrayProgram("co_sum", "Poisson's equation by conjugate gradients", "gets of columns; the sums are the library's own"),
    CoarrayProgram("stencil", "heat in a plate", "puts of columns into halos"),
    CoarrayProgram("work_queue", "tasks from a counter", "compare-and-swap and sums on an image that computes", short=("mpich", "openmpi")),
]
