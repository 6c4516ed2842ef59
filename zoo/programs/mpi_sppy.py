"""mpi-sppy: stochastic optimisation by a hub and spokes, which tell each other their bounds through MPI windows, on mpi4py."""

import re
import shutil

import pypi
from program import NoAnswer, Prepared, Program

# The farmer with six scenarios and twenty times the crops, as one linear program (mpisppy.generic_cylinders --EF).
OPTIMUM = -2438891.134727107
TOLERANCE = 1e-6  # of the optimum
FARMER = ("--module-name", "farmer", "--num-scens", "6", "--solver-name", "appsi_highs", "--max-iterations", "20", "--default-rho", "1",
          "--crops-multiplier", "20", "--linearize-proximal-terms")
ITERATIONS, GAP = 20, 5.0  # it ends at so many, or at a gap between the bounds of so many percent
LAST_LINE = re.compile(r"Statistics at termination.*?\n[^\n]*Best Bound[^\n]*\n"
                       r"\[[^]]*\]\s+(\d+)\D*?\s(-?\d+\.\d+)\s+(-?\d+\.\d+)\s+(\d+\.\d+)%", re.DOTALL)


class Farmer(Program):
    """The farmer of the field's textbooks: where to grow what, before the weather is known."""
    origin = "PyPI: mpi-sppy 0.14.0, mpi4py 4.1.2, highspy"
    windows = "a window for each pair of hub and spoke: bounds and decisions by put and get under locks"
    libraries = ("mpich", "openmpi", "mpich5", "openmpi5", "impi")

    def __init__(self, name, title, spokes, short=()):
        self.name, self.title, self.spokes, self.short = name, title, spokes, short
        self.ranks = 1 + len(spokes)

    def prepare(self, library, folder):
        words = pypi.words("-m", "mpi4py", "-m", "mpisppy.generic_cylinders", *FARMER, *self.spokes)
        # Its modules are found by name in the folder where it is started.
        shutil.copy(pypi.HOME / "mpisppy/tests/examples/farmer.py", folder)
        return Prepared(words, folder, pypi.environment(library))

    def wrong(self, output):
        """The bounds that it ends with have the optimum between them, and are as near each other as it was asked for unless it made
        all its iterations."""
        found = LAST_LINE.search(output)
        if not found:
            raise NoAnswer("it printed no bounds at its end")
        iterations, (bound, incumbent, gap) = int(found.group(1)), map(float, found.groups()[1:])
        slack = TOLERANCE * abs(OPTIMUM)
        if not bound <= OPTIMUM + slack or not incumbent >= OPTIMUM - slack:
            return f"the optimum {OPTIMUM} is not between the bounds {bound} and {incumbent}"
        if gap > GAP and iterations < ITERATIONS:
            return f"it ended after {iterations} iterations with a gap of {gap} %"
        return ""

    def answer(self, output):
        """How far it came: hub and spokes do not wait for each other, so that no two runs are alike."""
        found = LAST_LINE.search(output)
        return f"{found.group(1)} iterations" if found else ""


PROGRAMS = [
    Farmer("mpi-sppy/farmer", "mpi-sppy, farmer, 2 spokes", ("--lagrangian", "--xhatshuffle"), short=("mpich5",)),
    Farmer("mpi-sppy/farmer-4-spokes", "mpi-sppy, farmer, 4 spokes", ("--lagrangian", "--xhatshuffle", "--subgradient", "--xhatxbar")),
]
