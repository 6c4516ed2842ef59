#!/usr/bin/python3 -B
"""Runs counter, gups and the examples as a user does, small, and judges exit codes, texts and answers.

usage: tests/apps/run_apps.py BIN_DIR [TEST ...]     such as: tests/apps/run_apps.py build/bin Gups
"""

import json
import os
import shutil
import subprocess
import sys
import unittest

DEADLINE_S = 60
RANKS = (1, 2, 3)
PATHS = ("direct", "attach", "caller", "owner", "aggregated")
ATOMIC_WAYS = ("gmp-mutex", "accumulate", "aggregated", "direct", "batched")


class Programs(unittest.TestCase):
    """Starts programs; every failure shows the command that replays it."""

    bin_dir = ""

    def run_program(self, ranks, name, *arguments, expect=0):
        """Runs a program over `ranks` ranks (0: without the launcher) and returns what it did."""
        command = [os.path.join(self.bin_dir, name), *map(str, arguments)]
        if ranks:
            command = [os.path.join(self.bin_dir, "farsum"), "run", "-n", str(ranks), *command]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
        told = f"{' '.join(command)}\nexit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        self.assertEqual(done.returncode, expect, told)
        return done

    def run_json(self, ranks, name, *arguments):
        return json.loads(self.run_program(ranks, name, *arguments, "--json").stdout)

    def assert_refuses(self, ranks, name, *arguments, because):
        done = self.run_program(ranks, name, *arguments, expect=2)
        self.assertIn(because, done.stderr)
        self.assertEqual(done.stderr.count(because), 1, "one rank says it, once")

    def assert_helps(self, name):
        for ranks in (0, 2):
            done = self.run_program(ranks, name, "--help")
            self.assertEqual(done.stdout.count("Example:"), 1)


class Counter(Programs):
    SMALL = ("--work-ms", "0.1", "--tasks-per-rank", "40")

    def test_every_ticket_comes_exactly_once_for_each_kind_case_and_length_of_tasks(self):
        for ranks in RANKS:
            with self.subTest(ranks=ranks):
                document = self.run_json(ranks, "counter", "--kind", "all", "--tasks", "both", *self.SMALL)
                self.assertTrue(document["right"])
                # 4 kinds, 2 lengths, 3 cases; alone, a rank has no case 2.
                self.assertEqual(len(document["results"]), 24 if ranks > 1 else 16)
                for result in document["results"]:
                    self.assertTrue(result["right"], result["verdict"])
                    self.assertEqual(sum(rank["tasks"] for rank in result["ranks"]), 40 * ranks)

    def test_the_owner_draws_nothing_in_case_2(self):
        document = self.run_json(3, "counter", "--case", "2", "--home", "2", *self.SMALL)
        gets = [rank["gets"] for rank in document["results"][0]["ranks"]]
        self.assertEqual(gets[2], 0)
        self.assertEqual(sum(gets), 3 * 40 + 2)

    def test_every_kind_is_right_on_every_path(self):
        for path in PATHS:
            with self.subTest(path=path):
                arguments = ("--kind", "all", "--case", "1", "--path", path, *self.SMALL)
                self.assertTrue(self.run_json(2, "counter", *arguments)["right"])

    def test_behind_the_agent_the_owner_serves_messages(self):
        document = self.run_json(2, "counter", "--case", "1", "--path", "owner", *self.SMALL)
        owner, asker = (rank for rank in document["results"][0]["ranks"])
        self.assertGreater(asker["statistics"]["operations"]["owner"], 0)
        self.assertGreater(owner["statistics"]["messages_served"], 0)

    def test_mapped_the_agent_is_left_alone(self):
        document = self.run_json(2, "counter", "--case", "1", "--path", "direct", *self.SMALL)
        owner, asker = (rank for rank in document["results"][0]["ranks"])
        self.assertGreater(asker["statistics"]["operations"]["direct"], 0)
        self.assertEqual(owner["statistics"]["messages_served"], 0)

    def test_it_runs_alone_without_the_launcher(self):
        self.assertIn("each exactly once", self.run_program(0, "counter", *self.SMALL).stdout)

    def test_bad_options_are_refused_with_a_sentence(self):
        self.assert_refuses(1, "counter", "--case", "2", because="case 2 needs 2 ranks")
        self.assert_refuses(2, "counter", "--home", "2", because="the ranks are 0 to 1")
        self.assert_refuses(2, "counter", "--kind", "lucky", because="--kind")
        self.assert_refuses(2, "counter", "--case", "4", because="--case")
        self.assert_refuses(2, "counter", "--work-ms", "-1", because="--work-ms")
        self.assert_refuses(2, "counter", "--path", "scenic", because="--path")
        self.assert_refuses(0, "counter", "--no-such-option", because="--no-such-option")

    def test_help_has_an_example(self):
        self.assert_helps("counter")


