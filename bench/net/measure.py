"""Runs the jobs of `farsum bench net` in two hosts, a slice of each in turn, and keeps what they said. Judges nothing."""

import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections import defaultdict

from host_jobs import Job, hosts_mpi

RAW_PORT, UCX_PORT = "7801", "7802"
SHORTEST_JOB_S = 2
# A rank of Debian's MPICH may wait for ever in MPI_Finalize when it talks TCP (docs/notes/hosts.md), when all has been said.
END_S = 3
UCX_TESTS = {
    "ucp_am_lat": ["-s", "8", "-n", "300"],
    "ucp_fadd": ["-s", "8", "-n", "300"],
    "ucp_get": ["-s", "8", "-n", "30"],
    "ucp_am_bw": ["-s", "1048576", "-n", "60"],
    "ucp_put_bw": ["-s", "1048576", "-n", "60"],
}
UCX_ROUNDS = 3
NOT_IN_FRONT = "the one-sided layer stays the MPI library's own"  # what Farsum says then; figures would be the library's


def reason_of(output):
    """The most telling line, without the process that says it."""
    lines = [line for line in output.splitlines() if not line.startswith("{")]
    for word in ("FAILED", "Assertion", "MPI_ERR_", "farsum", "error", "bort"):
        found = [line for line in lines if word in line]
        if found:
            return re.sub(r"^\[[^]]*\] *(\*{3} *)?", "", found[0].strip())[:160]
    return "it said nothing"


