"""What a program of the zoo is: a program that others wrote, how it is made ready, and how its own answer is judged."""

from dataclasses import dataclass, field
from pathlib import Path


class Missing(Exception):
    """What a program needs is not on this machine; the sentence says what, and how it is had."""


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
    libraries = ()       # under which MPI libraries it runs, as tools/mpi_libraries names them
    ranks = 2
    hosts = (1, 2)       # on how many hosts it can run; 1 is this machine itself
    limit_s = 120        # of one run
    short = ()           # those of the libraries under which `make test` runs it, too

    def prepare(self, library, folder):
        """Makes it ready in the empty folder for the library (an object of tools/mpi_libraries --list --json); returns Prepared,
        and raises Missing where a part of it is not on this machine."""
        raise NotImplementedError

    def wrong(self, output):
        """What is wrong with the program's own answer, read from all that its ranks and its launcher have printed; '' where it is right."""
        raise NotImplementedError

    def answer(self, _output):
        """What it came to, in a few words, where that may differ from run to run; it is shown beside the times."""
        return ""
