"""The kernel side of one test host: makes its namespaces, enters them, finds and ends whatever runs in them.

Each host is held by one sleeping process, so no mount and no file pins a namespace: when its processes are gone it is gone. Kept
by tools/hosts; nothing here knows of networks or links.
"""

import contextlib
import ctypes
import errno
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

NAMESPACES = {"mnt": 0x00020000, "uts": 0x04000000, "ipc": 0x08000000, "net": 0x40000000}
MS_BIND, MS_REC, MS_SLAVE = 0x1000, 0x4000, 0x80000
MNT_DETACH = 2
KILL_LIMIT_MS = 10_000
HOLDER, HELPERS = "farsum-hosts", ("farsum-relay", "farsum-owner")  # what processes are called in /proc/PID/cmdline
CANNOT = 77  # the status of a holder on a machine, or for a user, that cannot have such namespaces
UNSUPPORTED = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EINVAL, errno.ENOSPC, errno.ENODEV, errno.EUSERS)
IDENTITY = "FARSUM_HOST_ID"  # in the environment of all that runs in a host: how it is found when its host's holder was killed

libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source, target, kind, flags, options=None):
    def text(word):
        return None if word is None else str(word).encode()
    _check(libc.mount(text(source), text(target), text(kind), ctypes.c_ulong(flags), text(options)), f"mount {target}")


def marker(instance, host):
    """The name of the holder of a host, `switch` being the bridge's."""
    return f"{HOLDER}:{instance}:{host}"


def start(name, *words, **options):
    """Starts Python under a name of ours. It has the name from its first instant, so that no sweep can miss it."""
    return subprocess.Popen([name, "-BS", *map(str, words)], executable=sys.executable, cwd="/", stdin=subprocess.DEVNULL,
                            start_new_session=True, text=True, **options)


def hold(instance, host, hosts_file):
    """Makes the namespaces of a new host, says `ready` on stdout when they are complete, then sleeps until it is killed."""
    _check(libc.unshare(ctypes.c_int(sum(NAMESPACES.values()))), "unshare")
    # Mounts that the machine makes later are seen here; none made here is seen there.
    _mount(None, "/", None, MS_REC | MS_SLAVE)
    _mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777")
    if hosts_file:
        _check(libc.sethostname(host.encode(), ctypes.c_size_t(len(host))), "sethostname")
        _mount(hosts_file, "/etc/hosts", None, MS_BIND)
        _show_own_network_in_sys()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    nothing = os.open("/dev/null", os.O_RDWR)
    ready = os.dup(1)
    os.set_inheritable(ready, False)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    # The end of the pipe, at the exec, tells that the holder has its name.
    os.write(ready, b"ready\n")
    os.execvp("sleep", [marker(instance, host), "infinity"])


def _show_own_network_in_sys():
    """/sys shows the network of the process that mounted it. Only the folders of interfaces are replaced: /sys/fs/cgroup stays."""
    fresh = Path("/dev/shm/sys")
    fresh.mkdir()
    _mount("sysfs", fresh, "sysfs", 0)
    for folder in ("class/net", "devices/virtual/net"):
        _mount(fresh / folder, Path("/sys") / folder, None, MS_BIND)
    _check(libc.umount2(str(fresh).encode(), MNT_DETACH), "umount")
    fresh.rmdir()


def enter(pid, name):
    """Moves this process into the namespaces of the holder `pid`, in the same folder; False when that holder is gone."""
    try:
        folder = os.getcwd()
    except FileNotFoundError:
        raise OSError(errno.ENOTDIR, "the current folder was removed (cd to another)") from None
    try:
        holder = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    if _command(pid) != name:
        os.close(holder)
        return False
    _check(libc.setns(holder, ctypes.c_int(sum(NAMESPACES.values()))), "setns")
    os.close(holder)
    try:
        os.chdir(folder)
    except FileNotFoundError:
        raise OSError(errno.ENOTDIR, f"the folder {folder} is not in the host, which has its own /dev/shm") from None
    return True


