# The commands of daily work. Each target is one line; the work is in tools/.
SHELL := /bin/bash
JOBS ?= $(shell nproc)

TEST_PARTS := long faults libraries hosts launchers programs zoo tsan asan

.PHONY: all help setup build demo test test-all $(TEST_PARTS:%=test-%) bench soak conformance wheel wheel-check deb zoo \
	release-check format lint docs clean

all: build

# Lines that begin with #: are what `make help` prints, before the parts of `make test-all`.
help:
	@sed -n 's/^#: \{0,1\}//p' Makefile
	@tools/run_tests --list | sed 's/^/  make test-/; s/test-source  /lint         /'
#: make              the release build, into build/
#: make demo         Debian's NWChem on two MPI libraries, without and with Farsum; Hartree-Fock on benzene by two ranks
#: make test         checks in ten minutes that Farsum works here
#: make test-all     all other tests and checks; half an hour more. Its parts are listed below
#: make format       lays out the sources
#: make bench        measurements
#: make docs         the docs as a site, build/site/index.html
#: make conformance  MPI's one-sided test suites, in full
#: make wheel deb    the Python wheel; the Debian packages; into dist/
#: make zoo soak release-check     long campaigns, before a release
#: make clean        removes build/
#:
#: Parts of make test-all:

setup:
	@tools/setup

build/build.ninja:
	@cmake --preset release

build: build/build.ninja
	@cmake --build build --parallel $(JOBS)

# NWChem's water on two MPIs, without and with Farsum in front; then restricted Hartree-Fock on benzene by two ranks that share one
# counter and sum into one matrix. It sets up and builds what it shows, each part just before it is shown.
demo:
	@tools/demo

# `test` checks the main things in ten minutes; `test-all` runs the rest, of which `make help` lists the parts.
test:
	@tools/run_tests

test-all:
	@tools/run_tests all

$(TEST_PARTS:%=test-%): test-%:
	@tools/run_tests $*

bench: build
	@tools/run_benches

# Runs every test binary again and again in shuffled order; SOAK_SECONDS sets for how long (default 600).
# Before that the long forms of the fault tests (tests/soak/run), and ten minutes of hostile bytes for each decoder (FUZZ_SECONDS).
soak: build
	@failed=0; tests/soak/run || failed=1; tools/fuzz || [ $$? -eq 77 ] || failed=1; tools/soak || failed=1; exit $$failed

# MPI's one-sided test suites, natively and with Farsum, on every MPI of this machine (docs/results/conformance.md); CONFORMANCE names options.
# Without any it runs them on sixteen ranks, too, with Farsum in front of Debian's two.
conformance: setup build
	@failed=0; tools/conformance $(CONFORMANCE) || failed=1; \
	$(if $(CONFORMANCE),:,tools/conformance --ranks 16 --farsum --library mpich --library openmpi) || failed=1; exit $$failed

# The Python wheel, into dist/ (WHEEL names options), and its proof in environments with PyPI's MPI libraries (docs/guide/install.md).
wheel: setup
	@JOBS=$(JOBS) tools/wheel build $(WHEEL)

wheel-check:
	@tools/wheel check

# The Debian packages, into dist/; `tools/deb check` tries them in a bare root (docs/guide/install.md).
deb: setup
	@tools/setup --for-release
	@JOBS=$(JOBS) tools/deb build

# Programs that others wrote, alone and with Farsum in front (docs/results/zoo.md); ZOO names options.
zoo: build
	@tools/setup --with-nwchem --with-zoo
	@tools/zoo run $(ZOO)

# What is checked before a release: the wheel and its old glibc, packages, the zoo, the site, a container, four hosts. RELEASE names options.
release-check:
	@tools/setup --with-nwchem --with-zoo --for-release
	@$(MAKE) --no-print-directory build
	@tools/release_check $(RELEASE)

format:
	@tools/format

lint:
	@tools/run_tests source

# The docs as a site, build/site/index.html; its builder comes from PyPI into the user's cache.
docs:
	@tools/site

clean:
	@rm -rf build
