"""What `farsum bench net` compares with what, by which aim, and how it says so. The aims are those of docs/results/benchmarks.md."""

import json
import os
import sys
from statistics import median

LATENCY = ["put-8", "get-8", "fetch-and-op-8", "accumulate-8", "lock-put-unlock-8"]
BULK = {f"{call}-{name}": size for name, size in
        (("4KiB", 4096), ("64KiB", 65536), ("1MiB", 1 << 20), ("1MiB-x8", 1 << 20)) for call in ("put", "get", "accumulate")}
HASTY = 0.3  # of TCP's round trip; who polls at both ends needs about 0.7
HASTY_COMPUTING = 0.1  # of the library's own fetch-and-op, which has to wait for the target
LOOK_AHEAD = 1024
GATHERED = 4096  # updates of one call
UPDATE_BYTES = 16  # of a stream, for one update: its place and its value
# Of an operation of ours: the test that is nearest, and by what its figure is to be multiplied.
UCX = [("put-8", "ucp_am_lat", 2, "two messages of ucp_am_lat"), ("get-8", "ucp_get", 1, "ucp_get"),
       ("fetch-and-op-8", "ucp_fadd", 1, "ucp_fadd")]


def quantile(values, share):
    ordered = sorted(values)
    return ordered[int(share * (len(ordered) - 1) + 0.5)]


def short(value):
    return "-" if value is None else f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def ratio_text(value):
    return f"{value:.2f}" if value >= 0.095 else f"{value:.1e}"


class Report:
    """Lines go to the output, progress and failures to the error stream."""

    def __init__(self, as_json):
        self.as_json = as_json
        self.has_failed = False
        self.has_header = False
        self.met, self.aims = 0, 0
        self.notes = {}
        self.load = round(os.getloadavg()[0], 1)  # of others: taken before anything is started

    def progress(self, text):
        print(f"bench-net: {text}", file=sys.stderr, flush=True)

    def failure(self, text):
        self.has_failed = True
        print(f"bench-net: FAILED: {text}", file=sys.stderr, flush=True)

    def line(self, row, case, library, ours, limit, *, better, unit, peer, aim=None, **more):
        """`ours` and `limit` by round; the ratio is the median of those of the rounds that have both."""
        both = sorted(set(ours) & set(limit))
        ratios = [ours[number] / limit[number] for number in both if limit[number]]
        ratio = median(ratios) if ratios else None
        met = None if aim is None or ratio is None else ratio <= aim if better == "lower" else ratio >= aim
        line = {"bench": "net", "row": row, "case": case, "library": library, "ours": median(ours.values()) if ours else None,
                "limit": median(limit.values()) if limit else None, "ratio": ratio, "better": better, "aim": aim, "met": met,
                "unit": unit, "peer": peer, "load": self.load}
        if ratios:
            line |= {"pairs": len(ratios), "ratio_low": quantile(ratios, 0.25), "ratio_high": quantile(ratios, 0.75)}
        line |= {name: value for name, value in more.items() if value}
        self.aims += met is not None
        self.met += met is True
        self.show(line)

    def show(self, line):
        if self.as_json:
            print(json.dumps(line), flush=True)
            return
        if not self.has_header:
            self.has_header = True
            print(f"{'case':<52} {'library':<9} {'ours':>9} {'limit':>9} {'unit':<5} {'ratio':>8} {'spread':>18} {'aim':>8} "
                  f"{'':<6} limit of")
        spread = f"{ratio_text(line['ratio_low'])}..{ratio_text(line['ratio_high'])}" if line["ratio"] is not None else ""
        aim = "" if line["aim"] is None else f"{'<=' if line['better'] == 'lower' else '>='} {line['aim']:g}"
        self.notes |= {note: None for note in line.get("notes", [])}
        print(f"{line['row'] + ': ' + line['case']:<52} {line['library']:<9} {short(line['ours']):>9} {short(line['limit']):>9} "
              f"{line['unit']:<5} {'-' if line['ratio'] is None else ratio_text(line['ratio']):>8} {spread:>18} {aim:>8} "
              f"{ {None: '', True: 'met', False: 'MISSED'}[line['met']]:<6} {line['peer'] or '-'}", flush=True)

    def summary(self):
        for note in self.notes:
            print(f"missing: {note}")
        if not self.as_json and self.aims:
            print(f"{self.met} of {self.aims} aims met")


