"""The network between test hosts: a bridge in a namespace of its own, one veth pair per host, and what is done to each link.

A link is a pair of hosts. Frames are told apart by the last two bytes of their Ethernet addresses, in filters on the bridge's ports;
the hosts themselves see one plain interface. Kept by tools/hosts.
"""

import subprocess
import time

SUBNET = "10.77.0"
MISSING = ("Operation not permitted", "not supported", "Unknown device type", "Unknown qdisc", "Specified qdisc kind is unknown",
           "Failed to load TC")
# Filter priorities; the number of a host is added.
CUT, DELAY, RATE = 100, 200, 300
SOURCE_OFFSET, DESTINATION_OFFSET = 10, 4
PASS, DROP, MATCH = 0xFFFFFFFF, 2, 0xFFFFFFFF
QUEUE_MS = 5  # what a rate-limited port holds before it drops, as a small switch does
LEAST_QUEUE_BYTES = 512 * 1024
LEAST_BURST_BYTES = 16 * 1024
LONGEST_START_S = 10


class Failed(Exception):
    """A command for the network failed."""


class Unsupported(Exception):
    """This machine cannot have such a network: no permission, a program or a part of the kernel is missing."""


def address(number):
    return f"{SUBNET}.{number + 1}"


def hardware_address(number):
    return f"02:fa:50:00:00:{number + 1:02x}"


def port(host):
    return f"to-{host}"


def hosts_file(names):
    lines = ["127.0.0.1 localhost"] + [f"{address(number)} {name}" for number, name in enumerate(names)]
    return "\n".join(lines) + "\n"


