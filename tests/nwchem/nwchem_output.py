"""Reads what NWChem prints: energies, gradient, frequencies and its own times. Knows nothing of how it was run."""

import re
from dataclasses import dataclass, field

NUMBER = r"(-?\d+\.\d+(?:[DE][+-]?\d+)?)"
# The names of the energies here, and the lines that hold them; the last such line of an output counts.
ENERGIES = {
    "SCF": rf"Total SCF energy =\s+{NUMBER}",
    "DFT": rf"Total DFT energy =\s+{NUMBER}",
    "MP2": rf"Total MP2 energy:?\s+{NUMBER}",
    "CCSD": rf"(?:Total CCSD energy:|CCSD total energy / hartree\s+=)\s+{NUMBER}",
    "CCSD(T)": rf"(?:Total CCSD\(T\) energy:|CCSD\(T\) total energy / hartree\s+=)\s+{NUMBER}",
}
GRADIENT_ROW = re.compile(r"^\s+\d+ [A-Z]\w?\s" + rf"\s+{NUMBER}" * 6 + r"\s*$")


@dataclass
class Output:
    energies: dict = field(default_factory=dict)  # Hartree
    gradient: list = field(default_factory=list)  # Hartree/bohr, x y z of atom after atom
    frequencies: list = field(default_factory=list)  # 1/cm, translations and rotations projected out
    cpu_s: float = None  # of rank 0; polling counts
    wall_s: float = None  # None when NWChem did not come to its end


def to_number(text):
    return float(text.replace("D", "E"))


def parse_gradient(text):
    """The rows of the last table under `ENERGY GRADIENTS`."""
    found = []
    for table in text.split("ENERGY GRADIENTS")[1:]:
        rows = []
        for line in table.splitlines():
            row = GRADIENT_ROW.match(line)
            if row:
                rows += [to_number(number) for number in row.groups()[3:]]
            elif rows:
                break
        found = rows or found
    return found


def parse(text):
    output = Output()
    for name, line in ENERGIES.items():
        values = re.findall(line, text)
        if values:
            output.energies[name] = to_number(values[-1])
    output.gradient = parse_gradient(text)
    for line in re.findall(r"^\s*P\.Frequency\s+(.*)$", text, re.MULTILINE):
        output.frequencies += [to_number(number) for number in line.split()]
    times = re.findall(rf"Total times\s+cpu:\s+{NUMBER}s\s+wall:\s+{NUMBER}s", text)
    if times:
        output.cpu_s, output.wall_s = map(to_number, times[-1])
    return output
