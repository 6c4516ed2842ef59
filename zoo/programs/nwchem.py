"""Debian's NWChem, whose distributed arrays are MPI windows (tools/nwchem_evidence compares more of it)."""

import shutil
import sys

import source_tree
from program import Missing, NoAnswer, Prepared, Program

sys.path.insert(0, str(source_tree.ROOT / "tests" / "nwchem"))

from nwchem_output import parse  # noqa: E402

INPUTS = source_tree.ROOT / "tests" / "nwchem" / "inputs"
TOLERANCE = 1e-7  # Hartree
# What Debian's package says of its build for MPICH; without it MPICH gives a wrong energy.
ALONE = {"mpich": {"ARMCI_USE_WIN_ALLOCATE": "0"}}


class NWChem(Program):
    """One input; its answer is the energy that one rank computes without Farsum."""
    windows = "distributed arrays and task counters (ARMCI): get, accumulate, fetch-and-op"
    libraries = ("mpich", "openmpi")
    only = "Debian builds it for its own two MPI libraries"

    def __init__(self, case, title, headline, energy, limit_s=60):
        self.name, self.title, self.case = f"nwchem/{case}", title, case
        self.headline, self.energy, self.limit_s = headline, energy, limit_s
        self.origin = "Debian: nwchem-mpich, nwchem-openmpi"

    def prepare(self, library, folder):
        program = f"nwchem.{library['name']}"
        if not shutil.which(program):
            raise Missing(f"{program} is not here", "tools/setup --with-nwchem")
        shutil.copy(INPUTS / f"{self.case}.nw", folder)
        return Prepared([program, f"{self.case}.nw"], folder, alone=ALONE.get(library["name"], {}))

    def wrong(self, output):
        found = parse(output)
        energy = found.energies.get(self.headline)
        if energy is None or found.wall_s is None:
            raise NoAnswer("it did not come to its end")
        if not abs(energy - self.energy) <= TOLERANCE:
            return f"its energy is {energy:.9f}, that of one rank {self.energy:.9f}"
        return ""


PROGRAMS = [
    NWChem("water_mp2", "NWChem, water, MP2 gradient", "MP2", -76.195337652776),
    NWChem("water_tce", "NWChem, water, CCSD(T)", "CCSD(T)", -76.206096360496),
    NWChem("ethylene", "NWChem, ethylene, B3LYP Hessian", "DFT", -78.585821847767, 180),
]