class Comparison:
    """All lines of one run."""

    def __init__(self, measured, report):
        self.values, self.missing, self.report = measured.values, measured.missing, report
        self.fronts = measured.options.fronts
        self.alone = [library for who, library in list(self.values) if who == "alone"]
        self.hasty = self.find_hasty()

    def ours(self, library, what, scale=1e-3):
        return {number: ns * scale for number, ns in self.values["farsum", library][what].items()}

    def raw(self, library, what, scale=1.0):
        return {number: value * scale for number, value in self.values["raw", library][what].items()}

    def best_stream(self, library):
        shapes = {what: rounds for what, rounds in self.values["raw", library].items() if what[0] == "stream" and rounds}
        if not shapes:
            return {}, ""
        shape = max(shapes, key=lambda what: median(shapes[what].values()))
        buffers = f"{shape[3] >> 20} MiB buffers" if shape[3] else "the kernel's buffers"
        return shapes[shape], f"TCP stream, write {shape[1] >> 10} KiB, read {shape[2] >> 10} KiB, {buffers}"

    def find_hasty(self):
        """Libraries whose flush after a put returns before it is at the target: their puts are no limit."""
        trips = [ns for library in self.fronts for ns in self.values["raw", library]["round-trip-8"].values()]
        return {library for library in self.alone
                if self.is_quicker(library, ("put-8", "computes"), HASTY_COMPUTING, self.values["alone", library]["fetch-and-op-8", "computes"].values())
                or self.is_quicker(library, ("put-8", "waits"), HASTY, trips)}

    def is_quicker(self, library, what, share, than):
        rounds = self.values["alone", library][what].values()
        return bool(rounds) and bool(than) and median(rounds) < share * median(than)

    def best_alone(self, what):
        """The library that is fastest without Farsum, its rounds in microseconds, and the medians of all."""
        medians = {library: median(self.values["alone", library][what].values()) / 1e3 for library in self.alone
                   if self.values["alone", library][what]}
        limits = [library for library in medians if library not in self.hasty or not what[0].startswith("put")]
        if not limits:
            return "", {}, medians
        best = min(limits, key=medians.get)
        return best, {number: ns / 1e3 for number, ns in self.values["alone", best][what].items()}, medians

    def round_trips(self):
        for library in self.fronts:
            for case in LATENCY:
                self.tell("tcp", case, library, self.ours(library, (case, "sleeps")), self.raw(library, "round-trip-8", 1e-3),
                          better="lower", unit="us", peer="TCP round trip", aim=1.4)

    def streams(self):
        for library in self.fronts:
            stream, shape = self.best_stream(library)
            for case, size in BULK.items():
                aim = None if "1MiB" not in case else 0.7 if case.startswith("accumulate") else 0.85
                rates = {number: size * 1e3 / ns for number, ns in self.values["farsum", library][case, "sleeps"].items()}
                self.tell("stream", case, library, rates, stream, better="higher", unit="MB/s", peer=shape, aim=aim)

    def updates(self):
        for library in self.fronts:
            stream, _ = self.best_stream(library)
            own = self.raw(library, "lock-xor")
            limit = {number: min(stream[number] / UPDATE_BYTES, own[number]) for number in set(stream) & set(own)}
            for case, aim, of_a_call in (("random-xor-1024", 0.8, 1), ("random-xor-gathered", 0.8, GATHERED), ("implicit-1000", None, 1)):
                rates = {number: of_a_call * 1e3 / ns for number, ns in self.values["farsum", library][case, "sleeps"].items()}
                self.tell("updates", case, library, rates, limit, better="higher", unit="M/s",
                          peer=f"stream / {UPDATE_BYTES} B or lock xor", aim=aim)
            # What nobody who waits for an answer each 1024 updates can exceed.
            trips = self.raw(library, "round-trip-8", 1e-3)
            exchange = {number: LOOK_AHEAD / (trips[number] + LOOK_AHEAD * UPDATE_BYTES / stream[number]) for number in set(stream) & set(trips)}
            rates = {number: 1e3 / ns for number, ns in self.values["farsum", library]["random-xor-1024", "sleeps"].items()}
            self.tell("updates", "random-xor-1024 / an exchange each 1024", library, rates, exchange, better="higher", unit="M/s",
                      peer=f"TCP, {LOOK_AHEAD * UPDATE_BYTES >> 10} KiB and an answer")

    def beside_mpi(self):
        aims = {**{case: 1.2 for case in LATENCY[:4]}, "accumulate-8-x8": 0.9}
        for case in [*LATENCY, "accumulate-8-x8", *BULK, "random-xor-1024", "random-xor-gathered", "implicit-1000"]:
            self.beside_best((case, "waits"), case, aims.get(case))
        for case in ("put-8", "fetch-and-op-8"):
            self.beside_best((case, "computes"), f"{case}, owner computing", 0.01)

    def beside_best(self, what, name, aim):
        best, limit, medians = self.best_alone(what)
        for library in self.fronts:
            self.tell("mpi", name, library, self.ours(library, what), limit, better="lower", unit="us", peer=best or None, aim=aim,
                      alone={other: round(value, 3) for other, value in medians.items()},
                      notes=self.notes_of_libraries())

    def notes_of_libraries(self):
        return [*(f"{other} alone: {why}" for other, why in self.missing.items() if "ucx" not in other),
                *(f"{other} alone: its flush after a put returns before it is at the target, so its puts are no limit"
                  for other in sorted(self.hasty))]

    def beside_ucx(self):
        figures = self.values["ucx", ""]
        notes = [f"{what}: {why}" for what, why in self.missing.items() if "ucx" in what]
        for library in self.fronts:
            for case, test, factor, peer in UCX:
                limit = {number: value * factor for number, value in figures[test].items()}
                self.tell("ucx", case, library, self.ours(library, (case, "waits")), limit, better="lower", unit="us", peer=peer,
                          notes=notes)
            rates = {number: (1 << 20) * 1e3 / ns for number, ns in self.values["farsum", library]["put-1MiB-x8", "waits"].items()}
            for test in ("ucp_am_bw", "ucp_put_bw"):
                # Its megabytes are of 2^20 bytes.
                limit = {number: value * 1.048576 for number, value in figures[test].items()}
                self.tell("ucx", "put-1MiB-x8", library, rates, limit, better="higher", unit="MB/s", peer=test, notes=notes)

    def counters(self):
        for library in self.fronts:
            computing, waiting = self.ours(library, ("counter", 1)), self.ours(library, ("counter", 2))
            self.tell("counter", "owner computes / waits", library, computing, waiting, better="lower", unit="us",
                      peer="owner waits", aim=1.5)
            self.tell("counter", "owner computes / round trip", library, computing, self.raw(library, "round-trip-8", 1e-3),
                      better="lower", unit="us", peer="TCP round trip", aim=1.6)
            self.tell("counter", "owner computes / responder beside a computing thread", library, computing,
                      self.raw(library, "round-trip-8-computing", 1e-3), better="lower", unit="us",
                      peer="TCP round trip, a thread computes on the responder's processor")
            self.tell("counter", "owner computes / the same, drawn from now and then", library, computing,
                      self.raw(library, "round-trip-8-drawn", 1e-3), better="lower", unit="us",
                      peer="as the row above, and the caller computes for 2 ms between two")

    def tell(self, row, case, library, ours, limit, **more):
        if ours:
            self.report.line(row, case, library, ours, limit, **more)


def tell(measured, report):
    lines = Comparison(measured, report)
    lines.round_trips()
    lines.streams()
    lines.updates()
    lines.beside_mpi()
    lines.beside_ucx()
    lines.counters()
