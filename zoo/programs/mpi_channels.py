"""mpi-channels: queues of messages in MPI windows, on mpi4py; the program is zoo/channels.py."""

import source_tree

import pypi
from program import NoAnswer, Prepared, Program


class Channels(Program):
    name = "mpi-channels/tasks"
    title = "mpi-channels, a queue of tasks"
    origin = "PyPI: mpi-channels 0.1.4, mpi4py 4.1.2"
    windows = "a queue and its state on rank 0: put and get under locks"
    libraries = ("mpich", "openmpi", "mpich5", "openmpi5", "impi")
    ranks = 3

    def prepare(self, library, folder):
        script = source_tree.ROOT / "zoo" / "channels.py"
        return Prepared(pypi.words("-m", "mpi4py", str(script), "300"), folder, pypi.environment(library))

    def wrong(self, output):
        lines = [line for line in output.splitlines() if line.startswith(("right", "wrong"))]
        if not lines:
            raise NoAnswer("it printed no result")
        return "" if lines == ["right"] else next((line for line in lines if line != "right"), f"it printed {len(lines)} results")


PROGRAMS = [Channels()]
