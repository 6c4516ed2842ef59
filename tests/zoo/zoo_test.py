#!/usr/bin/python3 -B
"""The zoo's own judgement and its tables; each test is a sentence."""

import contextlib
import io
import json
import re
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import zoo_report as report  # noqa: E402
import zoo_runs as runs  # noqa: E402
from sibling import sibling  # noqa: E402
from zoo_runs import FAILED, LEFT, NO_WINDOW, ONE_HOST, RIGHT, UNFINISHED, WRONG, Cell, Missing, NoAnswer, NotBuilt, Run  # noqa: E402

from program import Prepared, Program, compile_program  # noqa: E402

PROGRAMS = runs.load_programs()
zoo = sibling("zoo")


def cell(*made):
    return Cell("p", "a program", "mpich", "4.0", 1, 2, 60.0, [Run(*one) for one in made], 3, 5000, 0, 40000, ["direct"])


class Programs(unittest.TestCase):
    def test_have_names_titles_and_what_they_come_from(self):
        for name, program in PROGRAMS.items():
            with self.subTest(name):
                self.assertTrue(program.title and program.origin and program.windows and program.libraries and program.hosts)
                self.assertTrue(set(program.short) <= set(program.libraries))
                self.assertTrue(program.only or {"mpich", "openmpi", "mpich5", "openmpi5", "impi"} <= set(program.libraries))

    def test_take_no_output_and_no_end_for_no_answer(self):
        for name, program in PROGRAMS.items():
            with self.subTest(name):
                for output in ("", "some words of a launcher\n"):
                    with self.assertRaises(NoAnswer):
                        program.wrong(output)

    def test_say_what_installs_what_they_lack(self):
        with mock.patch("shutil.which", return_value=None), mock.patch.object(runs.pypi, "is_here", return_value=False):
            for name, program in PROGRAMS.items():
                with self.subTest(name), self.assertRaises(Missing) as lack:
                    program.prepare({"name": program.libraries[0], "lib": "/nowhere", "compiler": "cc", "abi": ""}, Path("/nowhere"))
                self.assertRegex(lack.exception.remedy, r"^tools/(setup|zoo fetch)")

    def test_that_are_short_are_those_of_make_test(self):
        listed = re.search(r"FARSUM_SHORT_ZOO ([^)]+)\)", (ROOT / "cmake" / "Zoo.cmake").read_text(encoding="utf-8")).group(1).split()
        self.assertEqual(listed, [name for name, program in PROGRAMS.items() if program.short])

    def test_are_missing_without_a_compiler_and_not_built_where_it_fails(self):
        with self.assertRaises(Missing):
            compile_program(["no-such-compiler", "source"])
        with self.assertRaises(NotBuilt) as reason:
            compile_program(["sh", "-c", "echo a line of a compiler; exit 1"])
        self.assertEqual(reason.exception.said, "a line of a compiler\n")

    def test_farmer_has_the_optimum_between_its_bounds(self):
        farmer = PROGRAMS["mpi-sppy/farmer"]
        end = ("[   16.28] Statistics at termination\n[   16.28] Iter.           Best Bound  Best Incumbent      Rel. Gap        Abs. Gap\n"
               "[   16.28]    12    X   {}   {}        4.856%     122950.4137\n")
        self.assertEqual(farmer.answer(end), "")
        self.assertEqual(farmer.wrong(end.format("-2531977.8049", "-2409027.3912")), "")
        self.assertIn("not between", farmer.wrong(end.format("-2431977.8049", "-2409027.3912")))
        self.assertIn("not between", farmer.wrong(end.format("-2531977.8049", "-2439027.3912")))
        wide = end.format("-2631977.8049", "-2409027.3912").replace("4.856%", "9.256%")
        self.assertIn("12 iterations", farmer.wrong(wide))
        self.assertEqual(farmer.wrong(wide.replace("   12  L X", "   20  L X").replace("]    12 ", "]    20 ")), "")
        self.assertEqual(farmer.answer(wide), "12 iterations")

    def test_nwchem_has_the_energy_of_one_rank(self):
        water = PROGRAMS["nwchem/water_mp2"]
        text = "          Total MP2 energy           {}\n Total times  cpu:        0.3s     wall:        0.4s\n"
        self.assertEqual(water.wrong(text.format("-76.195337652776")), "")
        self.assertIn("its energy", water.wrong(text.format("-76.195337852776")))
        with self.assertRaises(NoAnswer):
            water.wrong("          Total MP2 energy           -76.195337652776\n")