class Gups(Programs):
    def assert_right(self, result):
        self.assertTrue(result["right"], result)
        self.assertLessEqual(result["look_ahead_high_water"], 1024)
        if result["is_atomic"]:
            self.assertEqual(result["errors"], 0, result)

    def run_all_right(self, ranks, *arguments):
        document = self.run_json(ranks, "gups", *arguments)
        for result in document["results"]:
            self.assert_right(result)
        return document["results"]

    def test_every_atomic_way_loses_nothing(self):
        for ranks in RANKS:
            for op in ("xor", "sum"):
                with self.subTest(ranks=ranks, op=op):
                    ways = ",".join(ATOMIC_WAYS)
                    results = self.run_all_right(ranks, "--way", ways, "--op", op, "--log2-words", 11)
                    self.assertEqual([result["way"] for result in results], list(ATOMIC_WAYS))

    def test_get_modify_put_stays_within_what_hpcc_allows(self):
        for ranks in RANKS:
            with self.subTest(ranks=ranks):
                (result,) = self.run_all_right(ranks, "--way", "gmp", "--log2-words", 18, "--updates", 6000)
                self.assertFalse(result["is_atomic"])
                self.assertEqual(result["look_ahead_high_water"], 1)
                self.assertLessEqual(result["error_percent"], result["hpcc_allowed_percent"])

    def test_every_path_is_right_and_is_the_path(self):
        for path in PATHS:
            with self.subTest(path=path):
                # Attach is for bulk, aggregation for the small: the agent gets the rest.
                counted = (path, "owner") if path in ("attach", "aggregated") else (path,)
                arguments = ("--way", "accumulate,batched", "--path", path, "--log2-words", 9)
                for result in self.run_all_right(2, *arguments):
                    operations = [rank["operations"] for rank in result["statistics"]]
                    self.assertGreater(sum(rank[name] for rank in operations for name in counted), 0, result)

    def test_the_aggregated_way_takes_the_aggregated_path(self):
        (result,) = self.run_all_right(2, "--way", "aggregated", "--log2-words", 11)
        for rank in result["statistics"]:
            self.assertGreater(rank["operations"]["aggregated"], 0)
            self.assertLess(rank["messages_sent"], rank["operations"]["aggregated"] / 8)

    def test_cards_lose_nothing_and_carry_out_every_update(self):
        """Two names for one host, and UCX's shared memory for a card."""
        launcher = shutil.which("mpirun.openmpi")
        if launcher is None or "ucx_version" not in json.loads(self.run_program(0, "farsum", "info", "--json").stdout)["network"]:
            self.skipTest("needs Debian's Open MPI and UCX")
        gups = [os.path.join(self.bin_dir, "gups"), "--way", "card", "--op", "sum", "--log2-words", "11", "--json", "--quiet"]
        command = [launcher, "--allow-run-as-root", "--oversubscribe"] if os.geteuid() == 0 else [launcher, "--oversubscribe"]
        for name in "xy":
            command += [*([":"] if name == "y" else []), "-n", "2", "-x", f"FARSUM_NODE_NAME={name}", *gups]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, env={**os.environ, "FARSUM_NET_TLS": "posix"})
        self.assertEqual(done.returncode, 0, done.stderr)
        (result,) = json.loads(done.stdout)["results"]
        self.assert_right(result)
        self.assertEqual(sum(rank["operations"]["offload"] for rank in result["statistics"]), result["updates"])

    def test_without_a_card_the_card_way_is_refused_with_the_reason(self):
        done = self.run_program(2, "gups", "--way", "card", "--log2-words", 10, expect=1)
        self.assertIn("the table is no card's: ", done.stderr)

    def test_memory_of_the_program_itself_is_updated_right(self):
        self.run_all_right(2, "--way", ",".join(ATOMIC_WAYS), "--memory", "adopted", "--log2-words", 10)

    def test_no_more_than_a_batch_is_looked_ahead(self):
        for batch in (1, 7, 1024):
            with self.subTest(batch=batch):
                arguments = ("--way", "accumulate,aggregated,batched", "--log2-words", 10, "--batch", batch)
                for result in self.run_all_right(2, *arguments):
                    self.assertEqual(result["look_ahead_high_water"], batch)

    def test_an_epoch_for_each_update_is_right(self):
        arguments = ("--way", "accumulate", "--epochs", "per-update", "--log2-words", 10)
        (result,) = self.run_all_right(3, *arguments)
        self.assertEqual(result["look_ahead_high_water"], 1)

    def test_the_bare_loop_gives_a_ratio(self):
        arguments = ("--way", "direct", "--baseline", "--repeat", 3, "--log2-words", 12)
        (result,) = self.run_all_right(2, *arguments)
        self.assertEqual(len(result["baseline_gups_runs"]), 3)
        self.assertGreater(result["ratio_to_baseline"], 0)

    def test_it_runs_alone_without_the_launcher(self):
        done = self.run_program(0, "gups", "--way", "direct", "--log2-words", 12)
        self.assertIn("zero: right", done.stdout)

    def test_a_table_beyond_memory_fails_with_a_sentence(self):
        done = self.run_program(1, "gups", "--way", "direct", "--log2-words", 40, "--updates", 1, expect=1)
        self.assertIn("FARSUM_ERR_NO_MEMORY", done.stderr)

    def test_bad_options_are_refused_with_a_sentence(self):
        self.assert_refuses(3, "gups", "--log2-words", 1, because="too small for 3 ranks")
        self.assert_refuses(2, "gups", "--batch", 1025, because="--batch")
        self.assert_refuses(2, "gups", "--batch", 0, because="--batch")
        self.assert_refuses(2, "gups", "--way", "sideways", because="--way")
        self.assert_refuses(2, "gups", "--op", "prod", because="--op")
        self.assert_refuses(0, "gups", "--log2-words", 41, because="--log2-words")

    def test_help_has_an_example(self):
        self.assert_helps("gups")


