"""A bare Debian below a folder, and what a user does there with the packages of Farsum. For tools/deb."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
# By which one sees that nothing could be fetched, whatever else was wrong.
NO_NETWORK = re.compile(r"Temporary failure resolving|Could not resolve|Could not connect|Unable to connect|Network is unreachable")
# Of whoever starts programs there, as MPI libraries would rather not be started by root.
USER = "farsum-user"
# What changes with every package that comes and goes.
BOOKKEEPING = re.compile(r"\./(proc|sys|dev|packages|var/(lib/(dpkg|apt)|cache|log)|tmp|etc/ld\.so\.cache)(/|$)")
LIMIT_S = 900
# With a page of the manual each.
SUBCOMMANDS = ("run", "mpi", "info")


class Wrong(Exception):
    pass


class Missing(Exception):
    """What this machine does not have."""


def output_of(words, **options):
    """Its exit status, and what it printed, both outputs together."""
    try:
        done = subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              errors="replace", timeout=LIMIT_S, **options)
    except subprocess.TimeoutExpired as expired:
        return 124, f"it took more than {expired.timeout} s"
    return done.returncode, done.stdout


def sources():
    """Where this machine has Debian's packages from, a line each, and the name of its release."""
    fields = "$(ORIGIN) $(ARCHITECTURE) $(REPO_URI) $(RELEASE) $(COMPONENT)"
    status, told = output_of(["apt-get", "indextargets", "--format", fields, "Created-By: Packages"])
    _, architecture = output_of(["dpkg", "--print-architecture"])
    rows = [row.split() for row in told.splitlines()] if status == 0 else []
    lines = [f"deb {' '.join(row[2:])}" for row in rows if row[:2] == ["Debian", architecture.strip()]]
    release = re.search(r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(encoding="utf-8"), re.MULTILINE)
    if not lines or not release:
        raise Missing("lists of Debian's packages on this machine (apt-get update)")
    return lines, release.group(1)


class Root:
    def __init__(self, folder):
        self.folder = folder
        if os.geteuid() != 0:
            raise Missing("root, as whom a bare Debian is made")
        lines, release = sources()
        status, told = output_of(["mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory", release, folder, *lines])
        if status != 0:
            raise Missing(f"a network:\n{told[-1000:]}") if NO_NETWORK.search(told) else Wrong(f"mmdebstrap ended with {status}:\n{told}")
        self.run("useradd", "--create-home", USER)

    def run(self, *words, user="root", succeeds=True):
        """What it printed. It sees its own processes alone, which end with it."""
        enter = ('mount -t proc proc "$0/proc" && mount -t sysfs -o ro sysfs "$0/sys" && mount -t tmpfs -o mode=1777 tmpfs "$0/dev/shm" && '
                 'exec chroot "$0" "$@"')
        home = "/root" if user == "root" else f"/home/{user}"
        clean = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", f"HOME={home}", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"]
        change = [] if user == "root" else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        status, told = output_of(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", enter, self.folder, *clean,
                                  *change, "sh", "-c", f'cd {home} && exec "$@"', "sh", *words])
        if (status == 0) != succeeds:
            raise Wrong(f"in the bare root {' '.join(map(str, words))} ended with {status}:\n{told}")
        return told

    def install(self, *packages):
        """These and what they depend on, found by apt; nothing that they recommend."""
        told = self.run("apt-get", "update", "-qq") if not any((self.folder / "var/lib/apt/lists").glob("*_Packages*")) else ""
        return told + self.run("apt-get", "install", "--yes", "--no-install-recommends", *packages)

    def give(self, path, folder):
        target = self.folder / folder / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if path.is_dir() else shutil.copy)(path, target)
        return f"/{folder}/{path.name}"

    def files(self):
        _, told = output_of(["find", ".", "-xdev"], cwd=self.folder)
        return {path for path in told.splitlines() if not BOOKKEEPING.match(path)}


def check(is_so, what):
    if not is_so:
        raise Wrong(what)


