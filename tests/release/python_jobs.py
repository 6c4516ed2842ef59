"""What the scripts of this folder share: how tests/release/windows.py is run by mpi4py under one of PyPI's libraries."""

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "hosts"))

from host_jobs import Hosts, Job, hosts_mpi, library, skip  # noqa: E402

PROGRAM = ROOT / "tests" / "release" / "windows.py"
LIMIT_S = 120


def python_words():
    """The interpreter of the system, for which mpi4py's wheel was fetched."""
    return ["/usr/bin/python3", "-B", str(PROGRAM)]


def environment(mpi, **more):
    """That of the launcher and of all ranks."""
    site = Path(mpi["prefix"]).parent / "mpi4py" / "site"
    if mpi["prefix"] == "/usr" or not site.exists():
        skip("mpi4py is not on this machine: tools/setup installs it")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FARSUM_")}
    # A window that the library kept to itself would pass for Farsum's.
    return {**kept, "LD_LIBRARY_PATH": mpi["lib"], "PYTHONPATH": str(site), "FARSUM_MPI_STRICT": "1", "MPI4PY_MPIABI": mpi["abi"], **more}


def judged(words, env, expected):
    """Whether the job ends well and what it says matches each pattern as often as is said; it is printed."""
    job = Job([str(word) for word in words], env)
    status = job.ends(LIMIT_S)
    print(job.output, end="", flush=True)
    problems = [] if status == 0 else [f"it ended with {status}" if status is not None else f"it did not end within {LIMIT_S} s"]
    for pattern, times in expected.items():
        count = len(re.findall(pattern, job.output, re.MULTILINE))
        if count != times:
            problems.append(f"'{pattern}' is there {count} times, not {times}")
    for problem in problems:
        print(f"FAILED: {problem}", flush=True)
    return not problems


__all__ = ["ROOT", "Hosts", "hosts_mpi", "environment", "judged", "library", "python_words", "skip"]
