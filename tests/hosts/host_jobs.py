"""What the scripts of this folder share: hosts of their own, ranks in them, and the libraries to start with. Who imports it
can import tools/*.py too."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import hosts_mpi  # noqa: E402

TOOL = str(ROOT / "tools" / "hosts")
SKIPPED = 77


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


class Hosts:
    """A set of hosts under a name that nobody else has; it goes with this process, however that ends."""

    def __init__(self, count):
        self.count = count
        self.name = f"across-{os.getpid()}"

    def __enter__(self):
        made = self.command("up", str(self.count), "--owner", str(os.getpid()))
        if made.returncode == SKIPPED:
            skip(made.stdout.strip())
        if made.returncode:
            sys.exit(made.stdout)
        return self

    def __exit__(self, *_):
        self.command("down")

    def words(self, *words):
        return [TOOL, "--name", self.name, *words]

    def command(self, *words):
        return subprocess.run(self.words(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)

    def do(self, *words):
        done = self.command(*words)
        if done.returncode:
            sys.exit(f"tools/hosts {' '.join(words)}: {done.stdout}")
        return done.stdout

    def names(self):
        return "abcdefghijklmnopqrstuvwxyz"[:self.count]


class Job:
    """A process, or a launcher with all its ranks. What it says can be waited for."""

    def __init__(self, words, environment=None):
        self.output = ""
        self.has_said_all = False
        self.said = threading.Condition()
        self.process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.said:
                self.output += line
                self.said.notify_all()
        with self.said:
            self.has_said_all = True
            self.said.notify_all()

    def says(self, text, limit_s, times=1):
        """Whether it has said the text so often before the limit, before its end and before it said that a case failed."""
        with self.said:
            self.said.wait_for(lambda: self.output.count(text) >= times or "FAILED" in self.output or self.has_said_all, limit_s)
            return self.output.count(text) >= times

    def ends(self, limit_s):
        """The exit status; None for what had to be killed."""
        try:
            status = self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            status = None
        self.kill()
        return status

    def kill(self):
        """All of its session: also ranks that a launcher has left behind on this machine."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.reader.join(10)


def library(name):
    found = hosts_mpi.libraries().get(name)
    if found is None:
        skip(f"{name} is not on this machine: tools/setup installs it")
    return found