def is_holder(pid, name):
    return _command(pid) == name


def open_network(pid, name):
    """A descriptor of the holder's network, None when the holder is gone. A name in /proc may come to mean another process."""
    try:
        network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    except FileNotFoundError:
        return None
    if _command(pid) != name:
        os.close(network)
        return None
    return network


def join_network(descriptor):
    _check(libc.setns(ctypes.c_int(descriptor), ctypes.c_int(NAMESPACES["net"])), "setns")


def started(pid):
    """When a process was started, in ticks since the boot: with its number it names a process for good. None when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def wait_for_end(pid, start_ticks):
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    if started(pid) == start_ticks:
        ended = select.poll()
        ended.register(process, select.POLLIN)
        ended.poll()
    os.close(process)


def inside(instance):
    """Whether this very process runs in one of the instance's namespaces."""
    held = _held_namespaces(_holders(instance))
    return bool(held & _namespaces("self"))


def processes(instance, identity):
    """The processes that run in the instance's hosts, by host; those whose holder was killed stand under '?'."""
    found = {}
    owner_of = {}
    holders = _holders(instance)
    for pid, host in holders.items():
        owner_of.update((namespace, host) for namespace in _own_namespaces(pid))
    for pid in _all_pids():
        if pid in holders or pid == os.getpid():
            continue
        hosts = [owner_of[namespace] for namespace in sorted(_namespaces(pid)) if namespace in owner_of]
        if hosts:
            found.setdefault(hosts[0], []).append(pid)
        elif identity and _has_identity(pid, identity):
            found.setdefault("?", []).append(pid)
    return found


def end_all(instance, identity):
    """Ends everything in the instance's namespaces, then the holders, and with them the namespaces, then the helpers."""
    held = _held_namespaces(_holders(instance))
    while members := [pid for pids in processes(instance, identity).values() for pid in pids]:
        _end(members, lambda pid: bool(held & _namespaces(pid)) or bool(identity) and _has_identity(pid, identity))
    while holders := _holders(instance):
        _end(list(holders), lambda pid: pid in _holders(instance))
    names = [f"{kind}:{instance}" for kind in HELPERS]
    while helpers := [pid for pid in _all_pids() if pid != os.getpid() and _command(pid) in names]:
        _end(helpers, lambda pid: _command(pid) in names)


def _end(pids, still_ours):
    """A process is held by a descriptor before it is looked at again, so that a number that came to another is never killed."""
    held = {}
    try:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                held[pid] = os.pidfd_open(pid)
        _kill_and_wait({pid: process for pid, process in held.items() if still_ours(pid)})
    finally:
        for process in held.values():
            os.close(process)


def _kill_and_wait(held):
    for process in held.values():
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGKILL)
    for pid, process in held.items():
        ended = select.poll()
        ended.register(process, select.POLLIN)
        if not ended.poll(KILL_LIMIT_MS):
            raise OSError(errno.EBUSY, f"process {pid} does not end although it was killed")


def _all_pids():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
    except OSError:
        return ""


def _holders(instance):
    prefix = marker(instance, "")
    named = {pid: _command(pid) for pid in _all_pids()}
    return {pid: name.removeprefix(prefix) for pid, name in named.items() if name.startswith(prefix)}


def _namespaces(pid):
    """The namespaces of a process; empty when it is gone, or a zombie."""
    found = set()
    with contextlib.suppress(OSError):
        for kind in NAMESPACES:
            found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
    return found


def _own_namespaces(holder):
    return _namespaces(holder) - _namespaces(1)


def _held_namespaces(holders):
    return set().union(*(_own_namespaces(pid) for pid in holders)) if holders else set()


def _has_identity(pid, identity):
    try:
        return f"{IDENTITY}={identity}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


if __name__ == "__main__":
    try:
        hold(*sys.argv[1:4])
    except OSError as problem:
        print(problem.strerror, file=sys.stderr)
        sys.exit(CANNOT if problem.errno in UNSUPPORTED else 1)
