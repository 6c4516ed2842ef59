"""What a wheel of Farsum has to hold, and what it may ask of a machine."""

import re
import stat
import subprocess
import tempfile
import zipfile
from pathlib import Path

LARGEST_BYTES = 8 * 1000 * 1000
ABIS = ("mpich", "openmpi", "abi")
# Of glibc, and what that needs itself to end a thread that is cancelled; all else that a file needs has to be in the wheel.
GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "libgcc_s.so.1"}
# Handles of Open MPI are addresses in this library, which the program brings.
OF_THE_PROGRAM = {"libfarsum_front_openmpi.so": "libmpi.so.40"}


class Refused(Exception):
    """What is wrong with a wheel."""


def readelf(option, path):
    return subprocess.run(["readelf", "--wide", option, path], text=True, capture_output=True, check=True).stdout


def wanted_files(interface):
    """Below the environment's folder; `interface` is the version in the library's name."""
    libraries = [f"libfarsum.so.{interface}", "libfarsum.so"]
    libraries += [f"libfarsum_{part}_{abi}.so" for part in ("mpi", "front") for abi in ABIS]
    libraries += ["cmake/Farsum/FarsumConfig.cmake", "pkgconfig/farsum.pc"]
    return {"bin/farsum", "bin/farsum-tools", "include/farsum.h", "include/farsum_embed.h", *(f"lib/{name}" for name in libraries)}


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def check_needs(path, own_names):
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("--dynamic", path)))
    foreign = needed - GLIBC - own_names - {OF_THE_PROGRAM.get(path.name)}
    if foreign:
        raise Refused(f"{path.name} needs {', '.join(sorted(foreign))}, which neither glibc nor the wheel has")


def newest_glibc(path):
    """As a pair of numbers; (0, 0) of a file that asks for none."""
    versions = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", readelf("--version-info", path))
    return max(((int(major), int(minor)) for major, minor in versions), default=(0, 0))


def check_files(folder, executables, interface):
    present = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    missing = wanted_files(interface) - present
    if missing:
        raise Refused(f"it lacks {', '.join(sorted(missing))}")
    for name in ("bin/farsum", "bin/farsum-tools"):
        if name not in executables:
            raise Refused(f"{name} is not executable in it")


def check_size(wheel):
    if wheel.stat().st_size > LARGEST_BYTES:
        raise Refused(f"it is of {wheel.stat().st_size} bytes, and {LARGEST_BYTES} are the most that it may be")


def judge(wheel, interface):
    """The newest glibc that a file of it asks for. Raises Refused where something is not as it should be."""
    check_size(wheel)
    with tempfile.TemporaryDirectory(prefix="farsum-wheel-") as folder, zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        data = next(Path(folder).glob("*.data/data"), None)
        if data is None:
            raise Refused("it puts nothing below an environment's folder")
        prefix = str(data.relative_to(folder)) + "/"
        executables = {entry.filename.removeprefix(prefix) for entry in archive.infolist()
                       if (entry.external_attr >> 16) & stat.S_IXUSR}
        check_files(data, executables, interface)
        programs = [path for path in Path(folder).rglob("*") if path.is_file() and is_elf(path)]
        for path in programs:
            check_needs(path, {one.name for one in programs})
        return max(newest_glibc(path) for path in programs)
