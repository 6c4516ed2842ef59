"""Programs that come built: Intel's IMB-RMA, and mpi4py's tests of windows and one-sided operations, as conformance cases."""

import os
import re
import subprocess
import sys
from pathlib import Path

import conformance_cases as cases

IMB_OPTIONS = ("-npmin", "2", "-iter", "20", "-msglog", "12")
IMB_RANKS = (2, 4)
# Every file of mpi4py's tests that makes windows; each opens MPI as Python's import does, with RTLD_LOCAL.
MPI4PY_FILES = ("rma", "rma_nb", "win", "util_sync", "attributes", "errhandler", "exceptions", "handle", "mpimem", "subclass",
                "objmodel", "msgspec")
MPI4PY_RANKS = (1, 2, 4)
# In these every test runs, also those that mpi4py skips since it knows that the library fails them.
MPI4PY_WHOLE = ("rma", "rma_nb", "win", "util_sync")
# Both take longer than a test of one call: all message sizes, all types.
LIMIT_FACTOR = 4


def library_path(library):
    """The folder that holds the library under the name that built programs ask for: Debian's MPICH calls itself libmpich."""
    if library["name"] != "mpich":
        return Path(library["lib"])
    folder = cases.cache_home() / "mpich-as-libmpi"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "libmpi.so.12"
    if not link.exists():
        link.unlink(missing_ok=True)
        link.symlink_to(Path(library["lib"]) / "libmpich.so.12")
    return folder


def environment(library):
    old = os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": str(library_path(library)) + (f":{old}" if old else "")}


def judged_as_imb(status, output):
    return status == 0 and "All processes entering MPI_Finalize" in output


def judged_as_mpi4py(status, output):
    """Python's unittest on each rank; where a library cannot make windows mpi4py skips every test, and that is no success."""
    ran = [int(count) for count in re.findall(r"Ran (\d+) tests?", output)]
    skipped = [int(count) for count in re.findall(r"^OK \(skipped=(\d+)\)", output, re.MULTILINE)]
    return status == 0 and bool(ran) and min(ran) > 0 and sum(ran) > sum(skipped)


def imb_cases(library, libraries, limit_s):
    """Every benchmark of IMB-RMA, those too that it leaves out by default; it is built for the MPICH ABI."""
    if library["abi"] != "mpich" or "impi" not in libraries:
        return
    prefix = Path(libraries["impi"]["prefix"])
    names = subprocess.run([*libraries["impi"]["mpirun"], "-n", "1", str(prefix / "bin/IMB-RMA"), "-list"], text=True,
                           stdout=subprocess.PIPE, check=True).stdout
    # A benchmark's name is indented by four, what is said of it by more.
    for line in names.splitlines():
        if line.startswith("    ") and not line.startswith("     "):
            name = line.split()[0]
            for ranks in IMB_RANKS:
                yield cases.Case("IMB-RMA", name, ranks, [prefix / "bin/IMB-RMA", *IMB_OPTIONS, name], judged_as_imb,
                                 limit_s * LIMIT_FACTOR, environment(library))


def mpi4py_cases(library, libraries_home, limit_s):
    """mpi4py's own test files, run by its own runner."""
    home = libraries_home / "mpi4py"
    if library["abi"] not in ("mpich", "openmpi") or not (home / "source/test/main.py").exists():
        return
    for name in MPI4PY_FILES:
        for ranks in MPI4PY_RANKS:
            options = ["-q", "-i", rf"^test_{name}\.py$"] + (["--no-skip-mpi"] if name in MPI4PY_WHOLE else [])
            yield cases.Case("mpi4py", f"test_{name}", ranks, [sys.executable, "-B", home / "source/test/main.py", *options],
                             judged_as_mpi4py, limit_s * LIMIT_FACTOR,
                             {**environment(library), "PYTHONPATH": str(home / "site"), "MPI4PY_MPIABI": library["abi"]},
                             folder=home / "source/test")