def in_network(network, *command, text=None, may_fail=False):
    """Runs a command in a network namespace, given as a path, and returns what it printed."""
    whole = ["nsenter", f"--net={network}", *command]
    try:
        result = subprocess.run(whole, input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    except FileNotFoundError as missing:
        raise Unsupported(f"{missing.filename} is not installed (util-linux)") from None
    if result.returncode == 0 or may_fail:
        return result.stdout
    words = result.stdout.strip()
    kind = Unsupported if any(sign in words for sign in MISSING) or result.returncode == 127 else Failed
    raise kind(f"{' '.join(command)}: {words}")


def of_child(holder):
    """The network of a holder that this process has started and not waited for: nobody else can have its number."""
    return f"/proc/{holder}/ns/net"


def build(switch, holders):
    """Joins the hosts, (name, child) each, through the bridge of the switch; addresses are known beforehand, so no ARP."""
    bridge = of_child(switch)
    lines = ["link add bridge type bridge mcast_snooping 0", "link set bridge up",
             # Frames that are to be late go out at `delay`, to the relay that reads `relay`, and come back the same way.
             "link add delay type veth peer name relay", "link set relay up", "link set delay master bridge",
             "link set delay type bridge_slave learning off flood off mcast_flood off bcast_flood off", "link set delay up"]
    for number, (name, holder) in enumerate(holders):
        lines += [f"link add {port(name)} type veth peer name eth0 address {hardware_address(number)} netns {holder}",
                  f"link set {port(name)} master bridge", f"link set {port(name)} type bridge_slave learning off",
                  f"link set {port(name)} up"]
    in_network(bridge, "ip", "-batch", "-", text="\n".join(lines) + "\n")
    for number, (name, _) in enumerate(holders):
        in_network(bridge, "bridge", "fdb", "add", hardware_address(number), "dev", port(name), "master", "static")
        in_network(bridge, "tc", "qdisc", "add", "dev", port(name), "clsact")
    for number, (name, holder) in enumerate(holders):
        lines = ["link set lo up", "link set eth0 addrgenmode none", f"address add {address(number)}/24 dev eth0", "link set eth0 up"]
        lines += [f"neighbour replace {address(other)} lladdr {hardware_address(other)} dev eth0 nud permanent"
                  for other in range(len(holders)) if other != number]
        in_network(of_child(holder), "ip", "-batch", "-", text="\n".join(lines) + "\n")
    for name, holder in holders:
        wait_until_it_runs(holder, name)


def wait_until_it_runs(holder, name):
    """The kernel says so a moment after the link is there, later when it is busy; until then programs take the host for one without
    a network."""
    deadline = time.monotonic() + LONGEST_START_S
    while '"operstate":"UP"' not in in_network(of_child(holder), "ip", "-json", "link", "show", "dev", "eth0"):
        if time.monotonic() > deadline:
            raise Failed(f"eth0 of host {name} does not come up within {LONGEST_START_S} s")
        time.sleep(0.01)


def _frames(offset, number, then, otherwise):
    """Classic BPF: loads the last two bytes of an Ethernet address and compares them with those of a host."""
    return f"4,40 0 0 {offset},21 0 1 {number + 1},6 0 0 {then},6 0 0 {otherwise}"


def _remove_filter(network, filter_):
    """A filter that is not there may be removed; one that stays is a failure."""
    complaint = in_network(network, "tc", "filter", "del", *filter_, may_fail=True)
    where = filter_[:filter_.index("handle")]
    if complaint and in_network(network, "tc", "filter", "show", *where):
        raise Failed(f"tc filter del {' '.join(filter_)}: {complaint.strip()}")


def set_cut(switch, pair, cut):
    """pair: the two hosts as (number, name). Frames, broadcasts too, are dropped without a word on their way out of the bridge."""
    for (source, _), (_, target) in (pair, pair[::-1]):
        filter_ = ("dev", port(target), "egress", "pref", str(CUT + source), "handle", "1", "protocol", "all", "bpf")
        if cut:
            in_network(switch, "tc", "filter", "replace", *filter_, "da", "bytecode", _frames(SOURCE_OFFSET, source, DROP, PASS))
        else:
            _remove_filter(switch, filter_)


def set_relayed(switch, pair, relayed):
    """Sends the frames of a link through the relay, or no longer."""
    for (_, source), (target, _) in (pair, pair[::-1]):
        filter_ = ("dev", port(source), "ingress", "pref", str(DELAY + target), "handle", "1", "protocol", "all", "bpf")
        if relayed:
            in_network(switch, "tc", "filter", "replace", *filter_, "bytecode", _frames(DESTINATION_OFFSET, target, MATCH, 0),
                       "action", "mirred", "egress", "redirect", "dev", "delay")
        else:
            _remove_filter(switch, filter_)


def queue_bytes(rate_mbit):
    return max(LEAST_QUEUE_BYTES, int(QUEUE_MS * rate_mbit * 125))


def set_rate(switch, pair, rate_mbit):
    """A token bucket for each direction of a link, as a class of htb at the port of the target; 0 takes it away."""
    for (source, _), (_, target) in (pair, pair[::-1]):
        where, class_ = ("dev", port(target)), f"1:{source + 1:x}"
        filter_ = (*where, "parent", "1:", "pref", str(RATE + source), "handle", "1", "protocol", "all", "bpf")
        if rate_mbit:
            burst = str(max(LEAST_BURST_BYTES, int(rate_mbit * 125)))  # a millisecond
            if "htb" not in in_network(switch, "tc", "qdisc", "show", *where, "root"):
                in_network(switch, "tc", "qdisc", "add", *where, "root", "handle", "1:", "htb")
            in_network(switch, "tc", "class", "replace", *where, "parent", "1:", "classid", class_, "htb", "rate",
                       f"{max(1, round(rate_mbit * 1000))}kbit", "burst", burst, "cburst", burst, "quantum", "60000")
            in_network(switch, "tc", "qdisc", "replace", *where, "parent", class_, "bfifo", "limit", str(queue_bytes(rate_mbit)))
            in_network(switch, "tc", "filter", "replace", *filter_, "flowid", class_, "bytecode",
                       _frames(SOURCE_OFFSET, source, MATCH, 0))
        else:
            _remove_filter(switch, filter_)
            in_network(switch, "tc", "class", "del", *where, "classid", class_, may_fail=True)
            if not in_network(switch, "tc", "class", "show", *where):
                in_network(switch, "tc", "qdisc", "del", *where, "root", may_fail=True)
