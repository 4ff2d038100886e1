#!/usr/bin/env python3
"""Times `pe-bench speed` and torch_step.py in turns and writes raw lines and a table.

Called by ci/peers.sh, which sets up PyTorch. Every round runs each command once, ours and theirs in
turns, so that a slow minute of the machine hits all of them; a figure is the median over the rounds of
medians over the steps.
"""
import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Our id, the peer's name for it, the peer's modes.
PAIRS = [
    ("nope", "nope", ["eager", "sdpa", "compile"]),
    ("rope", "rope", ["eager", "sdpa", "compile"]),
    ("alibi", "alibi", ["eager", "sdpa", "compile"]),
    ("t5-bias", "t5", ["eager", "sdpa", "compile"]),
    ("relative", "shaw", ["eager", "compile"]),
    ("fox", "fox", ["eager", "sdpa", "compile"]),
    ("cope", "cope", ["eager", "compile"]),
]

parser = argparse.ArgumentParser()
parser.add_argument("--bench", required=True, help="the pe-bench program")
parser.add_argument("--out", required=True, type=pathlib.Path, help="folder for lines.jsonl and table.md")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--steps", type=int, default=7)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--encodings", default=",".join(ours for ours, _, _ in PAIRS))
parser.add_argument("--ours-only", default="", help="more of our encodings, timed beside rope")
parser.add_argument("--modes", default="eager,sdpa,compile")
for name, default in [("batch", 16), ("len", 512), ("dim", 256), ("heads", 4), ("layers", 4), ("vocab", 64)]:
    parser.add_argument(f"--{name}", type=int, default=default)
o = parser.parse_args()
sizes = [word for name in ("batch", "len", "dim", "heads", "layers", "vocab", "steps", "threads")
         for word in (f"--{name}", str(getattr(o, name)))]
chosen = [name for name in o.encodings.split(",") if name]
unknown = set(chosen) - {ours for ours, _, _ in PAIRS}
if unknown:
    sys.exit(f"no peer for {sorted(unknown)}; known: {[ours for ours, _, _ in PAIRS]}")


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


jobs = []
for ours, theirs, modes in PAIRS:
    if ours in chosen:
        jobs.append((("pe-bench", ours, "fused"), [o.bench, "speed", "--json", "--encodings", ours, *sizes]))
        for mode in modes:
            if mode in o.modes.split(","):
                peer = [sys.executable, HERE / "torch_step.py", "--pe", theirs, "--mode", mode, *sizes]
                jobs.append((("torch", ours, mode), peer))
for ours in filter(None, o.ours_only.split(",")):
    jobs.append((("pe-bench", ours, "fused"), [o.bench, "speed", "--json", "--encodings", ours, *sizes]))

o.out.mkdir(parents=True, exist_ok=True)
found = {}
with open(o.out / "lines.jsonl", "w") as lines:
    for number in range(o.rounds):
        for key, command in jobs:
            line = run(command)
            found.setdefault(key, []).append(line)
            line = {"round": number, "program": key[0], **line}
            print(json.dumps(line), file=lines, flush=True)
            print(f"round {number + 1}: {' '.join(key)}: {line['step_seconds']:.3f} s", flush=True)

seconds = {key: statistics.median(line["step_seconds"] for line in lines) for key, lines in found.items()}
peak = {key: max(line["peak_bytes"] for line in lines) for key, lines in found.items()}
rope = seconds.get(("pe-bench", "rope", "fused"))
show = lambda value, digits: "–" if value is None else f"{value:.{digits}f}"
rows = []
for ours in dict.fromkeys(key[1] for key, _ in jobs):
    own = seconds[("pe-bench", ours, "fused")]
    peers = {mode: seconds.get(("torch", ours, mode)) for mode in ("eager", "sdpa", "compile")}
    best = min((s for s in peers.values() if s is not None), default=None)
    rows.append([
        ours, show(own, 3), show(own / rope if rope else None, 2),
        *(show(peers[mode], 3) for mode in ("eager", "sdpa", "compile")),
        show(best / own if best else None, 2),
        show(peak[("pe-bench", ours, "fused")] / 1e9, 2),
        show(min((peak[key] for key in peak if key[0] == "torch" and key[1] == ours), default=None) / 1e9
             if best else None, 2),
    ])
head = ["encoding", "ours s", "x our RoPE", "eager s", "sdpa s", "compile s", "torch's best / ours",
        "our peak GB", "torch's least peak GB"]
text = [
    f"# Training step against PyTorch, {datetime.date.today().isoformat()}", "",
    f"{o.layers} layers, width {o.dim}, {o.heads} heads, {o.len} tokens, batch {o.batch}, vocabulary {o.vocab}, "
    f"f32, {o.threads} threads; medians of {o.steps} steps, {o.rounds} rounds in turns.", "",
    f"{next((line['peer'] for key, lines in found.items() for line in lines if key[0] == 'torch'), 'no peer')}; "
    f"raw lines in lines.jsonl, written by ci/peers.sh.", "",
    "| " + " | ".join(head) + " |", "|" + " --- |" * len(head),
    *("| " + " | ".join(row) + " |" for row in rows), "",
]
(o.out / "table.md").write_text("\n".join(text))
print("\n".join(text))