class Verdicts(unittest.TestCase):
    def test_of_a_cell_is_that_of_its_worst_run(self):
        self.assertEqual(cell((True, 1.0, RIGHT), (True, 1.0, WRONG)).verdict(True), WRONG)
        self.assertEqual(cell((True, 1.0, UNFINISHED), (True, 1.0, FAILED), (True, 1.0, WRONG)).verdict(True), WRONG)
        self.assertEqual(cell((True, 1.0, UNFINISHED), (True, 1.0, FAILED)).verdict(True), FAILED)
        self.assertEqual(cell((True, 1.0, RIGHT), (False, 1.0, FAILED)).verdict(True), RIGHT)
        self.assertEqual(cell((True, 1.0, RIGHT)).verdict(False), "")

    def test_times_are_of_runs_that_were_right(self):
        self.assertEqual(cell((True, 3.0, RIGHT), (True, 1.0, UNFINISHED), (True, 2.0, RIGHT), (True, 9.0, RIGHT)).median(True), 3.0)

    def test_take_turns_so_that_neither_is_always_first(self):
        self.assertEqual(runs.order_of(3), [False, True, True, False, False, True])


class Judgement(unittest.TestCase):
    def verdict(self, status, text):
        events = PROGRAMS["coarrays/events"]
        return runs.Starter(events, {}, None, 2, Path("farsum"), Path(".")).judge(status, 1.0, text, True).verdict

    def test_is_wrong_where_the_answer_is_however_the_program_ends(self):
        for status in (0, 1, None):
            self.assertEqual(self.verdict(status, "events: wrong: 3\n"), WRONG)

    def test_is_of_the_end_where_the_answer_is_right_or_not_there(self):
        for text in ("events: right\n", ""):
            self.assertEqual(self.verdict(1, text), FAILED)
            self.assertEqual(self.verdict(None, text), UNFINISHED)

    def test_needs_an_answer_for_right(self):
        self.assertEqual(self.verdict(0, "events: right\n"), RIGHT)
        self.assertEqual(self.verdict(0, ""), FAILED)


class Starter:
    """Stands for runs: what each gives is said beforehand."""

    def __init__(self, windows, *given, left=(), to_other_hosts=0):
        self.windows, self.given, self.asked = windows, list(given), []
        self.left, self.to_other_hosts = left, to_other_hosts

    def start(self, farsum, number, statistics_file=None):
        self.asked.append((farsum, number))
        if statistics_file:
            done = [{"kind": "run", "windows": self.windows}]
            if self.windows:
                done.append({"kind": "operation", "path": "direct", "count": 3, "bytes": 24, "network_count": self.to_other_hosts})
            done += [{"kind": "left_to_library", "sentence": sentence} for sentence in self.left]
            statistics_file.write_text("\n".join(map(json.dumps, done)), encoding="utf-8")
        return Run(farsum, 1.0, self.given.pop(0) if self.given else RIGHT)


class Cells(unittest.TestCase):
    def run_one(self, starter, pairs=2, hosts=1):
        done = cell()
        done.windows, done.paths, done.hosts = 0, [], hosts
        runs.run_cell(starter, done, pairs, lambda _text: None)
        return done

    def test_are_wrong_where_no_window_was_farsums(self):
        self.assertEqual(self.run_one(Starter(0)).verdict(True), NO_WINDOW)
        self.assertEqual(self.run_one(Starter(0), pairs=0).verdict(True), NO_WINDOW)

    def test_are_not_right_where_some_windows_were_left_to_the_library(self):
        self.assertEqual(self.run_one(Starter(2, left=["792 windows of another communicator"])).verdict(True), LEFT)

    def test_are_not_right_over_hosts_where_nothing_went_to_another(self):
        self.assertEqual(self.run_one(Starter(2), hosts=2).verdict(True), ONE_HOST)
        self.assertEqual(self.run_one(Starter(2, to_other_hosts=1), hosts=2).verdict(True), RIGHT)

    def test_are_right_where_all_was(self):
        self.assertEqual(self.run_one(Starter(2)).verdict(True), RIGHT)
        self.assertEqual(len(self.run_one(Starter(2), pairs=0).of(True)), 1)

    def test_do_not_start_again_alone_what_did_not_end(self):
        starter = Starter(2, RIGHT, UNFINISHED)
        self.run_one(starter, pairs=3)
        self.assertEqual([farsum for farsum, _ in starter.asked].count(False), 1)

    def test_keep_what_the_first_run_did_wrong(self):
        self.assertEqual(self.run_one(Starter(2, WRONG)).verdict(True), WRONG)

    def test_keep_a_bad_run_once_where_it_is_the_only_one(self):
        self.assertEqual(len(self.run_one(Starter(2, WRONG), pairs=0).runs), 1)


