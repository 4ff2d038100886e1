#!/usr/bin/env python3
"""Times SmolLM2 in pe-bench and in llama.cpp in turns, both with f32 weights, and prints one JSON line per run.

  python llama_cpp.py --bench pe-bench --weights f32.gguf [--llama-bench llama-bench] [--prefill 2048] [--decode 64]
      [--threads 2] [--rounds 3]

llama-bench is part of llama.cpp (Debian: package llama.cpp-tools). The weights are those that `pe-bench data fetch
smollm2` prints the path of, widened by `llama-quantize --allow-requantize smollm2.gguf f32.gguf F32`. The cache of
llama.cpp holds f16 unless --llama-bench contains other options. Each of the programs may be a command with arguments.
"""
import argparse
import json
import shlex
import subprocess
import sys

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--bench", required=True)
parser.add_argument("--before", help="an older pe-bench program to time alongside --bench")
parser.add_argument("--llama-bench", default="llama-bench")
parser.add_argument("--weights", required=True, help="path of the .gguf file with f32 weights")
for name, default in [("prefill", 2048), ("decode", 64), ("threads", 2), ("rounds", 3)]:
    parser.add_argument(f"--{name}", type=int, default=default)
o = parser.parse_args()


def lines(command, options):
    done = subprocess.run(shlex.split(command) + [str(option) for option in options], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command} failed:\n{done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def show(round, program, prefill, decode):
    rates = {"prefill_tokens_per_second": prefill, "decode_tokens_per_second": decode}
    sizes = {"prefill_tokens": o.prefill, "decoded_tokens": o.decode, "threads": o.threads}
    print(json.dumps({"round": round, "program": program, **sizes, **rates}), flush=True)


for round in range(1, o.rounds + 1):
    for name, bench in [("pe-bench", o.bench), ("before", o.before)]:
        if bench:
            sizes = ["--prefill", o.prefill, "--decode", o.decode, "--threads", o.threads]
            [line] = lines(bench, ["generate", "smollm2", "--speed", "--rounds", 1, *sizes])
            show(round, name, line["prefill_tokens_per_second"], line["decode_tokens_per_second"])
    both = ["-m", o.weights, "-t", o.threads, "-r", 1, "-o", "jsonl"]
    [prefill] = lines(o.llama_bench, [*both, "-p", o.prefill, "-n", 0])
    [decode] = lines(o.llama_bench, [*both, "-p", 0, "-n", o.decode, "-d", o.prefill])
    show(round, f"llama.cpp {prefill['build_commit']}", prefill["avg_ts"], decode["avg_ts"])
