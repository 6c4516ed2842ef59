#!/usr/bin/python3 -B
"""The cases of a build, as ctest lists them, and the marks that say which of them `make test` leaves to `make test-all`.

  tools/test_cases.py --long-folders tests     the folders below tests of which `make test` runs nothing, for CMake
  tools/test_cases.py                          each case of the release build with its parts, and marks that are of no use

A mark is a comment in the file of the test, with its reason:

  // In make test-all: REASON              the next test runs in `make test-all` only
  // In full in make test-all: REASON      `make test` runs a short form of it, too (tests/test_length.hpp)
  // Takes seconds: REASON                 the next test runs in `make test`, though it may take longer than a second

With a pattern before the colon, as in `// In make test-all (*openmpi*): REASON`, it is for those cases whose name matches.

It stands above the test, in the comment that ends there. In the first comment of a file it is for all tests of the file; a folder
of which every file with tests has one without a pattern is not built by `make test` (cmake/Tests.cmake). A test that CMake registers
by name has the same words among its labels.
"""

import argparse
import fnmatch
import json
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LONG, IN_FULL, MAY_LAST = "In make test-all", "In full in make test-all", "Takes seconds"
MARK = re.compile(rf"^({LONG}|{IN_FULL}|{MAY_LAST})(?: \(([^)]+)\))?: (.+)$")
NOT_BUILT = "_NOT_BUILT"
# A test of gtest begins with one of these.
TEST = re.compile(r"^(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\(", re.MULTILINE)
# What belongs together in `make test-all`, by the first word of a case's name; all others are `long`.
PARTS = {"hosts": "hosts", "launchers": "launchers", "pmix": "launchers", "faults": "faults", "zoo": "zoo", "mpi": "libraries",
         "nwchem": "libraries", "apps": "programs", "bench": "programs", "cli": "programs", "docs": "programs", "fock": "programs",
         "install": "programs", "lab": "programs", "wheel": "programs"}


@dataclass(frozen=True)
class Case:
    number: int          # by which ctest knows it in this build
    name: str
    is_long: bool        # left to `make test-all`
    is_shortened: bool   # `make test` runs a short form, and `make test-all` all of it
    may_last: bool       # longer than a second
    marks: tuple         # that it has

    @property
    def parts(self):
        long = PARTS.get(self.name.partition(".")[0], "long")
        return {long} if self.is_long else {"short", long} if self.is_shortened else {"short"}


@dataclass(frozen=True)
class Mark:
    kind: str
    pattern: str
    reason: str

    def holds_for(self, name):
        return not self.pattern or fnmatch.fnmatchcase(name, self.pattern)


def mark_of(text):
    found = MARK.match(text.strip())
    return Mark(found[1], found[2] or "", found[3]) if found else None


def comment_text(line):
    """What a line of a comment says, or None where it is none."""
    stripped = line.strip()
    return stripped.removeprefix("//").strip() if stripped.startswith("//") else None


@cache
def lines_of(path):
    return Path(path).read_text(encoding="utf-8").splitlines()


@cache
def marks_of_file(path):
    """Those of its first comment."""
    marks = []
    for line in lines_of(path):
        text = comment_text(line)
        if text is None:
            break
        marks.append(mark_of(text))
    return [mark for mark in marks if mark]


@cache
def marks_above(path, line_number):
    """Those of the comment that ends above a line, counted from 1."""
    lines, at, marks = lines_of(path), line_number - 2, []
    while at >= 0 and (text := comment_text(lines[at])) is not None:
        marks.append(mark_of(text))
        at -= 1
    return [mark for mark in marks if mark]


def places_of(program):
    """Where each case of a test program stands, by its name: file and line."""
    with tempfile.NamedTemporaryFile(suffix=".json") as listed:
        subprocess.run([program, "--gtest_list_tests", f"--gtest_output=json:{listed.name}"], stdout=subprocess.DEVNULL, check=True)
        suites = json.loads(Path(listed.name).read_text(encoding="utf-8"))["testsuites"]
    return {f"{suite['name']}.{case['name']}": (case["file"], case["line"]) for suite in suites for case in suite["testsuite"]}