class Measurement:
    """`values[who][what][round]`, where who is ("farsum", library), ("alone", library) or ("raw", library): the raw slice of
    just before Farsum's with that library."""

    def __init__(self, options, hosts, report):
        self.options, self.hosts, self.report = options, hosts, report
        self.ends_at = time.monotonic() + options.limit_s
        self.values = defaultdict(lambda: defaultdict(dict))
        self.missing = {}  # why, by name
        self.useless = set()  # libraries that cannot do the first of the cases
        self.here = hosts_mpi.libraries()
        self.out_of_time = False

    def left_s(self):
        return self.ends_at - time.monotonic()

    # Jobs

    def start(self, host, words, environment=None):
        return Job(self.hosts.words("exec", host, *words), {**os.environ, **(environment or {})})

    def clear(self):
        """Ends what a killed launcher has left in the hosts: it would compute beside all that follows."""
        found = json.loads(self.hosts.command("status", "--json").stdout)
        for host in found["hosts"]:
            for process in host["processes"]:
                try:
                    os.kill(process["pid"] if isinstance(process, dict) else int(process), signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def finished(self, job, last_words):
        """The JSON lines of a job; why there are not more, unless it said its last words."""
        has_said = job.says(last_words, min(60, self.left_s()))
        is_late = not has_said and not job.has_said_all and "FAILED" not in job.output
        if job.ends(END_S if has_said else 0.2) != 0:
            self.clear()
        records = [json.loads(line) for line in job.output.splitlines() if line.startswith("{") and line.endswith("}")]
        if NOT_IN_FRONT in job.output:
            return [], NOT_IN_FRONT
        if has_said:
            return records, ""
        if is_late and self.left_s() <= 0:
            self.out_of_time = True
            return records, ""
        return records, "no end in time" if is_late else reason_of(job.output)

    # MPI

    def launched(self, library, with_farsum, extra, program, arguments, settings=None):
        words = shlex.split(self.hosts.do("launcher", library))
        if with_farsum:
            words = [f"{self.options.build}/bin/farsum", "mpi", *words, *hosts_mpi.handed_over(library, "FARSUM_MPI_STRICT", "1")]
        found = self.here[library]
        environment = {**found.get("environment", {}), **(settings or {})}
        if found["prefix"] != "/usr":
            environment["LD_LIBRARY_PATH"] = f"{found['lib']}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
        return self.start("a", [*words, *extra, f"{self.options.build}/bin/{program}-{found['abi']}" if program.startswith("lab")
                                else f"{self.options.build}/bin/{program}_{found['abi']}", *arguments], environment)

    def rma(self, who, library, extra=()):
        arguments = ["--slice-us", str(self.options.slice_us), "--compute-us", str(self.options.compute_us)]
        if who == "alone":
            arguments.append("--no-sleep")  # it would wait for the end of the sleep
        if self.options.cases:
            arguments += ["--cases", self.options.cases]
        job = self.launched(library, who == "farsum", list(extra), "net/net_rma", arguments)
        return self.finished(job, "net_rma: done")

    def keep(self, who, library, number, records):
        for record in records:
            self.values[who, library][record["case"], record["owner"]][number] = record["ns"]

    def with_farsum(self, library, number):
        records, reason = self.rma("farsum", library)
        if reason:
            self.report.failure(f"{library} with Farsum: {reason}")
        self.keep("farsum", library, number, records)

    def alone(self, library, number):
        """Debian's Open MPI cannot make a window over two hosts with what it takes by itself; with an older part it can."""
        name = library
        if library == "openmpi" and library in self.useless:
            name = "openmpi, osc pt2pt"
        if name in self.useless:
            return
        records, reason = self.rma("alone", library, () if name == library else ("--mca", "osc", "pt2pt"))
        if reason:
            self.missing[name] = reason
            self.report.progress(f"{name} alone: {reason}")
        self.keep("alone", name, number, records)
        if reason and not records:
            self.useless.add(name)
            if name == "openmpi":
                self.alone(library, number)

    def counter(self, library, number):
        arguments = ["--cases", "1,2", "--implementation", "fetch-op", "--memory", "create", "--tasks", "irregular",
                     "--tasks-per-rank", "4" if self.options.tiny else "10", "--repeats", "1", "--json"]
        job = self.launched(library, True, [], "lab-counter", arguments)
        records, reason = self.finished(job, '"case":2')
        if reason:
            self.report.failure(f"{library} with Farsum, the counter: {reason}")
        for record in records:
            # With so few tasks one rank may have drawn all of them.
            if record["get_us"]["median"] > 0:
                self.values["farsum", library]["counter", record["case"]][number] = record["get_us"]["median"] * 1e3

    # TCP and UCX

    def raw(self, library, number):
        responder = Job(["/bin/sh", "-c", 'sleep 100 | exec "$@"', "sh",
                         *self.hosts.words("exec", "b", f"{self.options.build}/bin/net/raw_tcp", "serve", RAW_PORT)])
        try:
            if not responder.says("raw_tcp: listens", 10):
                self.report.failure(f"raw_tcp: {reason_of(responder.output)}")
                return
            words = [f"{self.options.build}/bin/net/raw_tcp", "call", "b", RAW_PORT, "--slice-us", str(self.options.slice_us)]
            records, reason = self.finished(self.start("a", words), "raw_tcp: done")
            if reason:
                self.report.failure(f"raw_tcp: {reason}")
        finally:
            responder.kill()
        kept = self.values["raw", library]
        for record in records:
            if record["case"].startswith("round-trip-8"):
                kept[record["case"]][number] = record["ns"]
            elif record["case"] == "lock-xor":
                kept["lock-xor"][number] = record["M_per_s"]
            else:
                kept["stream", record["write_bytes"], record["read_bytes"], record["buffer_bytes"]][number] = record["MB_per_s"]

    def ucx(self, number):
        environment = {"UCX_TLS": "tcp,self"}
        for test, arguments in UCX_TESTS.items():
            if self.left_s() < SHORTEST_JOB_S:
                return
            server = self.start("b", ["ucx_perftest", "-p", UCX_PORT, "-c", "1"], environment)
            server.says("Waiting for connection", 1)
            client = self.start("a", ["ucx_perftest", "b", "-p", UCX_PORT, "-c", "0", "-w", "20", "-f", "-v", "-t", test, *arguments],
                                environment)
            client.says("\0", min(8, self.left_s()))  # to its end: it never says that
            ended = client.ends(0.2)
            server.kill()
            line = client.output.strip().splitlines()[-1] if client.output.strip() else ""
            fields = line.split(",")
            if ended != 0 or len(fields) != 8:
                self.missing.setdefault(f"ucx_perftest {test}", reason_of(client.output) if ended is not None else "no end in 8 s")
                self.clear()
                continue
            self.values["ucx", ""][test][number] = float(fields[4 if test.endswith("_bw") else 1])

    # The whole

    def step(self, name, act, *arguments):
        if self.left_s() < SHORTEST_JOB_S:
            self.out_of_time = True
            return
        self.report.progress(f"round {arguments[-1] + 1} of {self.options.rounds}: {name}")
        act(*arguments)

    def run_round(self, number):
        wants_counter = not self.options.cases or "counter" in self.options.cases.split(",")
        for library in self.options.fronts:
            self.step("raw TCP", self.raw, library, number)
            self.step(f"{library} with Farsum", self.with_farsum, library, number)
            if wants_counter:
                self.step(f"the counter, {library} with Farsum", self.counter, library, number)
        for library in self.options.libraries:
            self.step(f"{library} alone", self.alone, library, number)
        if number < UCX_ROUNDS and "ucx_perftest" not in self.missing and not self.options.tiny:
            self.step("ucx_perftest", self.ucx, number)

    def look_around(self):
        for name in [*self.options.fronts, *self.options.libraries]:
            if name not in self.here:
                self.missing[name] = "not on this machine: tools/setup installs it"
        self.options.fronts = [name for name in self.options.fronts if name in self.here]
        self.options.libraries = [name for name in self.options.libraries if name in self.here]
        if subprocess.run(["which", "ucx_perftest"], stdout=subprocess.DEVNULL, check=False).returncode:
            self.missing["ucx_perftest"] = "not on this machine: tools/setup installs it"

    def run(self):
        self.look_around()
        for number in range(self.options.rounds):
            self.run_round(number)
            if self.out_of_time:
                # Ratios are of rounds that have both sides, so half a round is of use too.
                self.report.progress(f"out of time in round {number + 1} of {self.options.rounds}")
                return
