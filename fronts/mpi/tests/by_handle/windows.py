#!/usr/bin/python3 -B
"""A program that opens its MPI library itself: every rank sums into every rank's window, through ctypes.

  windows.py mpich|openmpi|abi local|global      how the library's names are to be seen by others
"""

import ctypes
import sys

SONAMES = {"mpich": ("libmpi.so.12", "libmpich.so.12"), "openmpi": ("libmpi.so.40",), "abi": ("libmpi_abi.so.1", "libmpi_abi.so.0")}
# Handles by their names in Open MPI's library, whose addresses they are; in MPICH's header and MPI 5's they are numbers.
DATA = {"world": "ompi_mpi_comm_world", "no_info": "ompi_mpi_info_null", "long": "ompi_mpi_long", "sum": "ompi_mpi_op_sum"}
NUMBERS = {
    "mpich": {"world": 0x44000000, "no_info": 0x1C000000, "long": 0x4C000807, "sum": 0x58000003},
    "abi": {"world": 0x101, "no_info": 0x130, "long": 0x20A, "sum": 0x21},
}


def opened(names, mode):
    for name in names:
        try:
            return ctypes.CDLL(name, mode=mode)
        except OSError:
            pass
    sys.exit(f"none of {', '.join(names)} is here")


class Library:
    def __init__(self, abi, visibility):
        mode = {"local": ctypes.RTLD_LOCAL, "global": ctypes.RTLD_GLOBAL}[visibility]
        self.calls = opened(SONAMES[abi], mode)
        self.abi = abi
        # An int in MPICH, a pointer elsewhere.
        self.handle = ctypes.c_int if abi == "mpich" else ctypes.c_void_p

    def known(self, name):
        if self.abi in NUMBERS:
            return self.handle(NUMBERS[self.abi][name])
        return self.handle(ctypes.addressof(ctypes.c_char.in_dll(self.calls, DATA[name])))

    def call(self, name, *arguments):
        code = getattr(self.calls, name)(*arguments)
        if code != 0:
            sys.exit(f"{name} answered {code}")


def main():
    mpi = Library(*sys.argv[1:])
    world, long, ranks = mpi.known("world"), mpi.known("long"), ctypes.c_int()
    mpi.call("MPI_Init", None, None)
    mpi.call("MPI_Comm_size", world, ctypes.byref(ranks))
    memory, window, one = ctypes.POINTER(ctypes.c_long)(), mpi.handle(), ctypes.c_long(1)
    mpi.call("MPI_Win_allocate", ctypes.c_ssize_t(64), 8, mpi.known("no_info"), world, ctypes.byref(memory), ctypes.byref(window))
    memory[3] = 0
    mpi.call("MPI_Win_fence", 0, window)
    for rank in range(ranks.value):
        mpi.call("MPI_Accumulate", ctypes.byref(one), 1, long, rank, ctypes.c_ssize_t(3), 1, long, mpi.known("sum"), window)
    mpi.call("MPI_Win_fence", 0, window)
    if memory[3] != ranks.value:
        sys.exit(f"{memory[3]} sums, not {ranks.value}")
    mpi.call("MPI_Win_free", ctypes.byref(window))
    mpi.call("MPI_Finalize")


main()
