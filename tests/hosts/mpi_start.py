#!/usr/bin/python3 -B
"""Builds a small program with one MPI library, runs it on all test hosts as `tools/hosts launcher` says, and prints what it prints:
the hosts of all ranks in their order, then how many share the first one's.

    mpi_start.py HOSTS NAME LIBRARY RANKS_PER_HOST       HOSTS: tools/hosts; NAME: the set of hosts

Exit status 77, with a sentence, where the library is not on this machine.
"""

import os
import signal
import subprocess
import sys
import tempfile

from host_jobs import hosts_mpi, library

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>

enum { most_ranks = 16 };

int main(int argc, char** argv) {
  static char names[most_ranks][MPI_MAX_PROCESSOR_NAME];
  char name[MPI_MAX_PROCESSOR_NAME] = {0};
  int rank, ranks, length, neighbours;
  MPI_Comm node;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > most_ranks) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Get_processor_name(name, &length);
  MPI_Gather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &neighbours);
  if (rank == 0) {
    for (int other = 0; other < ranks; ++other) printf("%s ", names[other]);
    printf("%d\n", neighbours);
    fflush(stdout);
  }
  MPI_Comm_free(&node);
  MPI_Finalize();
  return 0;
}
"""


def run(hosts, name, program, ranks_per_host):
    words = subprocess.run([*hosts, "launcher", name, "--ranks-per-host", ranks_per_host], stdout=subprocess.PIPE, text=True,
                           check=True).stdout.split()
    with subprocess.Popen([*hosts, "exec", "a", *words, program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True, start_new_session=True) as job:
        print(job.stdout.readline(), end="", flush=True)
        if name in hosts_mpi.MAY_NOT_END:
            os.killpg(job.pid, signal.SIGKILL)
            return 0
        print(job.stdout.read(), end="")
        return job.wait()


def main():
    tool, hosts, name, ranks_per_host = sys.argv[1:]
    wrapper = library(name)["compiler"]
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/two_hosts"
        subprocess.run([wrapper, "-x", "c", "-", "-o", program], input=PROGRAM, text=True, check=True)
        sys.exit(run([tool, "--name", hosts], name, program, ranks_per_host))


main()
