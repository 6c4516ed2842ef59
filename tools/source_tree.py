"""Lists the project's C and C++ files, follows their project includes and remembers which content has passed a check.

Shared by tools/format, tools/lint and tools/check_includes. It decides nothing about what is allowed.
"""

import fcntl
import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "include", "apps", "bench", "examples", "fronts", "lab", "tests")
HEADERS = (".h", ".hpp")
SOURCES = (".c", ".cpp")

# Parts whose files name their own headers from a folder of the part, before any other of the project's.
OWN_INCLUDE_FOLDERS = {"lab": ("lab",), "fronts/mpi": ("fronts/mpi", "fronts/mpi/src"), "src/cli": ("fronts/mpi",)}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)


def files(suffixes, folders=FOLDERS, root=ROOT):
    """All files with one of the suffixes below the folders, sorted."""
    found = []
    for folder in folders:
        found += [path for path in (root / folder).rglob("*") if path.suffix in suffixes and path.is_file()]
    return sorted(found)


def includes(text):
    """The (delimiter, name) pairs of the include lines in a file's text."""
    return INCLUDE.findall(text)


def resolve(name, including_file, root=ROOT):
    """The project file that an include names, or None for one of the system's."""
    own = [root / folder for part, folders in OWN_INCLUDE_FOLDERS.items() if including_file.is_relative_to(root / part)
           for folder in folders]
    shared = [root / folder for folder in ("src", "include", "tests", "apps", "bench")]
    for folder in (including_file.parent, *own, *shared):
        candidate = Path(os.path.normpath(folder / name))
        if candidate.is_file() and candidate.is_relative_to(root):
            return candidate
    return None


def compile_commands():
    """How each file is compiled, for itself: of several ways, as for each MPI ABI, the first. Nothing is built for that."""
    folder = ROOT / "build" / "by-file"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "configuring", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # lint and the check of includes may run at once
        subprocess.run(["cmake", "--preset", "by-file"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        entries = json.loads((folder / "compile_commands.json").read_text())
    commands = {}
    for entry in entries:
        commands.setdefault(Path(entry["file"]), entry)
    return commands


class ContentHash:
    """Hashes a file together with every project file it includes, directly or not."""

    def __init__(self, root=ROOT):
        self.root = root
        self.parsed = {}

    def _parse(self, path):
        if path not in self.parsed:
            text = path.read_text(encoding="utf-8", errors="replace")
            names = [name for _, name in includes(text)]
            targets = [resolve(name, path, self.root) for name in names]
            self.parsed[path] = (hashlib.sha256(text.encode()).hexdigest(), [t for t in targets if t], names)
        return self.parsed[path]

    def _closure(self, path):
        seen, todo = {path}, [path]
        while todo:
            for target in self._parse(todo.pop())[1]:
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        return sorted(seen)

    def of(self, path, salt):
        total = hashlib.sha256(salt.encode())
        for member in self._closure(path):
            total.update(f"{member.relative_to(self.root)} {self._parse(member)[0]}\n".encode())
        return total.hexdigest()

    def included(self, path):
        """Every project file that the file includes, directly or not."""
        return set(self._closure(path)) - {path}

    def names_included(self, path):
        """Every name in an include line of the file or of a project file that it includes."""
        return {name for member in self._closure(path) for name in self._parse(member)[2]}


class PassedCache:
    """Remembers contents that passed a check, as empty files named by their hash, in the build folder: `make clean` forgets them.
    What decides whether a content passes belongs into its hash: the tool and its version, too. The system's headers are not in it.
    Where CI is set nothing has passed before."""

    def __init__(self, name):
        self.folder = ROOT / "build" / name
        self.folder.mkdir(parents=True, exist_ok=True)

    def has(self, digest):
        return not os.environ.get("CI") and (self.folder / digest).exists()

    def add(self, digest):
        (self.folder / digest).touch()


def text_of_tool(name):
    """What a tool of this folder does, for a hash."""
    return "".join((ROOT / "tools" / part).read_text(encoding="utf-8") for part in (name, "source_tree.py"))


def job_count():
    return len(os.sched_getaffinity(0))
