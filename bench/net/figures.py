"""Paper 1's figures 2 and 4 and paper 4's figures 2 to 5 for two hosts: what `farsum bench net --figures` measures, a JSON line a
point. The forced paths take turns within a round, with the MPI libraries alone beside them."""

import json
import os
import shlex
import subprocess
from collections import defaultdict
from statistics import median

import host_jobs

# How Farsum is told to go, as FARSUM_PATH.
PATHS = ("owner", "caller", "aggregated", "auto")
GUPS_WAYS = "gmp,accumulate,aggregated,batched,direct"
DEPTHS = (512, 1024)
RANKS_OF_A_HOST = (1, 2)
LOG2_WORDS = "18"


class Figures:
    """`values[figure, who, case][round]`: microseconds of net_rma's cases (of all updates of one), million updates of gups'."""

    def __init__(self, measurement):
        self.measurement = measurement
        self.options = measurement.options
        self.values = defaultdict(dict)
        self.failed = {}

    def keep(self, key, number, value):
        self.values[key][number] = value

    def calls(self, library, path, number):
        """Latencies and sums: paper 1's figures, paper 4's 2a, 3a and 4a. Without a path the library is alone."""
        arguments = ["--figures", "--slice-us", str(self.options.slice_us), *([] if path else ["--no-sleep"])]
        job = self.measurement.launched(library, bool(path), [], "net/net_rma", arguments, {"FARSUM_PATH": path} if path else {})
        records, reason = self.measurement.finished(job, "net_rma: done")
        who = path or f"{library} alone"
        if reason and path:
            self.measurement.report.failure(f"{library} with Farsum, FARSUM_PATH={path}: {reason}")
        elif reason:
            self.failed[who] = reason
        for record in records:
            kind, size = record["case"].rsplit("-", 1)
            updates = int(size) if kind == "accumulates" else 1
            self.keep(("calls", who, record["case"]), number, record["ns"] * updates / 1e3)

    def over_hosts(self, ranks, gups):
        hosts = self.measurement.hosts
        return hosts.words("exec", "a", *shlex.split(hosts.do("launcher", "openmpi", "--ranks-per-host", str(ranks))), *gups)

    def by_cards(self, ranks, gups):
        """On this host under two names; UCX's shared memory, where it needs nobody's help, stands for a card."""
        words = list(host_jobs.library("openmpi")["mpirun"])
        for name in "xy":
            words += [*([":"] if name == "y" else []), "-n", str(ranks), "-x", f"FARSUM_NODE_NAME={name}", "-x", "FARSUM_NET_TLS=posix", *gups]
        return words

    def updates(self, ranks, depth, number):
        """HPCC's RandomAccess natively: paper 4's 2b, 3b, 4b and 5."""
        small = ["--updates", "2048"] if self.options.tiny else ["--updates", "16384"]
        gups = [f"{self.options.build}/bin/gups", "--log2-words", LOG2_WORDS, "--batch", str(depth), "--json", "--quiet", *small]
        runs = [("", self.over_hosts(ranks, [*gups, "--way", GUPS_WAYS])), ("", self.by_cards(ranks, [*gups, "--way", "card"]))]
        if depth == DEPTHS[0]:
            # An update an epoch, as paper 4 calls accumulate; how many may wait then says nothing.
            runs.append((", lock and unlock", self.over_hosts(ranks, [*gups, "--way", "accumulate", "--epochs", "per-update"])))
        for suffix, words in runs:
            # Nothing that the launcher says may stand among the lines.
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ, text=True, timeout=60, check=False)
            if done.returncode != 0:
                self.measurement.report.failure(f"gups on {ranks} ranks a host, depth {depth}: exit status {done.returncode}")
                continue
            for result in json.loads(done.stdout)["results"]:
                # What has no depth is one curve.
                case = f"{result['way']}{suffix}" + ("" if result["way"] == "gmp" or suffix else f", {depth}")
                self.keep(("updates", case, 2 * ranks), number, result["gups"] * 1e3)

    def run_round(self, number):
        step = self.measurement.step
        library = self.options.fronts[0]
        small = self.options.tiny
        for path in PATHS[:2] if small else PATHS:
            step(f"{library} with Farsum, FARSUM_PATH={path}", self.calls, library, path, number)
        for alone in self.options.libraries:
            if f"{alone} alone" not in self.failed:
                step(f"{alone} alone", self.calls, alone, "", number)
        for ranks in RANKS_OF_A_HOST[:1] if small else RANKS_OF_A_HOST:
            for depth in DEPTHS[:1] if small else DEPTHS:
                step(f"gups, {ranks} a host, depth {depth}", self.updates, ranks, depth, number)

    def lines(self):
        for (figure, who, case), rounds in self.values.items():
            yield {"figure": figure, "who": who, "case": case, "median": median(rounds.values()), "low": min(rounds.values()),
                   "high": max(rounds.values()), "rounds": len(rounds)}
        for who, why in self.failed.items():
            yield {"figure": "missing", "who": who, "why": why}


def run(measurement):
    figures = Figures(measurement)
    measurement.look_around()
    for number in range(measurement.options.rounds):
        figures.run_round(number)
        if measurement.out_of_time:
            break
    load = measurement.report.load
    for line in figures.lines():
        print(json.dumps({**line, "load": load, "library": measurement.options.fronts[0]}), flush=True)
