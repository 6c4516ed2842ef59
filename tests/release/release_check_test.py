#!/usr/bin/python3 -B
"""How tools/release_check runs and judges its steps; each test is a sentence."""

import io
import os
import select
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from sibling import sibling  # noqa: E402

release_check = sibling("release_check")


def has_ended(pid):
    """A killed process may need a moment."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ended, _, _ = select.select([descriptor], [], [], 10)
    os.close(descriptor)
    return bool(ended)


class Steps(unittest.TestCase):
    def setUp(self):
        (ROOT / "build").mkdir(exist_ok=True)
        folder = tempfile.TemporaryDirectory(dir=ROOT / "build")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        patch = mock.patch.object(release_check, "LOGS", self.folder)
        patch.start()
        self.addCleanup(patch.stop)

    def result(self, *commands, may_be_skipped=(), limit_s=60):
        check = release_check.Check(io.StringIO(), may_be_skipped)
        check.run(release_check.Step("step", "a step", tuple(("sh", "-c", command) for command in commands), limit_s))
        return check.results[0]

    def test_pass_when_all_their_commands_succeed(self):
        self.assertEqual(self.result("true", "true").outcome, "passed")
        self.assertEqual(self.result("true", "false").outcome, "failed")

    def test_that_are_skipped_have_failed_unless_they_may_be(self):
        self.assertEqual(self.result("exit 77").outcome, "failed")
        self.assertEqual(self.result("exit 77", may_be_skipped=("step",)).outcome, "skipped")

    def test_beyond_their_limit_have_failed_and_leave_no_process(self):
        late = self.result(f"sleep 1000 & echo $! > {self.folder}/pid; wait", limit_s=1)
        self.assertEqual(late.outcome, "failed")
        self.assertEqual(late.said, "step did not end within its limit of 1 s and was killed")
        self.assertTrue(has_ended(int((self.folder / "pid").read_text(encoding="utf-8"))))

    def test_share_one_limit_among_their_commands(self):
        self.assertEqual(self.result("sleep 0.6", "sleep 0.6", limit_s=30).outcome, "passed")
        late = self.result("sleep 0.6", "sleep 0.6", limit_s=1)
        self.assertEqual((late.outcome, late.said), ("failed", "step did not end within its limit of 1 s and was killed"))

    def test_whose_tool_is_not_there_have_failed_and_the_next_runs(self):
        check = release_check.Check(io.StringIO(), ())
        check.run(release_check.Step("first", "a step", (("no-such-tool",),)))
        check.run(release_check.Step("second", "a step", (("true",),)))
        self.assertEqual([result.outcome for result in check.results], ["failed", "passed"])
        self.assertEqual(check.results[0].said, "no-such-tool cannot be run: No such file or directory")

    def test_run_all_of_the_zoo_such_that_missing_programs_are_seen(self):
        step, = (step for step in release_check.STEPS if step.name == "zoo")
        self.assertEqual(step.commands, (("tools/zoo", "run", "--with", "--no-results"),))


if __name__ == "__main__":
    unittest.main()
