"""The processes that another has started, and what they are doing, by gdb."""

import os
import re
import subprocess
import time
from pathlib import Path

GDB_LIMIT_S = 60
BEGIN_FIELD = 19  # of /proc/PID/stat, counted behind the name
PARENT_FIELD = 1
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def fields_of(pid):
    """What /proc/PID/stat says behind the name, in which anything may stand; nothing where the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def age_s(pid):
    """For how long a process has been there; 0 where it is gone."""
    fields = fields_of(pid)
    if not fields:
        return 0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[BEGIN_FIELD]) / TICKS_PER_S


def children_of(pid):
    """The processes that a process has started and not yet taken leave of."""
    processes = [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]
    return [other for other in processes if (fields := fields_of(other)) and int(fields[PARENT_FIELD]) == pid]


def tree_of(pid):
    """A process and all that come from it, without those whose parents have ended."""
    return [pid, *(below for child in children_of(pid) for below in tree_of(child))]


def stacks_of(pids):
    """What each thread of the processes is doing, as text."""
    return "".join(f"---- process {pid}: {command_of(pid)}\n{gdb(pid)}" for pid in pids)


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return "(gone)"


def gdb(pid):
    command = ["gdb", "-nx", "-p", str(pid), "-batch", "-ex", "thread apply all bt"]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              errors="replace", check=False, timeout=GDB_LIMIT_S).stdout
    except (FileNotFoundError, subprocess.TimeoutExpired) as problem:
        return f"(no stacks: {problem})\n"


def outline_of(stacks):
    """One line for each thread of what stacks_of told: where in the sources it is, from the innermost call on."""
    lines = []
    for part in re.split(r"^(?=Thread )", stacks, flags=re.M)[1:]:
        places = re.findall(r"\bat \S*?([\w.]+:\d+)$", part, flags=re.M)
        lines.append(f"{part.split(chr(10), 1)[0].rstrip(':')}: {' < '.join(places) or '(no sources)'}")
    return lines