class Stub(Program):
    """A program of which preparing gives what is said beforehand."""
    title = "a program"
    hosts = (1, 2)

    def __init__(self, name, libraries, prepared):
        self.name, self.libraries, self.short, self.prepared = name, libraries, (), prepared

    def prepare(self, library, folder):
        if isinstance(self.prepared, Exception):
            raise self.prepared
        return self.prepared


GOOD = Stub("good", ("mpich",), Prepared(["true"], Path(".")))
LACKING = Stub("lacking", ("mpich",), Missing("a package is not here", "tools/setup --with-zoo"))
BROKEN = Stub("broken", ("mpich",), NotBuilt("it does not compile", "error: here\n"))
ELSEWHERE = Stub("elsewhere", ("impi",), Prepared(["true"], Path(".")))


class Campaigns(unittest.TestCase):
    def run_all(self, *programs, hosts=(1,), allow_missing=False, library=None, made=None):
        """made: what comes of test hosts."""
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()), \
                mock.patch.object(zoo.hosts_mpi, "libraries", return_value={"mpich": {"name": "mpich", "version": "4"}}), \
                mock.patch.object(zoo.zoo_runs, "built_commit", return_value="abc"), \
                mock.patch.object(zoo.conformance_hosts, "Hosts", side_effect=made), \
                mock.patch.object(zoo.zoo_runs, "run_cell", lambda _starter, made, _pairs, _say: made.runs.append(Run(True, 1.0, RIGHT))):
            arguments = SimpleNamespace(build=Path(folder), output=Path(folder), hosts=list(hosts), short=False, library=library,
                                        ranks=None, pairs=0, no_results=True, add=False, allow_missing=allow_missing)
            campaign = zoo.Campaign(arguments, programs)
            campaign.run()
            return campaign

    def test_fail_where_a_program_does_not_compile(self):
        campaign = self.run_all(GOOD, BROKEN, allow_missing=True)
        self.assertEqual([one.verdict(True) for one in campaign.cells], [RIGHT, FAILED])
        self.assertEqual((campaign.status(), campaign.missing), (1, []))
        self.assertEqual(campaign.cells[1].of(True)[0].tail, ["error: here"])

    def test_are_whole_only_when_nothing_is_missing(self):
        self.assertEqual(self.run_all(GOOD).status(), 0)
        self.assertEqual(self.run_all(GOOD, LACKING).status(), zoo.CANNOT)
        self.assertEqual(self.run_all(GOOD, LACKING, allow_missing=True).status(), 0)
        self.assertEqual(self.run_all(LACKING, allow_missing=True).status(), zoo.CANNOT)
        self.assertEqual(self.run_all(BROKEN, LACKING).status(), 1)

    def test_name_program_library_and_what_installs_the_missing(self):
        lack, = self.run_all(LACKING).missing
        self.assertEqual(str(lack), "lacking, mpich: a package is not here (tools/setup --with-zoo)")
        self.assertIn("tools/setup", str(self.run_all(ELSEWHERE).missing[0]))

    def test_keep_what_was_run_on_one_node_where_hosts_cannot_be_had(self):
        campaign = self.run_all(GOOD, hosts=(1, 2), made=zoo.conformance_hosts.NoHosts("test hosts need root", 77))
        self.assertEqual([one.verdict(True) for one in campaign.cells], [RIGHT])
        self.assertIn("test hosts need root", campaign.missing[0].what)
        self.assertEqual(campaign.status(), zoo.CANNOT)

    def test_fail_where_hosts_fail(self):
        campaign = self.run_all(GOOD, hosts=(1, 2), made=zoo.conformance_hosts.NoHosts("no bridge came up", 1))
        self.assertEqual([one.verdict(True) for one in campaign.cells], [RIGHT, FAILED])
        self.assertEqual(campaign.status(), 1)

    def test_keep_the_commit_in_each_cell(self):
        self.assertEqual(self.run_all(GOOD).cells[0].commit, "abc")

    def test_do_not_take_for_missing_what_nobody_offers(self):
        asked = SimpleNamespace(short=False, library=["openmpi"], hosts=[2])
        self.assertEqual(zoo.not_offered(asked, [PROGRAMS["bagel/fci"]]),
                         ["bagel/fci, openmpi: not offered: Debian builds it for MPICH alone"])
        self.assertEqual(zoo.not_offered(asked, [PROGRAMS["petsc/shared"]]), ["petsc/shared: not offered on 2 hosts"])
        campaign = self.run_all(GOOD, library=["openmpi"])
        self.assertEqual((campaign.cells, campaign.missing), ([], []))

    def test_refuse_names_that_nothing_has(self):
        for wrong in ({"program": ["coarrays/*", "nothing"]}, {"library": ["opnmpi"]}):
            with self.subTest(wrong), self.assertRaises(SystemExit):
                zoo.chosen(SimpleNamespace(**{"program": None, "library": None, "short": False, **wrong}), PROGRAMS)


