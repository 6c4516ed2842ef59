#!/usr/bin/python3 -B
"""NWChem's wall times as a table, and the shares of a profile. Run by nwchem_test.cpp; each test is a sentence."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tools"))

import nwchem_profile_parts as profile  # noqa: E402
import nwchem_tables as tables  # noqa: E402


def record(verdict="same", **more):
    return {"case": "water", "mpi": "mpich", "ranks": 2, "farsum": True, "path": "auto", "switch": "", "energy_only": False,
            "limit_s": 600, "verdict": verdict, "wall_s": 1.26, "command_s": 1.9, "energy_error": 0.0, **more}


class Cell(unittest.TestCase):
    def test_is_the_programs_own_wall_time_of_a_run_that_agrees(self):
        self.assertEqual(tables.cell(record()), "1.3 s")
        self.assertEqual(tables.cell(None), "")

    def test_says_what_became_of_any_other(self):
        self.assertEqual(tables.cell(record("not finished", wall_s=None)), "> 600 s")
        self.assertEqual(tables.cell(record("FAILED", wall_s=None, energy_error=3.0)), "wrong energy, aborts")
        self.assertEqual(tables.cell(record("FAILED", wall_s=None, energy_error=None)), "aborts")
        self.assertEqual(tables.cell(record("WRONG", energy_error=3.0)), "wrong")


class Table(unittest.TestCase):
    def test_has_a_line_for_each_case_and_mpi_that_was_run(self):
        lines = tables.section([record(), record("not finished", farsum=False)], {"water": "Water", "tce": "TCE"}, ["openmpi", "mpich"])
        self.assertEqual(lines.splitlines()[2:], ["| Water | mpich |  |  | > 600 s | 1.3 s |  |  |"])

    def test_sets_paths_beside_one_another_where_several_were_tried(self):
        lines = tables.section([record(), record(path="owner", wall_s=9.0)], {"water": "Water"}, ["mpich"])
        self.assertEqual(lines.splitlines()[-1], "| Water | mpich | 1.3 s |  | 9.0 s |")

    def test_of_merged_results_has_the_later_of_two_runs(self):
        self.assertEqual([one["wall_s"] for one in tables.merged([record(), record(ranks=4)], [record(wall_s=5.0)])], [5.0, 1.26])


class Profile(unittest.TestCase):
    REPORT = """
# Overhead  Samples  Command  Shared Object
    54.74%          6675  nwchem.openmpi  libopenblasp-r0.3.21.so
    30.88%          3774  nwchem.openmpi  nwchem.openmpi
     4.28%           524  nwchem.openmpi  libfarsum.so.0.1.0
     1.75%           234  nwchem.openmpi  [kernel.kallsyms]
     0.63%            77  nwchem.openmpi  mca_btl_vader.so
     0.62%            76  nwchem.openmpi  libopen-pal.so.40.30.2
     0.02%             3  nwchem.openmpi  something-else.so
    0.15%            20  mpirun.openmpi  libc.so.6
"""

    def test_sums_samples_by_part(self):
        self.assertEqual(profile.seconds_by_part(self.REPORT, ranks=2, frequency=1000),
                         {"linear algebra": 3.3375, "NWChem": 1.887, "Farsum": 0.262, "kernel": 0.117, "MPI library": 0.0765,
                          "other": 0.0015})


if __name__ == "__main__":
    unittest.main()
