#!/usr/bin/python3 -B
"""The tables that tools/lab_evidence writes. Run by lab_test.cpp; each test is a sentence."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tools"))

import doc_section  # noqa: E402
import lab_tables  # noqa: E402


def run_of(program, farsum, records, ended="", **more):
    return {"program": program, "mpi": "mpich5", "farsum": farsum, "ended": ended, "complaint": "", "records": records, **more}


def counted(case, median, **more):
    return {"memory": "create", "tasks": "equal", "implementation": "tree", "case": case, "get_us": {"median": median}, **more}


class Records(unittest.TestCase):
    def test_are_the_json_lines_of_an_output_and_nothing_else(self):
        self.assertEqual(lab_tables.read_records('farsum: hello\n{"case": 1}\n17\n{"case": 2'), [{"case": 1}])

    def test_of_a_program_that_aborts_end_with_its_sentence(self):
        self.assertEqual(lab_tables.complaint("x\n[vm:1] rank 0: 10 words are wrong\nrank 1: 10 words are wrong"), "10 words are wrong")
        self.assertEqual(lab_tables.complaint("Abort(3) on node 0"), "")


class CounterTable(unittest.TestCase):
    def last_row(self, *runs):
        return [cell.strip() for cell in lab_tables.counter(lab_tables.Runs(list(runs)), "counter").splitlines()[-1].split("|")[5:-1]]

    def test_sets_the_cases_without_and_with_farsum_beside_one_another(self):
        self.assertEqual(self.last_row(run_of("counter", False, [counted(1, 2000), counted(2, 4), counted(3, 30)]),
                                       run_of("counter", True, [counted(1, 0.3), counted(2, 0.2), counted(3, 0.25)])),
                         ["2000", "4", "30", "5e+02", "0.3", "0.2", "0.25", "1.5"])

    def test_says_what_a_run_did_not_reach_and_what_a_library_has_not(self):
        missing = {"memory": "create", "tasks": "equal", "implementation": "tree", "case": 3, "not_available": "n/a: no threads"}
        self.assertEqual(self.last_row(run_of("counter", False, [counted(1, 2000)], ended="> 60 s"),
                                       run_of("counter", True, [counted(1, 1), counted(2, 1), missing])),
                         ["2000", "> 60 s", "> 60 s", "-", "1", "1", "n/a", "1"])


class NumbersAfter(unittest.TestCase):
    def test_stand_beside_the_processors_own_addition(self):
        def after(kind, own, another):
            return {"memory": "allocate", "tasks": "equal", "implementation": kind, "case": 1, "get_us": {"median": own},
                    "get_us_after_own": {"median": own}, "get_us_after_another": {"median": another}}

        runs = lab_tables.Runs([run_of("counter", False, [after("fetch-op", 0.1, 0.5), after("bare", 0.03, 0.2)]),
                                run_of("counter", True, [after("fetch-op", 0.05, 0.2), after("bare", 0.03, 0.16)])])
        self.assertEqual(lab_tables.numbers_after(runs).splitlines()[2:], ["| mpich5 | equal | 0.1 | 0.5 | 0.05 | 0.2 | 0.03 | 0.16 |"])
        self.assertEqual([line for line in lab_tables.counter(runs, "counter").splitlines() if "bare" in line], [])


class RandomAccessTable(unittest.TestCase):
    def test_gives_a_run_of_another_way_no_blame(self):
        def updates(mode, depth):
            return {"mode": mode, "depth": depth, "op": "xor", "memory": "create", "million_updates_per_s": {"median": 2.5}}

        runs = lab_tables.Runs([run_of("randomaccess", False, [{"mode": "fence", "excluded": "why"}, updates("accumulate", 1)],
                                       mode="accumulate", memory="create"),
                                run_of("randomaccess", True, [updates("accumulate", 1)], mode="accumulate", memory="create"),
                                run_of("randomaccess", False, [], ended="wrong", mode="two-sided", memory="create"),
                                run_of("randomaccess", True, [updates("two-sided", 64)], mode="two-sided", memory="create")])
        self.assertEqual(lab_tables.randomaccess(runs, "xor", "create").splitlines()[2:],
                         ["| accumulate | 1 | 2.5 | 2.5 |", "| two-sided | 64 | wrong | 2.5 |"])


class Section(unittest.TestCase):
    def test_replaces_what_stands_between_its_markers_only(self):
        begin, end = doc_section.markers("lab", "a tool")
        self.assertEqual(doc_section.replaced(f"before {begin} old {end} after", "lab", "a tool", "new"),
                         f"before {begin}\n\nnew\n\n{end} after")

    def test_without_markers_is_refused(self):
        with self.assertRaises(doc_section.NoMarkers):
            doc_section.replaced("no markers", "lab", "a tool", "new")


if __name__ == "__main__":
    unittest.main()