def program_of(test):
    """The test program of gtest whose case it is, or None."""
    command = test.get("command", [])
    return command[0] if any(word.startswith("--gtest_filter=") for word in command[1:2]) else None


def labels_of(test):
    return next((entry["value"] for entry in test.get("properties", []) if entry["name"] == "LABELS"), [])


def case_of(number, test, places):
    name, program = test["name"].partition("  # GetParam()")[0], program_of(test)
    if program:
        path, line = places[program][test["command"][1].removeprefix("--gtest_filter=")]
        marks = marks_above(path, line) + marks_of_file(path)
    else:
        marks = [mark for mark in map(mark_of, labels_of(test)) if mark]
    held = tuple(mark for mark in marks if mark.holds_for(name))
    kinds = {mark.kind for mark in held}
    return Case(number, test["name"], LONG in kinds, IN_FULL in kinds, MAY_LAST in kinds, held)


def is_long_file(path):
    return any(mark.kind == LONG and not mark.pattern for mark in marks_of_file(path))


def long_folders(tests):
    """The folders of test programs, relative to tests, of which every file with tests is marked."""
    folders = sorted({path.parent for path in tests.rglob("*_test.cpp")})
    files = {folder: [path for path in folder.iterdir() if path.suffix in (".cpp", ".hpp") and TEST.search("\n".join(lines_of(path)))]
             for folder in folders}
    return [str(folder.relative_to(tests)) for folder in folders if files[folder] and all(map(is_long_file, files[folder]))]


def listed_tests(root):
    listed = subprocess.run(["ctest", "--preset", "release", "--show-only=json-v1"], cwd=root, text=True, stdout=subprocess.PIPE, check=True)
    return list(enumerate(json.loads(listed.stdout)["tests"], 1))


def cases(root):
    """All cases of the release build, but those of programs that are not built."""
    built = [(number, test) for number, test in listed_tests(root) if not test["name"].endswith(NOT_BUILT)]
    programs = sorted({program for _, test in built if (program := program_of(test))})
    with ThreadPoolExecutor() as pool:
        places = dict(zip(programs, pool.map(places_of, programs)))
    return [case_of(number, test, places) for number, test in built]


def what_is_wrong(root, found):
    """Sentences: programs that are not built, marks that no case has, and cases that run nowhere. Where all is to be built."""
    wrong = [f"{test['name'].removesuffix(NOT_BUILT)} is not built" for _, test in listed_tests(root) if test["name"].endswith(NOT_BUILT)]
    unbuilt = {f"{folder.replace('/', '_')}." for folder in long_folders(root / "tests")}
    wrong += [f"{case.name} runs nowhere: it lacks the mark that its folder has" for case in found
              if case.parts == {"short"} and case.name.startswith(tuple(unbuilt))]
    return wrong + list(useless_marks(root / "tests", found))


def useless_marks(tests, found):
    """Of the folders whose programs are built: what a program needs may not be here."""
    used = {mark for case in found for mark in case.marks}
    built = {case.name.partition(".")[0] for case in found}
    for folder in sorted({path.parent for path in tests.rglob("*_test.cpp")}):
        if str(folder.relative_to(tests)).replace("/", "_") not in built:
            continue
        for path in sorted(path for path in folder.iterdir() if path.suffix in (".cpp", ".hpp")):
            for number, line in enumerate(lines_of(path), 1):
                mark = mark_of(comment_text(line) or "")
                if mark and mark not in used:
                    yield f"{path.relative_to(tests.parent)}:{number}: no case has this mark"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long-folders", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.long_folders:
        print(";".join(long_folders(arguments.long_folders)))
        return
    root = Path(__file__).resolve().parent.parent
    found = cases(root)
    print("".join(f"{' '.join(sorted(case.parts)):14} {case.name}\n" for case in found) + "\n".join(what_is_wrong(root, found)))


if __name__ == "__main__":
    main()
