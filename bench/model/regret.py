"""What `farsum bench model` makes of its jobs' figures: regret by case, its geometric means, a table or JSON lines."""

import hashlib
import json
import math
import statistics
import subprocess
import sys
from collections import defaultdict

AIM = 1.10
CASE = ("memory", "operation", "bytes", "burst", "origins")
PLACE_TEXT = {"node": "one node", "hosts": "two hosts"}


def records_of(output):
    return [json.loads(line) for line in output.splitlines() if line.startswith("{") and line.endswith("}")]


def choices_of(build):
    """What the cost model says it will choose, by place and case."""
    said = subprocess.run([f"{build}/bin/farsum", "info", "--model", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(said.stdout)["choices"]


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1024 else f"{size} B"


def usual(values):
    """The lower quartile: of rounds that other work on the machine disturbs, what the undisturbed ones take."""
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 4]


def mean_of(values):
    return math.exp(statistics.fmean(math.log(value) for value in values)) if values else None


def mean_text(line):
    of = f", {line['origins']} {'origin' if line['origins'] == 1 else 'origins'}" if "origins" in line else ""
    judged = "" if line["aim"] is None else f"; aim <= {line['aim']}: {'met' if line['met'] else 'MISSED'}"
    return (f"{PLACE_TEXT.get(line['place'], line['place'])}{of}: regret {line['geometric_mean']:.3f} in the geometric mean over "
            f"{line['cases']} cases, at worst {line['worst']:.2f}{judged}")


class Report:
    def __init__(self, as_json, folder):
        self.as_json, self.folder = as_json, folder
        self.chosen = {}
        self.times = defaultdict(lambda: defaultdict(dict))  # [place, case][path][round]
        self.taken = {}
        self.skipped = {}
        self.failures = []

    @property
    def has_failed(self):
        return bool(self.failures)

    def say(self, record, text):
        print(json.dumps(record) if self.as_json else text, flush=True)

    def progress(self, text):
        print(f"bench-model: {text}", file=sys.stderr, flush=True)

    def failure(self, text):
        self.failures.append(text)
        self.say({"bench": "model", "failed": text}, f"FAILED: {text}")

    def skip(self, place, why):
        self.skipped[place] = why
        self.say({"bench": "model", "place": place, "skipped": why}, f"skipped, {PLACE_TEXT[place]}: {why}")

    def choices(self, rows, about):
        """Written down with its hash before anything is measured, so that nobody can choose afterwards."""
        for row in rows:
            self.chosen[row["place"], tuple(row[key] for key in CASE)] = row
        text = json.dumps(rows, indent=1)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "model-choices.json"
        path.write_text(text, encoding="utf-8")
        digest = hashlib.sha256(text.encode()).hexdigest()
        self.say({"bench": "model", "choices": rows, "sha256": digest, **about},
                 f"chosen by the model before any measurement: {len(rows)} cases in {path}, sha256 {digest[:16]}")

    def keep(self, place, records):
        for record in records:
            case = tuple(record[key] for key in CASE)
            self.times[place, case][record["path"]][record["round"]] = record["us"]
            self.taken[place, case, record["path"]] = record["taken"]

    def row(self, place, case):
        times = self.times[place, case]
        # A path that fell back to another is not one more way.
        forced = {path: times[path] for path in times if path != "auto" and self.taken[place, case, path] == path}
        rounds = set(times.get("auto", {}))
        forced = {path: values for path, values in forced.items() if rounds <= set(values)}
        if not rounds or not forced:
            return None
        times_us = {path: usual(values[number] for number in rounds) for path, values in forced.items()}
        auto_us = usual(times["auto"].values())
        best = min(times_us, key=times_us.get)
        chosen = self.chosen.get((place, case), {})
        return {"bench": "model", "place": place, **dict(zip(CASE, case)), "chosen": chosen.get("path"),
                "predicted_us": chosen.get("predicted_us"), "taken": self.taken[place, case, "auto"], "best": best,
                "auto_us": auto_us, "best_us": times_us[best], "forced_us": times_us, "regret": auto_us / times_us[best]}

    def tell(self, places):
        regrets = defaultdict(list)
        for place in places:
            rows = [row for key in self.times if key[0] == place if (row := self.row(*key))]
            if rows and not self.as_json:
                print(f"\n{PLACE_TEXT[place]}, us an operation\n"
                      f"{'memory':10} {'operation':15} {'size':>8} {'burst':>5} {'origins':>7}  {'taken':10} {'us':>10} {'model':>10}  "
                      f"{'best':10} {'us':>10} {'regret':>6}")
            for row in rows:
                for group in ((place, None), (place, row["origins"])):
                    regrets[group].append(row["regret"])
                predicted = "-" if row["predicted_us"] is None else f"{row['predicted_us']:.3f}"
                self.say(row, f"{row['memory']:10} {row['operation']:15} {size_text(row['bytes']):>8} {row['burst']:5} {row['origins']:7}  "
                              f"{row['taken']:10} {row['auto_us']:10.3f} {predicted:>10}  {row['best']:10} {row['best_us']:10.3f} "
                              f"{row['regret']:6.2f}")
        # The aim is of all cases together; by the number of origins it is told where they differ.
        of_places = {place: values for (place, origins), values in regrets.items() if origins is None}
        if len(of_places) > 1:
            of_places["all"] = [value for values in of_places.values() for value in values]
        for place, values in of_places.items():
            self.tell_mean(place, None, values)
        for (place, origins), values in regrets.items():
            if origins is not None:
                self.tell_mean(place, origins, values)

    def tell_mean(self, place, origins, values):
        line = {"bench": "model", "place": place, "geometric_mean": mean_of(values), "worst": max(values), "cases": len(values),
                "aim": None, "met": None}
        if origins is None:
            line.update(aim=AIM, met=line["geometric_mean"] <= AIM)
        else:
            line["origins"] = origins
        self.say(line, mean_text(line))
