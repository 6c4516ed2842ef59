#!/usr/bin/python3 -B
"""The zoo's own judgement and its tables; each test is a sentence."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tools"))

import zoo_report as report  # noqa: E402
import zoo_runs as runs  # noqa: E402
from zoo_runs import FAILED, NO_WINDOW, RIGHT, UNFINISHED, WRONG, Cell, Run  # noqa: E402

PROGRAMS = runs.load_programs()


def cell(*made):
    return Cell("p", "a program", "mpich", "4.0", 1, 2, 60.0, [Run(*one) for one in made], 3, 5000, 40000, ["direct"])


class Programs(unittest.TestCase):
    def test_have_names_titles_and_what_they_come_from(self):
        for name, program in PROGRAMS.items():
            with self.subTest(name):
                self.assertTrue(program.title and program.origin and program.windows and program.libraries and program.hosts)
                self.assertTrue(set(program.short) <= set(program.libraries))

    def test_take_no_output_and_no_end_for_wrong(self):
        for name, program in PROGRAMS.items():
            with self.subTest(name):
                self.assertTrue(program.wrong(""))
                self.assertTrue(program.wrong("some words of a launcher\n"))

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
        self.assertIn("end", water.wrong("          Total MP2 energy           -76.195337652776\n"))


class Verdicts(unittest.TestCase):
    def test_of_a_cell_is_that_of_its_worst_run(self):
        self.assertEqual(cell((True, 1.0, RIGHT), (True, 1.0, WRONG)).verdict(True), WRONG)
        self.assertEqual(cell((True, 1.0, RIGHT), (False, 1.0, FAILED)).verdict(True), RIGHT)
        self.assertEqual(cell((True, 1.0, RIGHT)).verdict(False), "")

    def test_times_are_of_runs_that_were_right(self):
        self.assertEqual(cell((True, 3.0, RIGHT), (True, 1.0, UNFINISHED), (True, 2.0, RIGHT), (True, 9.0, RIGHT)).median(True), 3.0)

    def test_take_turns_so_that_neither_is_always_first(self):
        self.assertEqual(runs.order_of(3), [False, True, True, False, False, True])


class Starter:
    """Stands for runs: what each gives is said beforehand."""

    def __init__(self, windows, *given):
        self.windows, self.given, self.asked = windows, list(given), []

    def start(self, farsum, number, statistics_file=None):
        self.asked.append((farsum, number))
        if statistics_file:
            done = ['{"kind":"operation","path":"direct","count":3,"bytes":24}'] if self.windows else []
            statistics_file.write_text("\n".join([f'{{"kind":"run","windows":{self.windows}}}', *done]), encoding="utf-8")
        return Run(farsum, 1.0, self.given.pop(0) if self.given else RIGHT)


class Cells(unittest.TestCase):
    def run_one(self, starter, pairs=2, alone=True):
        done = cell()
        done.windows, done.paths = 0, []
        runs.run_cell(starter, done, pairs, lambda _text: None, alone)
        return done

    def test_are_wrong_where_no_window_was_farsums(self):
        self.assertEqual(self.run_one(Starter(0)).verdict(True), NO_WINDOW)
        self.assertEqual(self.run_one(Starter(0), pairs=0).verdict(True), NO_WINDOW)

    def test_are_right_where_all_was(self):
        self.assertEqual(self.run_one(Starter(2)).verdict(True), RIGHT)
        self.assertEqual(len(self.run_one(Starter(2), pairs=0).of(True)), 1)

    def test_do_not_start_again_alone_what_did_not_end(self):
        starter = Starter(2, RIGHT, UNFINISHED)
        self.run_one(starter, pairs=3)
        self.assertEqual([farsum for farsum, _ in starter.asked].count(False), 1)

    def test_keep_what_the_first_run_did_wrong(self):
        self.assertEqual(self.run_one(Starter(2, WRONG)).verdict(True), WRONG)


class Tables(unittest.TestCase):
    def test_give_the_median_the_range_and_the_ratio(self):
        words = report.row(cell((False, 2.0, RIGHT), (False, 4.0, RIGHT), (True, 1.0, RIGHT), (True, 2.0, RIGHT)))
        self.assertEqual(words[7:9], ["5 k", "40 k"])
        self.assertEqual(words[3:6], ["3.00 (2.00 to 4.00)", "1.50 (1.00 to 2.00)", "0.50"])

    def test_say_what_was_not_right(self):
        self.assertEqual(report.outcome(cell((False, 60.0, UNFINISHED)), False), UNFINISHED)
        some = cell((False, 2.0, RIGHT), (False, 4.0, WRONG), (True, 1.0, RIGHT))
        self.assertEqual(report.outcome(some, False), "WRONG in 1 of 2; 2.00")
        self.assertIsNone(report.ratio(some))

    def test_keep_earlier_cells_that_were_not_run_again(self):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results.json"
            report.write(path, [cell((True, 1.0, RIGHT))], False)
            other = cell((True, 2.0, RIGHT))
            other.library = "openmpi"
            report.write(path, [other], True)
            self.assertEqual([one.library for one in report.read(path)], ["mpich", "openmpi"])

    def test_draw_a_bar_for_what_is_wrong_alone(self):
        self.assertIn("WRONG", report.bars([cell((False, 2.0, WRONG), (True, 4.0, RIGHT))]))


if __name__ == "__main__":
    unittest.main()
