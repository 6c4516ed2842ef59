"""One set of test hosts: its folder (in /run, or where FARSUM_HOSTS_FOLDER says), the lock on it, its state, and what can be
done to it. Used by tools/hosts.

Whoever changes a set holds its lock; whoever enters a host shares it. A set that a killed `up` left half-made, and one whose owner has
ended, is nobody's: the next `up` or `down` of any name takes it away, if it looks into the same folder.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import hosts_namespaces as namespaces
import hosts_network as network

# What lies in the folder is ours, to be taken away: in a folder of the user's choice, a folder of our own.
NOTED_IN = Path(os.environ.get("FARSUM_HOSTS_FOLDER") or "/run").absolute()
STATES = NOTED_IN / "farsum-hosts"
SWITCH = "switch"
NAMES = "abcdefghijklmnopqrstuvwxyz"
NO_LINK = {"cut": False, "delay_us": 0, "rate_mbit": 0, "relay_limits": False}
RELAY_LIMIT_S = 10
TOOLS = Path(__file__).resolve().parent


class Refused(Exception):
    """What was asked cannot be done; the text says why, and what would be right."""


class NotStarted(Exception):
    """The host was entered, but the command is not there or cannot be run."""


def set_names():
    try:
        return sorted(folder.name for folder in STATES.iterdir())
    except FileNotFoundError:
        return []


class HostSet:
    """The hosts of one name."""

    def __init__(self, name):
        self.name = name
        self.folder = STATES / name
        self.state = None

    @contextlib.contextmanager
    def locked(self, how=fcntl.LOCK_EX, create=False):
        """Holds the folder's lock and knows the state; the folder that was locked is the one that is there."""
        while True:
            with contextlib.suppress(FileNotFoundError):  # the folder above it may go at this moment
                if create:
                    self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                if create:
                    continue
                others = f"; there are: {', '.join(set_names())}" if set_names() else ""
                raise Refused(f"there are no hosts of the name {self.name} (make them: tools/hosts up N{others})") from None
            try:
                fcntl.flock(lock, how)
                if self.is_folder(lock):
                    self.load()
                    try:
                        yield
                    finally:
                        self.remove_empty_folders()
                    return
            finally:
                os.close(lock)

    def is_folder(self, descriptor):
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(self.folder))
        except FileNotFoundError:
            return False

    def remove_empty_folders(self):
        """What is made for a lock goes with it, unless it has come to hold a state."""
        with contextlib.suppress(OSError):
            if self.folder.exists():
                self.folder.rmdir()
            STATES.rmdir()

    def load(self):
        try:
            self.state = json.loads((self.folder / "state.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            self.state = None

    def save(self):
        fresh = self.folder / "state.new"
        fresh.write_text(json.dumps(self.state, indent=1) + "\n", encoding="utf-8")
        fresh.rename(self.folder / "state.json")

    def whole(self):
        """Whether every part of what `up` made is still there."""
        if self.state is None or not self.state["hosts"]:
            return False
        parts = [(SWITCH, self.state["switch"])] + [(host["name"], host["pid"]) for host in self.state["hosts"]]
        return all(namespaces.is_holder(pid, namespaces.marker(self.name, part)) for part, pid in parts)

    def needs_whole(self):
        if not self.whole():
            raise Refused(f"the hosts of the name {self.name} are not up, or not whole (make them anew: tools/hosts up N)")

    def names(self):
        return [host["name"] for host in self.state["hosts"]]

    def number(self, host):
        if host not in self.names():
            raise Refused(f"there is no host '{host}' under the name {self.name} (there are {', '.join(self.names())})")
        return self.names().index(host)

    def links(self, pair):
        """The link between the two hosts, or all links, each as a key of the state and two (number, name)."""
        if pair:
            chosen = sorted(self.number(host) for host in pair)
            if chosen[0] == chosen[1]:
                raise Refused(f"a link is between two hosts, not '{pair[0]}' and itself (there are {', '.join(self.names())})")
            chosen = [tuple(chosen)]
        else:
            chosen = [(one, other) for other in range(len(self.names())) for one in range(other)]
        named = list(enumerate(self.names()))
        return [(f"{named[one][1]} {named[other][1]}", (named[one], named[other])) for one, other in chosen]

    def link(self, key):
        return self.state["links"].setdefault(key, dict(NO_LINK))

    # Making and taking away.

    def up(self, count, owner_pid):
        owner = {"pid": owner_pid, "started": namespaces.started(owner_pid)} if owner_pid else None
        if owner and owner["started"] is None:
            raise Refused(f"there is no process {owner_pid} (--owner wants one that is running, in a script $$)")
        if self.whole():
            if len(self.names()) != count:
                raise Refused(f"under the name {self.name} there are {len(self.names())} hosts already "
                              "(tools/hosts down, or another --name)")
            if owner and owner != self.state["owner"]:
                raise Refused(f"the hosts of the name {self.name} are there already and not process {owner_pid}'s "
                              "(tools/hosts down, or another --name)")
            return
        self.clear()
        self.state = {"identity": f"{self.name}-{os.urandom(8).hex()}", "owner": owner, "switch": 0, "relay": 0,
                      "links": {}, "hosts": []}
        self.save()
        if owner:
            namespaces.start(f"farsum-owner:{self.name}", TOOLS / "hosts", "--name", self.name, "end-with", owner["pid"],
                             owner["started"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.make(NAMES[:count])

    def make(self, names):
        hosts_file = self.folder / "hosts"
        hosts_file.write_text(network.hosts_file(names), encoding="utf-8")
        hosts_file.chmod(0o644)
        holders = []
        try:
            for part, file in [(SWITCH, "")] + [(name, hosts_file) for name in names]:
                holders.append(namespaces.start(namespaces.marker(self.name, part), TOOLS / "hosts_namespaces.py", self.name, part,
                                                file, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            for holder in holders:
                if holder.stdout.read() != "ready\n":
                    complaint = holder.stderr.read().strip().splitlines()
                    kind = network.Unsupported if holder.wait() == namespaces.CANNOT else network.Failed
                    raise kind(complaint[-1] if complaint else "a holder was killed")
            switch, *pids = [holder.pid for holder in holders]
            network.build(switch, list(zip(names, pids)))
            self.state["switch"] = switch
            self.state["hosts"] = [{"name": name, "address": network.address(number), "pid": pids[number]}
                                   for number, name in enumerate(names)]
            self.save()
        except BaseException:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            for holder in holders:
                holder.kill()
                holder.wait()
            self.down()
            raise

    def clear(self):
        """Ends what runs under this name, whatever of it is left."""
        if namespaces.inside(self.name):
            raise Refused("this is said in one of these hosts, which cannot end themselves (say it outside)")
        namespaces.end_all(self.name, self.state["identity"] if self.state else "")

    def down(self):
        self.clear()
        shutil.rmtree(self.folder)

    def abandoned(self):
        """Asked under the lock: then nobody is making these hosts."""
        if self.state is None or not self.state["hosts"]:
            return True
        owner = self.state["owner"]
        return owner is not None and namespaces.started(owner["pid"]) != owner["started"]

    def end_with(self, owner):
        """Waits for the owner's end, then takes away what it owned, half-made hosts too."""
        namespaces.wait_for_end(owner["pid"], owner["started"])
        with self.locked(create=True):
            if self.state is None or self.state["owner"] == owner:
                self.down()

    # Links.

    @contextlib.contextmanager
    def network(self):
        """The path of the switch's network. It is open meanwhile, so that it is this network whatever becomes of the holder."""
        descriptor = namespaces.open_network(self.state["switch"], namespaces.marker(self.name, SWITCH))
        if descriptor is None:
            self.needs_whole()
        try:
            yield f"/proc/{os.getpid()}/fd/{descriptor}"
        finally:
            os.close(descriptor)

    def cut(self, pair, cut):
        with self.network() as switch:
            for key, ends in self.links(pair):
                if cut != self.link(key)["cut"] or pair:
                    network.set_cut(switch, ends, cut)
                    self.link(key)["cut"] = cut
        self.save()

    def slow(self, pair, delay_us, rate_mbit, by_relay):
        """None leaves a link as it is. The relay knows its links before the first frame comes to it."""
        with self.network() as switch:
            links = self.links(pair)
            for key, ends in links:
                link = self.link(key)
                if delay_us is not None:
                    link["delay_us"] = delay_us
                if rate_mbit is not None:
                    in_kernel = not by_relay and self.limit_in_kernel(switch, ends, rate_mbit)
                    if not in_kernel and not link["relay_limits"]:
                        self.limit_in_kernel(switch, ends, 0)
                    link.update(rate_mbit=rate_mbit, relay_limits=rate_mbit > 0 and not in_kernel)
            self.save()
            if self.needs_relay():
                self.inform_relay(switch)
            for key, ends in links:
                network.set_relayed(switch, ends, self.is_relayed(self.link(key)))

    @staticmethod
    def limit_in_kernel(switch, ends, rate_mbit):
        try:
            network.set_rate(switch, ends, rate_mbit)
        except network.Unsupported:
            return False
        return True

    @staticmethod
    def is_relayed(link):
        return bool(link["delay_us"] or link["relay_limits"])

    def needs_relay(self):
        return any(self.is_relayed(link) for link in self.state["links"].values())

    def relay_name(self):
        return f"farsum-relay:{self.name}"

    def relay_runs(self):
        return namespaces.is_holder(self.state["relay"], self.relay_name())

    def inform_relay(self, switch):
        """When this returns, the relay goes by the saved state."""
        if self.relay_runs():
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as orders:
                orders.settimeout(RELAY_LIMIT_S)
                try:
                    orders.connect(str(self.folder / "relay"))
                    if orders.recv(16) == b"read":
                        return
                except TimeoutError:
                    raise network.Failed(f"the relay does not answer (kill process {self.state['relay']} and say it again)") from None
                except ConnectionError:
                    pass  # it was killed just now
        descriptor = os.open(switch, os.O_RDONLY)
        relay = namespaces.start(self.relay_name(), TOOLS / "hosts_relay.py", self.folder, descriptor, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, pass_fds=[descriptor])
        os.close(descriptor)
        if relay.stdout.readline() != "ready\n":
            relay.kill()
            raise network.Unsupported(f"the relay does not start: {relay.stderr.read().strip()}")
        # It stands for a wire: it comes before all that computes on these cores, and sleeps when nothing is on its way.
        with contextlib.suppress(OSError):
            os.sched_setscheduler(relay.pid, os.SCHED_FIFO, os.sched_param(1))
        self.state["relay"] = relay.pid
        self.save()

    # Looking and entering.

    def description(self):
        """What `status --json` prints."""
        found = {"name": self.name, "whole": self.whole(), "owner": None, "relay": "none", "hosts": [], "strays": [], "links": []}
        if self.state is None:
            return found
        running = namespaces.processes(self.name, self.state["identity"])
        for host in self.state["hosts"]:
            up = namespaces.is_holder(host["pid"], namespaces.marker(self.name, host["name"]))
            found["hosts"].append({"name": host["name"], "address": host["address"], "up": up,
                                   "processes": running.get(host["name"], [])})
        found["strays"] = running.get("?", [])
        found["owner"] = self.state["owner"] and self.state["owner"]["pid"]
        found["relay"] = "none" if not self.needs_relay() else "running" if self.relay_runs() else "lost"
        for key, _ in self.links(()):
            found["links"].append({"between": key.split(), **self.state["links"].get(key, NO_LINK)})
        return found

    def execute(self, host, command, environment):
        """Becomes the command in the host. The lock keeps `down` from overlooking a process that is just coming in."""
        with self.locked(fcntl.LOCK_SH):
            self.needs_whole()
            pid = self.state["hosts"][self.number(host)]["pid"]
            if not namespaces.enter(pid, namespaces.marker(self.name, host)):
                raise Refused(f"host {host} is lost (make all anew: tools/hosts up N)")
            # Python ignores these; a command expects to die of them.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            environment = {**environment, "FARSUM_HOSTS": self.name, "FARSUM_HOSTS_FOLDER": str(NOTED_IN),
                           namespaces.IDENTITY: self.state["identity"], "HOSTNAME": host}
            try:
                os.execvpe(command[0], command, environment)
            except OSError as problem:
                raise NotStarted(f"{command[0]}: {problem.strerror}") from problem


def take_away_abandoned(but):
    """Sets that are in use are locked, and passed over."""
    for name in set_names():
        hosts = HostSet(name)
        if name != but:
            with contextlib.suppress(Refused, OSError), hosts.locked(fcntl.LOCK_EX | fcntl.LOCK_NB):
                if hosts.abandoned():
                    hosts.down()