class Examples(Programs):
    def test_first_adds_one_for_each_rank(self):
        for ranks in RANKS:
            with self.subTest(ranks=ranks):
                self.assertEqual(f"{ranks} ranks have added one\n", self.run_program(ranks, "example-first").stdout)

    def test_hello_put_notify_greets_the_neighbour(self):
        for ranks in RANKS:
            with self.subTest(ranks=ranks):
                told = self.run_program(ranks, "example-hello_put_notify").stdout
                for rank in range(ranks):
                    left = (rank - 1) % ranks
                    self.assertIn(f"rank {rank} got: hello from rank {left} of {ranks}\n", told)

    def test_shared_counter_does_every_task_once(self):
        for ranks in RANKS:
            with self.subTest(ranks=ranks):
                self.assertIn("sum 332833500, right", self.run_program(ranks, "example-shared_counter").stdout)

    def test_strided_accumulate_adds_up_the_blocks(self):
        for ranks in RANKS:
            with self.subTest(ranks=ranks):
                told = self.run_program(ranks, "example-strided_accumulate").stdout
                self.assertEqual([int(word) for word in told.split()].count(ranks), 12)


def main():
    if len(sys.argv) < 2 or not os.path.isdir(sys.argv[1]):
        sys.exit(__doc__)
    Programs.bin_dir = os.path.abspath(sys.argv[1])
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])


if __name__ == "__main__":
    main()
