"""What a program of the zoo is: a program that others wrote, how it is made ready, and how its own answer is judged."""

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

COMPILATION_LIMIT_S = 120


class Missing(Exception):
    """What a program needs is not installed on this machine: what that is, and the command that installs it."""

    def __init__(self, what, remedy):
        super().__init__(f"{what} ({remedy})")
        self.what, self.remedy = what, remedy


class NotBuilt(Exception):
    """All that a program needs is installed, and yet it could not be made ready; what was said meanwhile is kept."""

    def __init__(self, what, said=""):
        super().__init__(what)
        self.said = said


class NoAnswer(Exception):
    """A program's output has no answer to judge; the sentence says what is not there."""


def compile_program(words):
    """Runs the words of a compiler, which tools/setup installs."""
    if not shutil.which(words[0]):
        raise Missing(f"{words[0]} is not here", "tools/setup")
    try:
        built = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=COMPILATION_LIMIT_S)
    except subprocess.TimeoutExpired as late:
        raise NotBuilt(f"its compilation did not end within {COMPILATION_LIMIT_S} s") from late
    if built.returncode:
        raise NotBuilt("it does not compile", built.stdout)


@dataclass(frozen=True)
class Prepared:
    """A program made ready for one library: the words behind the launcher's, where it starts, what is added to the environment, and
    what is added besides without Farsum, where those who packed the program say that the library needs it."""
    words: list
    folder: Path
    environment: dict = field(default_factory=dict)
    alone: dict = field(default_factory=dict)


class Program:
    """One program of the zoo. Each is an object of a class of its own kind, in the list PROGRAMS of a file of zoo/programs."""
    name = ""            # as on the command line, such as "coarrays/atomics"
    title = ""           # in the table of results
    origin = ""          # the package that it comes from, or whose library it uses
    windows = ""         # what it makes windows for, in a few words
    libraries = ()       # for which MPI libraries it is offered, as tools/mpi_libraries names them
    only = ""            # why it is offered for no other, where these are not all
    ranks = 2
    hosts = (1, 2)       # on how many hosts it can run; 1 is this machine itself
    limit_s = 120        # of one run
    short = ()           # those of the libraries under which `make test` runs it, too

    def prepare(self, library, folder):
        """Makes it ready in the empty folder for the library (an object of tools/mpi_libraries --list --json); returns Prepared.
        Raises Missing where a part of it is not on this machine, and NotBuilt where it fails with all parts there."""
        raise NotImplementedError

    def wrong(self, output):
        """What is wrong with the program's own answer, read from all that its ranks and its launcher have printed; '' where it is right.
        Raises NoAnswer where they printed none."""
        raise NotImplementedError

    def answer(self, _output):
        """What it came to, in a few words, where that may differ from run to run; it is shown beside the times."""
        return ""
