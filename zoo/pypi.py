"""The Python packages of the zoo, from PyPI: in one folder of the user's cache, and nothing installed."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import conformance_programs
from program import Missing

PACKAGES = ("mpi-sppy==0.14.0", "pshmem==1.3.5", "mpi-channels==0.1.4", "mpi4py==4.1.2", "highspy==1.16.0", "pyomo==6.10.1",
            "scipy==1.17.1", "numpy==2.4.6", "sortedcollections==2.1.0")
FROM_SOURCE = "mpi-channels"  # the only one without a wheel; it is Python alone
HOME = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "farsum" / "zoo" / f"python{sys.version_info.major}.{sys.version_info.minor}"


def is_here():
    stamp = HOME / ".installed"
    return stamp.exists() and stamp.read_text(encoding="utf-8") == "\n".join(PACKAGES)


def fetch():
    """Whole or absent; nothing is done where all of it is there."""
    if is_here():
        return
    HOME.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".python-", dir=HOME.parent))
    try:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action", "ignore",
                   "--only-binary", ":all:", "--no-binary", FROM_SOURCE, "--timeout", "20", "--retries", "2", "--target", str(fresh), *PACKAGES]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode:
            lines = done.stdout.strip().splitlines()
            raise Missing(f"{' '.join(PACKAGES)} could not be had from PyPI: {lines[-1] if lines else 'pip failed'}",
                          "tools/zoo fetch, when PyPI can be reached")
        (fresh / ".installed").write_text("\n".join(PACKAGES), encoding="utf-8")
        shutil.rmtree(HOME, ignore_errors=True)
        fresh.rename(HOME)
        print(f"zoo: fetched {', '.join(PACKAGES)}")
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def words(*program):
    """The words that run a program of Python with these packages; raises Missing where they are not here."""
    if not is_here():
        raise Missing("its Python packages are not here", "tools/zoo fetch")
    return [sys.executable, "-B", *program]


def environment(library):
    """What lets these packages find the library, whichever it is."""
    return {**conformance_programs.environment(library), "PYTHONPATH": str(HOME), "MPI4PY_MPIABI": library["abi"]}