class Tables(unittest.TestCase):
    def test_give_the_median_the_range_and_the_ratio(self):
        words = report.row(cell((False, 2.0, RIGHT), (False, 4.0, RIGHT), (True, 1.0, RIGHT), (True, 2.0, RIGHT)))
        self.assertEqual(words[7:9], ["5 k", "40 k"])
        self.assertEqual(words[3:6], ["3.00 (2.00 to 4.00)", "1.50 (1.00 to 2.00)", "0.50"])

    def test_say_what_was_not_right(self):
        self.assertEqual(report.outcome(cell((False, 60.0, UNFINISHED)), False), UNFINISHED)
        some = cell((False, 2.0, RIGHT), (False, 4.0, WRONG), (True, 1.0, RIGHT))
        self.assertEqual(report.outcome(some, False), "WRONG in 1 of 2; 2.00")
        mixed = cell((True, 1.0, FAILED), (True, 1.0, WRONG), (True, 1.0, FAILED))
        self.assertEqual(report.outcome(mixed, True), "WRONG in 1, FAILED in 2 of 3")
        self.assertIsNone(report.ratio(some))

    def test_keep_earlier_cells_that_were_not_run_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results.json"
            report.write(path, [cell((True, 1.0, RIGHT))], False)
            other = cell((True, 2.0, RIGHT))
            other.library = "openmpi"
            report.write(path, [other], True)
            self.assertEqual([one.library for one in report.read(path)], ["mpich", "openmpi"])

    def test_say_what_was_left_to_the_library(self):
        some = cell((True, 1.0, RIGHT))
        some.left = ["2 windows of another communicator"]
        for table in (report.plain_table([some]), report.section([some])):
            self.assertIn("2 windows of another communicator", table)

    def test_name_the_commit_once_or_in_each_row(self):
        new, other = cell((True, 1.0, RIGHT)), cell((True, 1.0, RIGHT))
        new.commit = other.commit = "abc"
        self.assertEqual(report.section([new, other]).count("abc"), 1)
        self.assertIn("Commit measured: abc.", report.section([new, other]))
        other.commit = "def"
        self.assertRegex(report.section([new, other]), r"\| abc \|\n.*\| def \|$")

    def test_read_records_that_name_no_commit(self):
        old = cell((True, 1.0, RIGHT)).as_json()
        del old["commit"]
        self.assertIn("Commit measured: unknown.", report.section([Cell.from_json(json.loads(json.dumps(old)))]))

    def test_draw_in_red_what_is_not_right_with_farsum(self):
        for runs_of_it in ([(False, 2.0, RIGHT), (True, 4.0, FAILED)], [(False, 2.0, RIGHT), (True, 4.0, FAILED), (True, 4.0, RIGHT)]):
            picture = report.bars([cell(*runs_of_it)])
            self.assertIn("with Farsum: FAILED", picture)
            self.assertIn(report.RED, picture)
            self.assertNotIn(report.GREEN, picture)

    def test_draw_a_bar_for_what_is_wrong_alone(self):
        self.assertIn("WRONG", report.bars([cell((False, 2.0, WRONG), (True, 4.0, RIGHT))]))


if __name__ == "__main__":
    unittest.main()
