"""Debian's BAGEL (quantum chemistry), whose distributed vectors and tensors are MPI windows. Hartree-Fock and MP2 make none."""

import json
import re
import shutil

from program import Missing, NoAnswer, Prepared, Program

WATER = (("O", (0.0, 0.0, -0.065587)), ("H", (0.0, -0.757136, 0.520545)), ("H", (0.0, 0.757136, 0.520545)))
HYDROGEN_FLUORIDE = (("F", (0.0, 0.0, 0.0)), ("H", (0.0, 0.0, 0.9168)))
FULL = [{"title": "hf", "thresh": 1e-10}, {"title": "fci", "algorithm": "parallel", "nstate": 2, "frozen": True}]
PERTURBED = [{"title": "casscf", "nstate": 3, "nact": 6, "nclosed": 2},
             {"title": "smith", "method": "caspt2", "ms": True, "xms": True, "sssr": True, "shift": 0.2, "frozen": True}]
FULL_ENERGY = re.compile(r"ci vector +(\d+),.* E = +(-?\d+\.\d+)")
PERTURBED_ENERGY = re.compile(r"MS-CASPT2 energy : state +(\d+) +(-?\d+\.\d+)")


class Bagel(Program):
    """One input; its answers are the energies that one rank computes without Farsum."""
    origin = "Debian: bagel 1.2.2"
    libraries = ("mpich",)
    only = "Debian builds it for MPICH alone"
    limit_s = 120

    def __init__(self, name, title, windows, *, molecule, basis, methods, printed, energies, tolerance):
        self.name, self.title, self.windows = f"bagel/{name}", title, windows
        self.molecule, self.basis, self.methods = molecule, basis, methods
        self.printed, self.energies, self.tolerance = printed, energies, tolerance

    def prepare(self, library, folder):
        if not shutil.which("BAGEL"):
            raise Missing("BAGEL is not here", "tools/setup --with-zoo")
        place = {"title": "molecule", "basis": self.basis, "df_basis": "svp-jkfit", "angstrom": True,
                 "geometry": [{"atom": atom, "xyz": list(at)} for atom, at in self.molecule]}
        text = folder / "input.json"
        text.write_text(json.dumps({"bagel": [place, *self.methods]}, indent=1), encoding="utf-8")
        return Prepared(["BAGEL", str(text)], folder, {"BAGEL_NUM_THREADS": "1"})

    def wrong(self, output):
        found = {int(state): float(energy) for state, energy in self.printed.findall(output)}
        if not all(state in found for state in range(len(self.energies))):
            raise NoAnswer("it did not come to its end")
        for state, energy in enumerate(self.energies):
            if not abs(found[state] - energy) <= self.tolerance:
                return f"its energy of state {state} is {found[state]}, that of one rank {energy}"
        return ""


PROGRAMS = [
    Bagel("fci", "BAGEL, hydrogen fluoride, full CI", "a window for each distributed CI vector: get and accumulate under lock-all",
          molecule=HYDROGEN_FLUORIDE, basis="6-31g", methods=FULL, printed=FULL_ENERGY,
          energies=(-100.11478375, -99.71212344), tolerance=2e-8),
    Bagel("caspt2", "BAGEL, water, XMS-CASPT2", "a window for each of thousands of block tensors: get, put and accumulate under lock-all",
          molecule=WATER, basis="svp", methods=PERTURBED, printed=PERTURBED_ENERGY,
          energies=(-76.1658648347, -75.8627491298, -75.7849216226), tolerance=1e-7),
]
