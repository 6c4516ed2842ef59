"""Conformance cases over several test hosts (tools/hosts): hosts of this process's own, and a launcher that spreads ranks over them."""

import os
import subprocess
import sys

import conformance_cases as cases
import hosts_mpi
import source_tree

TOOL = source_tree.ROOT / "tools" / "hosts"
CANNOT = 77
PLACEMENTS = ("round-robin", "blocks")
END_LIMIT_S = 5


class NoHosts(Exception):
    """Test hosts could not be made; why, and whether this machine lacks what they need or they failed."""

    def __init__(self, said, status):
        super().__init__(said)
        self.status = status
        self.lacking = status == CANNOT


class Hosts:
    """Test hosts under a name that nobody else has; they go with this process, however it ends."""

    def __init__(self, count, placement):
        self.count, self.placement = count, placement
        self.name = f"conformance-{os.getpid()}"
        made = subprocess.run(self.words("up", str(count), "--owner", str(os.getpid())), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if made.returncode:
            raise NoHosts(made.stdout.strip(), made.returncode)

    def words(self, *words):
        return [str(TOOL), "--name", self.name, *words]

    def names(self):
        return list("abcdefghijklmnopqrstuvwxyz"[:self.count])

    def down(self):
        subprocess.run(self.words("down"), check=False)


def hosts_or_exit(count, placement):
    """For tools that have nothing to do without hosts."""
    try:
        return Hosts(count, placement)
    except NoHosts as reason:
        print(f"{'skipped: ' if reason.lacking else ''}{reason}")
        sys.exit(reason.status)


class Launcher(cases.Launcher):
    """As on one host, but the launcher runs in the first host and puts ranks into all of them."""

    def __init__(self, library, mode, build, hosts):
        self.hosts, self.farsum = hosts, build / "bin" / "farsum"
        self.end_limit_s = END_LIMIT_S if mode != "farsum" and library["name"] in hosts_mpi.MAY_NOT_END else None
        super().__init__(library, mode, build)

    def put_farsum_in_front(self, build):
        super().put_farsum_in_front(build)
        if not self.missing and not self.farsum.exists():
            self.missing = f"{self.farsum} is not built"

    def words(self, case, variables):
        words = self.places(case.ranks)
        if self.mode == "farsum":
            # A window that the library keeps to itself would pass for nothing.
            variables = {"FARSUM_MPI_STRICT": "1", **variables}
            words = self.with_options([str(self.farsum), "mpi", *words], case)
        elif self.is_openmpi() and case.ranks > len(os.sched_getaffinity(0)):
            # Its daemons see one rank a host each, and not that the hosts share the processors. Farsum tells them.
            variables = {"OMPI_MCA_mpi_yield_when_idle": "1", **variables}
        for name, value in variables.items():
            words += hosts_mpi.handed_over(self.library["name"], name, value)
        return [*case.around, *self.hosts.words("exec", "a"), *words, *map(str, case.program)]

    def is_openmpi(self):
        return self.library["abi"] == "openmpi"

    def places(self, ranks):
        """The words that start so many ranks on the hosts, fewer than one each where there are more hosts than ranks."""
        share = -(-ranks // self.hosts.count)
        in_turn = self.hosts.placement == "round-robin"
        # Hydra begins again at the first host when each has as many as it is said to take; Open MPI has an option.
        words = hosts_mpi.launch_words(self.library, self.hosts.names(), 1 if in_turn and not self.is_openmpi() else share)
        if in_turn and self.is_openmpi():
            words[-2:-2] = ["--map-by", "node"]
        return [*words[:-1], str(ranks)]
