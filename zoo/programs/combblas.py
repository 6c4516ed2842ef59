"""CombBLAS, matrices of graphs over a square grid of ranks: its matching augments long paths by one-sided calls."""

from pathlib import Path

import source_tree
from program import Missing, NoAnswer, Prepared, Program, compile_program

SOURCE = source_tree.ROOT / "zoo" / "combblas" / "matching.cpp"
HEADERS = Path("/usr/include/CombBLAS")
COMPILER = "mpicxx.openmpi"
SIDE, ROUNDS = 100_000, 6


class Matching(Program):
    """Maximum matchings of matrices that hide a permutation; the source compares the partners with the matrix's entries. Its matrices
    want 1, 4, 9 and so on ranks."""
    name, title = "combblas/matching", "CombBLAS, maximum matching"
    origin = "Debian: libcombblas-dev 1.6.2"
    windows = "vectors, created: get, fetch-and-replace and put, each under a shared lock, and a gather by single gets"
    libraries = ("openmpi",)
    only = "Debian builds it for Open MPI alone"
    ranks = 4
    limit_s = 90

    def prepare(self, library, folder):
        if not HEADERS.exists():
            raise Missing("CombBLAS is not here", "tools/setup --with-zoo")
        program = folder / "matching"
        # What its own headers are warned for is not ours to mend.
        words = [COMPILER, "-std=c++14", "-O2", "-w", f"-I{HEADERS}", str(SOURCE), "-o", str(program), "-lCombBLAS", "-lGraphGenlib",
                 "-lUsortlib"]
        compile_program(words)
        return Prepared([str(program), str(SIDE), str(ROUNDS)], folder)

    def wrong(self, output):
        if found := [line for line in output.splitlines() if line.startswith("WRONG: ")]:
            return found[0].removeprefix("WRONG: ")
        if "matching right" not in output:
            raise NoAnswer("it did not come to its end")
        return ""


PROGRAMS = [Matching()]
