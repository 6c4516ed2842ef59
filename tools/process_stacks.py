"""The processes that another has started, and what they are doing, by /proc and gdb."""

import os
import re
import subprocess
import time
from pathlib import Path

GDB_LIMIT_S = 12
GDB_CHATTER = ("[New LWP", "[Thread debugging", "Using host", "[Inferior")
BEGIN_FIELD = 19  # of /proc/PID/stat, counted behind the name
PARENT_FIELD = 1
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def fields_of(pid):
    """What /proc/PID/stat says behind the name, in which anything may stand; nothing where the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def begin_s(pid):
    """When a process began, in seconds since the machine did, which tells those of one number apart; nothing where it is gone."""
    fields = fields_of(pid)
    return int(fields[BEGIN_FIELD]) / TICKS_PER_S if fields else None


def age_s(begin):
    """For how long what began then has been there."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - begin


def children_of(pid):
    """The processes that a process has started and not yet taken leave of."""
    processes = [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]
    return [other for other in processes if (fields := fields_of(other)) and int(fields[PARENT_FIELD]) == pid]


def tree_of(pid):
    """A process and all that come from it, without those whose parents have ended."""
    return [pid, *(below for child in children_of(pid) for below in tree_of(child))]


def stacks_of(pids):
    """What each thread of the processes is doing, as text."""
    return "".join(map(stacks_of_one, pids))


def stacks_of_one(pid):
    return f"---- process {pid}: {command_of(pid)}\n{threads_of(pid)}{gdb(pid)}"


def threads_of(pid):
    """What /proc says of each thread, which stops nothing, and is there when gdb cannot attach: where another traces already."""
    lines = []
    for task in sorted(Path(f"/proc/{pid}/task").glob("*")):
        said = {}
        for name in ("comm", "syscall", "wchan", "status"):
            try:
                said[name] = (task / name).read_text(encoding="utf-8", errors="replace").strip()
            except OSError as problem:
                said[name] = f"({problem.strerror})"
        facts = [line.replace("\t", " ") for line in said["status"].splitlines() if line.startswith(("State:", "TracerPid:"))]
        lines.append(f"{task.name} {said['comm']}: {', '.join(facts)}; in {said['wchan']}; call {said['syscall'].split(' ')[0]}\n")
    return "".join(lines)


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return "(gone)"


def gdb(pid):
    command = ["gdb", "-nx", "-p", str(pid), "-batch", "-ex", "thread apply all bt"]
    try:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             errors="replace", check=False, timeout=GDB_LIMIT_S)
        told = [line for line in ran.stdout.splitlines() if not line.startswith(GDB_CHATTER)]
        told += [line for line in ran.stderr.splitlines() if "ptrace" in line]
        return "".join(f"{line}\n" for line in told)
    except (OSError, subprocess.SubprocessError) as problem:
        return f"(no stacks: {problem})\n"


def outline_of(stacks):
    """One line for each process and thread of what stacks_of told: where in the sources it is, from the innermost call on."""
    lines = []
    for part in re.split(r"^(?=Thread |---- )", stacks, flags=re.M)[1:]:
        if part.startswith("----"):
            lines += part.strip().splitlines()
            continue
        places = re.findall(r"\bat \S*?([\w.]+:\d+)$", part, flags=re.M)
        lines.append(f"{part.split(chr(10), 1)[0].rstrip(':')}: {' < '.join(places) or '(no sources)'}")
    return lines
