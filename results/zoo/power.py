#!/usr/bin/env python3
"""Smallest true difference that a sweep detects, by seeds, from the spread of committed records.

    results/zoo/power.py RESULTS...

RESULTS are folders with records in `cells`; `pe-bench records merge PACKED --out FOLDER` makes one of packed records. For each
workload, split and length the standard deviation over seeds of the difference between two encodings is computed for all
pairs; printed are its quartiles in points of exact match and, for them, the true difference that a paired t test detects
with a power of 80 %: for one planned comparison, and at Holm's first step over all pairs of 28 encodings. Needs scipy.
"""
import itertools
import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from scipy import stats

ENCODINGS = 28
SEEDS = [3, 5, 6, 7, 8, 10, 12]


def detected(seeds, alpha):
    """True difference in standard deviations that has a power of 80 %."""
    critical = stats.t.ppf(1 - alpha / 2, seeds - 1)
    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        if stats.nct.sf(critical, seeds - 1, middle * seeds**0.5) < 0.8:
            low = middle
        else:
            high = middle
    return high


def main():
    cells = defaultdict(lambda: defaultdict(dict))
    for folder in sys.argv[1:]:
        for path in Path(folder).rglob("cells/*.json"):
            record = json.loads(path.read_text())
            for evaluation in record["evals"]:
                key = (record["workload"], evaluation["split"], evaluation["len"])
                cells[key][record["encoding"]["name"]][record["seed"]] = 100 * evaluation["exact_match"]
    spreads = []
    for encodings in cells.values():
        for a, b in itertools.combinations(encodings.values(), 2):
            seeds = sorted(a.keys() & b.keys())
            if len(seeds) > 2:
                spreads.append(statistics.stdev(a[seed] - b[seed] for seed in seeds))
    if len(spreads) < 2:
        sys.exit(f"{len(spreads)} pairs of encodings share three seeds, expected at least 2; are the records in `cells`?")
    quartiles = statistics.quantiles(spreads, n=4)
    print(f"{len(spreads)} pairs; spread of differences over seeds, quartiles: "
          + ", ".join(f"{q:.1f}" for q in quartiles) + " points")
    print("| seeds | planned: quartiles of the detected difference | ranks of 28 encodings |")
    print("| ---: | ---: | ---: |")
    pairs = ENCODINGS * (ENCODINGS - 1) / 2
    for seeds in SEEDS:
        planned = [f"{detected(seeds, 0.05) * q:.1f}" for q in quartiles]
        carried = 2.0 ** (1 - 2 * seeds) * pairs <= 0.05
        ranks = [f"{detected(seeds, 0.05 / pairs) * q:.1f}" for q in quartiles] if carried else ["none"]
        print(f"| {seeds} | {', '.join(planned)} | {', '.join(ranks)} |")


main()
