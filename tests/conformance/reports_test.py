#!/usr/bin/python3 -B
"""How tools/conformance reads and judges the programs of tests/reports. Run by conformance_test.cpp; each test is a sentence."""

import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tools"))

import conformance_cases as cases  # noqa: E402
import conformance_reports as reports  # noqa: E402

LIBRARY = {"name": "mpich", "abi": "mpich", "compiler": "/usr/bin/mpicc.mpich", "version": "4", "prefix": "/usr", "lib": "/usr/lib",
           "mpirun": ["/usr/bin/mpirun.mpich"]}


def cases_of(head):
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "prog.c"
        source.write_text(head, encoding="utf-8")
        return [case for run in reports.runs_of(source) if run.is_for(LIBRARY)
                for case, _ in reports.cases_of_run(LIBRARY, run, limit_s=15)]


class Head(unittest.TestCase):
    def test_that_says_nothing_is_two_ranks_everywhere(self):
        case, = cases_of("/* About. */\n")
        self.assertEqual((case.identity, case.ranks, case.limit_s, case.program[1:]), ("reports/prog", 2, 15, []))
        self.assertEqual((case.modes, case.places, case.around), (["native", "farsum"], ["node", "hosts"], []))

    def test_gives_a_case_for_each_run_and_number_of_ranks(self):
        made = cases_of("/* About.\n *\n * RUN: ranks=2,4\n"
                        " * RUN: as=other on=node with=farsum seconds=30 set=A=b=c -- one 'two words' */\n")
        self.assertEqual([(case.identity, case.ranks) for case in made],
                         [("reports/prog", 2), ("reports/prog", 4), ("reports/prog.other", 2)])
        self.assertEqual((made[2].modes, made[2].places, made[2].limit_s), (["farsum"], ["node"], 30))
        self.assertEqual((made[2].environment, made[2].program[1:]), ({"A": "b=c"}, ["one", "two words"]))

    def test_leaves_out_the_libraries_that_it_does_not_name(self):
        self.assertEqual(cases_of("// RUN: libraries=openmpi*,impi\n"), [])
        self.assertEqual(len(cases_of("// RUN: libraries=openmpi*,mp*\n")), 1)

    def test_with_a_word_that_nobody_knows_is_refused(self):
        for line in ("rank=2", "limit=as:8X", "limit=air:8G", "-fsanitize=address", "ranks"):
            with self.assertRaises(reports.HeadError, msg=line):
                cases_of(f"/* RUN: {line} */\n")

    def test_whose_paragraph_was_filled_is_refused(self):
        with self.assertRaises(reports.HeadError):
            cases_of("/* About. RUN: ranks=4 */\n")
        with self.assertRaises(reports.HeadError):
            cases_of("/* RUN: as=one RUN: as=two */\n")


class Limits(unittest.TestCase):
    def test_of_locked_memory_come_without_the_capability_to_exceed_them_or_not_at_all(self):
        case, = cases_of("/* RUN: limit=memlock:64K */\n")
        if not case.skip:
            self.assertEqual(case.around, ["prlimit", "--memlock=65536:65536", *reports.WITHOUT_LOCKING])

    def test_are_a_skip_where_the_capability_stays(self):
        kept = mock.Mock(returncode=0, stdout="CapEff:\t000001ffffffffff\n")
        with mock.patch.object(reports.subprocess, "run", return_value=kept), \
                mock.patch.object(reports.shutil, "which", return_value="/x"):
            case, = cases_of("/* RUN: limit=memlock:64K */\n")
            free, = cases_of("/* RUN: limit=as:8G */\n")
        self.assertEqual((case.around, case.skip), ([], "a way to drop CAP_IPC_LOCK"))
        self.assertEqual((free.around, free.skip), (["prlimit", f"--as={8 << 30}:{8 << 30}"], ""))

    def test_above_what_the_machine_allows_are_a_skip(self):
        with mock.patch.object(reports.resource, "getrlimit", return_value=(1 << 20, 1 << 20)):
            case, = cases_of("/* RUN: limit=as:2M */\n")
        self.assertIn("a limit of 2M for as", case.skip)


class Judge(unittest.TestCase):
    def test_takes_notes_and_no_other_words(self):
        self.assertTrue(reports.judged(0, "note: 3 us\n No Errors\n"))
        self.assertFalse(reports.judged(0, "note: 3 us\n"))
        self.assertFalse(reports.judged(0, "WRONG: rank 0\n No Errors\n"))
        self.assertFalse(reports.judged(1, " No Errors\n"))

    def test_of_runs_that_are_to_hear_something_takes_all_but_wrong(self):
        self.assertTrue(reports.judged_beside_others(0, "a table\n No Errors\n"))
        self.assertFalse(reports.judged_beside_others(0, "WRONG: rank 0\n No Errors\n"))

    def test_wants_what_is_to_be_heard_with_farsum_only(self):
        case, = cases_of("/* RUN: hears=taken.over */\n")
        launcher = cases.Launcher(LIBRARY, "native", Path("/nowhere"))
        self.assertTrue(launcher.passes(case, 0, " No Errors\n"))
        launcher.mode = "farsum"
        self.assertFalse(launcher.passes(case, 0, " No Errors\n"))
        self.assertTrue(launcher.passes(case, 0, " No Errors\ntaken over\n"))


class Programs(unittest.TestCase):
    def test_each_say_what_is_expected(self):
        for source in reports.programs():
            self.assertIn("EXPECTED: ", source.read_text(encoding="utf-8"), source.name)
            self.assertTrue(reports.runs_of(source), source.name)

    def test_give_each_case_a_name_of_its_own(self):
        names = [run.name for source in reports.programs() for run in reports.runs_of(source)]
        self.assertEqual(len(names), len(set(names)))


if __name__ == "__main__":
    unittest.main()
