#!/usr/bin/env python3
"""Recomputes the table of the front page: doc/front_page.py [results/zoo/2-cores_2026-11 [results/README.md]].

An independent check of the statistics: everything below is numpy on the JSON inside `records.parquet`. PyArrow opens the
file (pip install numpy pyarrow). Every number of the table must be the same; the ends of intervals are those of another random generator and must be within 0.4 points. METHODOLOGY.md defines the quantities.
"""

import base64
import json
import re
import sys

import numpy as np
import pyarrow.parquet as parquet

FOLDER = sys.argv[1] if len(sys.argv) > 1 else "results/zoo/2-cores_2026-11"
README = sys.argv[2] if len(sys.argv) > 2 else "results/README.md"
RESOLUTION, FAR, LEVEL, CONTROL = 0.001, 0.05, 0.05, "rope"

def bits(text, count):
    return np.unpackbits(np.frombuffer(base64.b64decode(text + "==="), np.uint8), bitorder="little")[:count].astype(float)

def answers(outcomes):
    """One number for each question: right or wrong, or a loss between `low` and `high`."""
    if "exact_match" in outcomes:
        return bits(outcomes["exact_match"], outcomes["count"])
    codes = np.frombuffer(outcomes["coarse_nll"].encode(), np.uint8).astype(int)
    return outcomes["low"] + (codes - 35 - (codes > 92)) / 85 * (outcomes["high"] - outcomes["low"])

def two_sided(t, df):
    """P(|T| > |t|), with t = sqrt(df) tan(a), so that the density is cos(a)^(df - 1)."""
    df, angles = min(df, 1e5), lambda a: np.linspace(a, np.pi / 2, 5000)
    tail = lambda a: np.trapezoid(np.cos(angles(a)) ** (df - 1), angles(a))
    return tail(np.arctan(abs(t) / np.sqrt(df))) / tail(0.0)

def question_error(parts, shares):
    """Variance of a mean due to its questions and its degrees of freedom; parts[e][s, q] are answers."""
    variance = squares = 0.0
    for y in parts:
        n, m = y.shape
        if shares and np.all(y == y.flat[0]):
            wrong = 2 / (m + 4)
            part = wrong * (1 - wrong) / (m + 4)
        else:
            of_question, of_seed, grand = y.mean(0), y.mean(1), y.mean()
            rest = ((y - of_seed[:, None] - of_question + grand) ** 2).sum() / ((n - 1) * (m - 1))
            part = max(((of_question - grand) ** 2).sum() / (m - 1) / m - rest / (n * m), 0.0)
        part /= len(parts) ** 2
        variance, squares = variance + part, squares + part**2 / (m - 1)
    return variance, variance**2 / squares if squares > 0 else np.inf

def p_value(mean, std, n, error):
    """Of the t test over seeds, and over seeds and questions, whichever is larger."""
    seeds, (variance, df) = std**2 / n, error
    p = two_sided(mean / np.sqrt(seeds), n - 1) if seeds > 0 else float(mean == 0)
    total = seeds + variance
    weights = seeds**2 / (n - 1) + variance**2 / df
    return max(p, two_sided(mean / np.sqrt(total), total**2 / weights) if weights > 0 else 0.0)

def lottery(d):
    """Bound of p for seeds that solve a task or fail by luck: 2 P(Bin(2n, 1/2) >= n + surplus)."""
    n, least = len(d), 0.2 * np.abs(d).max()
    surplus = abs(int((d >= least).sum()) - int((-d >= least).sum())) if least > 0 else 0
    terms = np.cumprod([0.25**n] + [k / (2 * n - k + 1) for k in range(2 * n, n + surplus, -1)])
    return min(2 * terms.sum(), 1.0)

def holm(p):
    order, corrected = np.argsort(p, kind="stable"), np.ones(len(p))
    corrected[order] = np.maximum.accumulate(np.minimum(p[order] * (len(p) - np.arange(len(p))), 1.0))
    return corrected

records = [json.loads(text) for text in parquet.read_table(FOLDER + "/records.parquet")["record"].to_pylist()]
records = [r for r in records if r["grid"] and r["grid"].get("fresh") and r["status"]["state"] == "done"]
runs, flops, training, labels = {}, {}, {}, {}  # runs: workload -> region -> encoding -> seed -> [(value, chance, answers)]
for r in records:
    name, text = r["encoding"]["name"], r["task"]["headline"] == "perplexity"
    labels[name] = r["encoding"]["label"]
    flops.setdefault(r["workload"], {})[name] = step = r["flops"]["train_step"]
    training.setdefault(r["workload"], {}).setdefault(name, []).append(step * r["train"]["steps"])
    for e in sorted(r["evals"], key=lambda e: (e["split"], e["len"])):
        y, chance = answers(e["outcomes"]), e.get("chance", r["task"]["chance"])
        value, unseen = e["nll"] if text else e["exact_match"], e.get("unseen")
        if unseen:
            if len(y := y[bits(unseen["questions"]["marked"], e["samples"]) == 1]) == 0:
                continue  # training draws all of these questions
            value, chance = y.mean(), unseen.get("chance", chance)
        longer, same = e["len"] > r["train_len"], e["trained_split"]
        region = 3 if e["in_distribution"] else (0 if same else 2) if longer else 1
        of = runs.setdefault(r["workload"], {}).setdefault(region, {}).setdefault(name, {})
        of.setdefault(r["seed"], []).append((value, chance, y))

