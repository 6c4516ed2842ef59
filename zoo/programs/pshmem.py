"""pshmem: arrays that the processes of a node share, and locks and batches of tasks over all, on mpi4py; its own tests are run."""

import re

import pypi
from program import NoAnswer, Prepared, Program

RAN = re.compile(r"Ran (\d+) tests? in")
ENDED = re.compile(r"\bOK\b")  # what another rank prints may stand before or behind it in the line


class Tests(Program):
    name = "pshmem/tests"
    title = "pshmem, its own tests"
    origin = "PyPI: pshmem 1.3.5, mpi4py 4.1.2"
    windows = "a list of waiting processes for each lock, and the states of tasks: put and get under exclusive locks; shared arrays"
    libraries = ("mpich", "openmpi", "mpich5", "openmpi5")
    only = "an assertion of Intel MPI's ends it, alone, too"
    ranks = 2
    hosts = (1,)  # over hosts it fails under each of them alone, too: its locks look at what a get brings before any flush
    limit_s = 240

    def prepare(self, library, folder):
        return Prepared(pypi.words("-m", "mpi4py", "-c", "import pshmem.test; pshmem.test.run()"), folder, pypi.environment(library))

    def wrong(self, output):
        """Python's unittest says on each rank what came of it."""
        ran = [int(count) for count in RAN.findall(output)]
        if not ran:
            raise NoAnswer("no rank's tests came to their end")
        if len(ran) != self.ranks or min(ran) == 0 or len(ENDED.findall(output)) != len(ran) or "FAILED" in output:
            return "not every rank's tests ended with OK"
        return ""


PROGRAMS = [Tests()]