class Trial:
    """The packages in one root. The steps follow each other."""

    def __init__(self, packages, folder):
        self.root = Root(folder)
        self.at = {name: self.root.give(package, "packages") for name, package in packages.items()}
        self.library = next(name for name in self.at if re.match(r"libfarsum\d", name))
        self.version = next(iter(packages.values())).name.split("_")[1].split("-")[0]

    def install(self):
        self.root.install(self.at["farsum"], self.at[self.library])

    def installed(self):
        """Of the packages those that are there: apt does not know the name of one that never was."""
        listed = self.root.run("dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Package}\n")
        return [name for name in self.at if f"ii  {name}\n" in listed]

    def purge(self):
        self.root.run("apt-get", "purge", "--yes", "--autoremove", *self.installed())
        check("farsum" not in self.root.run("ldconfig", "-p"), "the linker still finds a library of the packages")
        left = self.root.run("dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Package}\n")
        check("farsum" not in left, f"dpkg still knows of it:\n{left}")

    def comes_and_goes(self):
        before = self.root.files()
        self.install()
        told = self.root.run("farsum", "--version", user=USER)
        check(told.startswith(f"farsum {self.version}"), f"farsum --version says:\n{told}")
        self.purge()
        left = self.root.files() ^ before
        check(not left, f"not as they were once the packages are gone: {', '.join(sorted(left))}")

    def tells_of_itself(self):
        self.install()
        self.root.run("farsum", "info", user=USER)
        told = self.root.run("farsum", "info", "--json", user=USER)
        fronts = {front["mpi_front"]: front["library"] for front in json.loads(told)["mpi_fronts"]}
        missing = [abi for abi, front in fronts.items() if not re.fullmatch(rf"/usr/lib/\S+/farsum/libfarsum_mpi_{abi}\.so", front)]
        check(fronts and not missing, f"farsum info does not find the front for {', '.join(missing) or 'any MPI'}:\n{told}")

    def has_a_manual(self):
        self.root.install("man-db")
        # That of farsum-tools is the page of the command that becomes it.
        names = {"farsum": "farsum", "farsum-tools": "farsum"} | {f"farsum-{one}": f"farsum-{one}" for one in SUBCOMMANDS}
        for page, name in names.items():
            told = self.root.run("man", "-P", "cat", page, user=USER)
            check(re.search(rf"^NAME\n\s+{name} - ", told, re.MULTILINE), f"man {page} shows:\n{told}")

    def builds_by_pkg_config(self):
        self.root.install(self.at["libfarsum-dev"], "gcc", "libc6-dev", "pkg-config", "cmake", "make")
        self.examples = self.root.give(SOURCE / "examples", "tmp")
        self.root.run("sh", "-c", f"gcc {self.examples}/shared_counter.c -o counter $(pkg-config --cflags --libs farsum) -lm", user=USER)
        self.counts("./counter")

    def builds_by_cmake(self):
        self.root.run("cmake", "-S", self.examples, "-B", "out", user=USER)
        self.root.run("cmake", "--build", "out", user=USER)
        self.counts("out/shared_counter")

    def counts(self, program):
        told = self.root.run("farsum", "run", "-n", "2", program, user=USER)
        check(", right" in told, f"{program} was wrong:\n{told}")

    def goes_in_front_of(self, library, packages, options):
        self.root.install(*packages)
        source = self.root.give(SOURCE / "tests" / "deb" / "sums.c", "tmp")
        self.root.run(f"mpicc.{library}", source, "-o", f"sums-{library}", user=USER)
        told = self.root.run("farsum", "mpi", "--verbose", "--stats", f"mpirun.{library}", *options, "-n", "2", f"./sums-{library}",
                             user=USER)
        for pattern in (r"2 ranks on 1 hosts: right", rf"LD_PRELOAD=/usr/lib/\S+/farsum/libfarsum_mpi_{library}\.so", r"Accumulate +direct"):
            check(re.search(pattern, told), f"nothing of '{pattern}' is in what was printed:\n{told}")

    def goes_in_front_of_mpich(self):
        self.goes_in_front_of("mpich", ("mpich", "libmpich-dev"), [])

    def goes_in_front_of_openmpi(self):
        self.goes_in_front_of("openmpi", ("openmpi-bin", "libopenmpi-dev"), ["--oversubscribe"])

    def is_gone_at_the_end(self):
        self.purge()
        left = sorted(path for path in self.root.files() if "farsum" in path and f"/{USER}" not in path)
        check(not left, f"left once the packages are gone: {', '.join(left)}")


def try_all(packages, folder, tell):
    """The steps that went well: all of them, or Wrong is raised."""
    tell("makes a bare root")
    trial = Trial(packages, folder / "root")
    steps = (trial.comes_and_goes, trial.tells_of_itself, trial.has_a_manual, trial.builds_by_pkg_config, trial.builds_by_cmake,
             trial.goes_in_front_of_mpich, trial.goes_in_front_of_openmpi, trial.is_gone_at_the_end)
    tried = []
    for step in steps:
        step()
        tried.append(step.__name__)
        tell(f"it {step.__name__.replace('_', ' ')}")
    return tried