scores, firsts, better, worse, several = {}, {}, {}, {}, 0
for workload, regions in runs.items():
    deciding = regions[min(regions)]
    names, seeds = sorted(deciding), sorted(deciding[CONTROL])
    text = all(chance is None for _, chance, _ in deciding[CONTROL][seeds[0]])
    sign, n, above = -1.0 if text else 1.0, len(seeds), dict.fromkeys(names, True)
    values = {k: np.array([np.mean([v for v, _, _ in deciding[k][s]]) for s in seeds]) for k in names}
    parts = {k: [np.array(y) for y in zip(*[[y for _, _, y in deciding[k][s]] for s in seeds])] for k in names}
    if not text:
        chance = np.mean([c for _, c, _ in deciding[CONTROL][seeds[0]]])
        for k in names:
            error = question_error(parts[k], True)
            scores.setdefault(k, []).append(((values[k] - chance) / (1 - chance), error[0] / (1 - chance) ** 2))
            gap = values[k].mean() - chance
            above[k] = gap > 0 and p_value(gap, values[k].std(ddof=1), n, error) < LEVEL
    names.sort(key=lambda k: -sign * values[k].mean())
    pairs, p = [(a, b) for i, a in enumerate(names) for b in names[i + 1:]], []
    for a, b in pairs:
        d, spread = sign * (values[a] - values[b]), [x - y for x, y in zip(parts[a], parts[b])]
        std = max(d.std(ddof=1), RESOLUTION)
        p.append(max(p_value(d.mean(), std, n, question_error(spread, not text)), lottery(d)))
    separable = {pair: q <= LEVEL and above[pair[0]] for pair, q in zip(pairs, holm(np.array(p)))}
    rank, ranks = 0, {}
    while len(ranks) < len(names):
        leader, rank = next(k for k in names if k not in ranks), rank + 1
        group = [k for k in names if k not in ranks and not separable.get((leader, k), False)]
        ranks.update({k: (rank, abs(values[k].mean() - values[leader].mean()) <= FAR) for k in group})
    several += rank > 1
    for k in names:
        firsts[k] = firsts.get(k, 0) + (rank > 1 and ranks[k] == (1, True))
    contrasts = [i for i, pair in enumerate(pairs) if CONTROL in pair]
    for i, q in zip(contrasts, holm(np.array(p)[contrasts])):
        (a, b), won = pairs[i], q <= LEVEL and above[pairs[i][0]]
        better[a], worse[b] = better.get(a, 0) + won, worse.get(b, 0) + won

rng, lines = np.random.default_rng(0), {}
iqm = lambda x: np.sort(x)[len(x) // 4: len(x) - len(x) // 4].mean()
steps = {s["encoding"]: s["step_seconds"] for s in map(json.loads, open(FOLDER + "/speed.jsonl"))}
for k, of in scores.items():
    if len(of) == max(map(len, scores.values())):
        draw = lambda: np.concatenate([rng.choice(x, len(x)) + rng.normal(0, np.sqrt(v)) for x, v in of])
        half = np.std([iqm(draw()) for _ in range(4000)]) * 2.01 * np.sqrt(8 / 7)  # t(0.975, 49), eight seeds
        value = iqm(np.concatenate([x for x, _ in of]))
        ratio = np.median([f[k] / f[CONTROL] for f in flops.values() if k in f])
        whole = np.median([np.mean(f[k]) / np.mean(f[CONTROL]) for f in training.values() if k in f])
        time = np.median([np.mean(training[w][k]) / np.mean(training[w][CONTROL]) * f[CONTROL] / f[k] for w, f in flops.items() if k in f])
        against = "–" if k == CONTROL else f"{better.get(k, 0)} / {worse.get(k, 0)}"
        row = [f"{100 * value:.1f}%", str(firsts[k]), against, f"{ratio:.2f}", f"{whole:.2f}"] + [f"{x * steps[k] / steps[CONTROL]:.2f}" for x in (1, time)]
        lines[100 * value] = (k, row, (100 * (value - half), 100 * min(value + half, 1)))
table = [line for line in open(README) if re.match(r"\| .* \| -?[0-9.]+% \[", line)]
wrong = len(table) != len(lines)
for line, (_, (name, row, ends)) in zip(table, sorted(lines.items(), reverse=True)):
    cells = [cell.strip() for cell in line.strip("|\n ").split("|")]
    shown = [float(x) for x in re.findall(r"-?[0-9.]+", cells[1].split("[")[1])]
    same = cells[0].startswith(labels[name].split("{")[0]) and [cells[1].split(" [")[0], *cells[2:]] == row and np.allclose(shown, ends, atol=0.4)
    wrong |= not same
    print("same" if same else f"DIFFERS from {cells}", name, *row, "[%.1f, %.1f]" % ends)
print(f"{len(table)} rows, first rank of {several} workloads")
sys.exit(int(wrong))
