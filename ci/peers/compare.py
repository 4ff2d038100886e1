#!/usr/bin/env python3
"""Times `pe-bench speed` and torch_step.py alternately and writes the raw lines and a table.

Called by ci/peers.sh, which installs PyTorch. Every round runs each command of both programs once, so that a
slow minute of the machine affects all of them. Each number is the median over rounds of the medians over steps.
"""
import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Id in pe-zoo, name in torch_step.py, modes of torch_step.py.
PAIRS = [
    ("nope", "nope", ["eager", "sdpa", "compile", "sdpa-compile"]),
    ("rope", "rope", ["eager", "sdpa", "compile", "sdpa-compile"]),
    ("alibi", "alibi", ["eager", "sdpa", "compile", "sdpa-compile"]),
    ("t5-bias", "t5", ["eager", "sdpa", "compile", "sdpa-compile"]),
    ("relative", "shaw", ["eager", "compile"]),
    ("fox", "fox", ["eager", "sdpa", "compile", "sdpa-compile"]),
    ("cope", "cope", ["eager", "compile"]),
]
MODES = ["eager", "sdpa", "compile", "sdpa-compile"]

parser = argparse.ArgumentParser()
parser.add_argument("--bench", required=True, help="the pe-bench program")
parser.add_argument("--before", help="an older pe-bench program to time alongside --bench")
parser.add_argument("--attention", action="store_true", help="time one attention layer, forward and backward, instead of the model")
parser.add_argument("--out", required=True, type=pathlib.Path, help="folder for lines.jsonl and table.md")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--steps", type=int, default=7)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--encodings", default=",".join(ours for ours, _, _ in PAIRS))
parser.add_argument("--ours-only", default="", help="encodings of pe-bench without a peer, timed alongside rope")
parser.add_argument("--modes", default=",".join(MODES))
parser.add_argument("--append", action="store_true", help="keep the lines of earlier runs; the table shows all lines")
for name, default in [("batch", 16), ("len", 512), ("dim", 256), ("heads", 4), ("layers", 4), ("vocab", 64)]:
    parser.add_argument(f"--{name}", type=int, default=default)
o = parser.parse_args()
sizes = [word for name in ("batch", "len", "dim", "heads", "layers", "vocab", "steps", "threads")
         for word in (f"--{name}", str(getattr(o, name)))] + ["--attention"] * o.attention
chosen = [name for name in o.encodings.split(",") if name]
unknown = set(chosen) - {ours for ours, _, _ in PAIRS}
if unknown:
    sys.exit(f"--encodings: no peer for {', '.join(sorted(unknown))}; known: {', '.join(ours for ours, _, _ in PAIRS)}")
unknown = set(filter(None, o.modes.split(","))) - set(MODES)
if unknown:
    sys.exit(f"--modes: unknown {', '.join(sorted(unknown))}; known: {', '.join(MODES)}")


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def own_jobs(ours):
    programs = [("pe-bench", o.bench), ("before", o.before)]
    return [((name, ours, "fused"), [path, "speed", "--json", "--encodings", ours, *sizes]) for name, path in programs if path]


jobs = []
for ours, theirs, modes in PAIRS:
    if ours in chosen:
        jobs.extend(own_jobs(ours))
        for mode in modes:
            if mode in o.modes.split(","):
                peer = [sys.executable, HERE / "torch_step.py", "--pe", theirs, "--mode", mode, *sizes]
                jobs.append((("torch", ours, mode), peer))
for ours in filter(None, o.ours_only.split(",")):
    jobs.extend(own_jobs(ours))

o.out.mkdir(parents=True, exist_ok=True)
path = o.out / "lines.jsonl"
before = [json.loads(line) for line in path.read_text().splitlines()] if o.append and path.exists() else []
start = 1 + max((line["round"] for line in before), default=0)
mode_of = lambda line: "fused" if line["program"] != "torch" else line["mode"]
name_of = {theirs: ours for ours, theirs, _ in PAIRS}
found = {}


def add(line):
    name = line["encoding"] if line["program"] != "torch" else name_of[line["encoding"]]
    found.setdefault((line["program"], name, mode_of(line)), []).append(line)


for line in before:
    add(line)
with open(path, "a" if o.append else "w") as lines:
    for number in range(start, start + o.rounds):
        for key, command in jobs:
            line = {"round": number, "program": key[0], **run(command)}
            add(line)
            print(json.dumps(line), file=lines, flush=True)
            print(f"round {number}: {' '.join(key)}: {line['step_seconds']:.3f} s", flush=True)


# Medians over rounds by program, encoding and mode.
seconds = {key: statistics.median(line["step_seconds"] for line in lines) for key, lines in found.items()}
peak = {key: max(line["peak_bytes"] for line in lines) for key, lines in found.items()}


def ratio(ours, key):
    """Median ratio, PyTorch over pe-zoo, over the rounds that have both; None if there is none."""
    own = {line["round"]: line["step_seconds"] for line in found[("pe-bench", ours, "fused")]}
    both = [line["step_seconds"] / own[line["round"]] for line in found.get(key, []) if line["round"] in own]
    return statistics.median(both) if both else None


show = lambda value, digits: "–" if value is None else f"{value:.{digits}f}"
older = any(program == "before" for program, _, _ in found)
rows = []
for ours in dict.fromkeys(key[1] for key in found):
    to_rope = ratio(ours, ("pe-bench", "rope", "fused"))
    peers = [ratio(ours, ("torch", ours, mode)) for mode in MODES]
    least = min((peak[key] for key in peak if key[:2] == ("torch", ours)), default=None)
    rows.append([
        ours, show(seconds[("pe-bench", ours, "fused")], 3),
        *([show(seconds.get(("before", ours, "fused")), 3)] if older else []), show(to_rope and 1 / to_rope, 2),
        *(show(seconds.get(("torch", ours, mode)), 3) for mode in MODES),
        *(show(peer, 2) for peer in peers),
        show(peak[("pe-bench", ours, "fused")] / 1e9, 2), show(least and least / 1e9, 2),
    ])
head = ["encoding", "ours s", *(["before s"] if older else []), "x our RoPE",
        *(f"{mode} s" for mode in MODES), *(f"{mode} / ours" for mode in MODES), "our peak GB", "torch's least peak GB"]
what = "One attention layer, forward and backward," if o.attention else "Training step"
size = f"width {o.dim}, {o.heads} heads, {o.len} tokens, batch {o.batch}"
text = [
    f"# {what} against PyTorch, {datetime.date.today().isoformat()}", "",
    f"{size if o.attention else f'{o.layers} layers, {size}, vocabulary {o.vocab}'}, "
    f"f32, {o.threads} threads; medians of {o.steps} steps, then over rounds; ratios are within rounds.", "",
    f"{next((line['peer'] for key, lines in found.items() for line in lines if key[0] == 'torch'), 'no peer')}; "
    f"raw lines in lines.jsonl, written by ci/peers.sh.", "",
    "| " + " | ".join(head) + " |", "|" + " --- |" * len(head),
    *("| " + " | ".join(row) + " |" for row in rows), "",
]
(o.out / "table.md").write_text("\n".join(text))
print("\n".join(text))
