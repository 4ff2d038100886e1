#!/usr/bin/env python3
"""Assembles PTX, counts the instructions of each kernel, and compares them with budgets.

  python budgets.py TOOLS PTX_FOLDER BUDGETS.json [--write]

TOOLS has ptxas and nvdisasm. The counts of a kernel are static, of one warp: `tensor` and `instructions` of the outermost loop
with the most products (tensor instructions, or multiplications where there are none), which is the loop over blocks;
`registers`, `spilled` bytes, `local` accesses, `barriers`, and waits for tensor instructions that the assembler had to add
(`injected`) of the whole kernel. `tensor` must be equal, the others at most the budget. With --write the counts become the budgets. Exit status: 0, or 1 if a budget is exceeded or missing.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

if len(sys.argv) not in (4, 5) or sys.argv[4:] not in ([], ["--write"]):
    sys.exit(__doc__)
tools, folder, budgets_path = (pathlib.Path(path) for path in sys.argv[1:4])
LABEL = re.compile(r"\s*(\.L_x_\d+):")
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(.*?);")
TENSOR = ("HMMA", "HGMMA")
BACK = re.compile(r"BRA(?:\.\w+)*\s+.*`\((\.L_x_\d+)\)")


def name_of(instruction):
    return re.sub(r"^@!?U?P[T\d]+\s+", "", instruction).split()[0].split(".")[0]


def block_loop(code, labels):
    """Returns the instructions of the loop over blocks; those of the whole kernel if it has no loop with products."""
    spans = []
    for at, instruction in enumerate(code):
        target = BACK.search(instruction)
        start = labels.get(target.group(1)) if target else None
        if start is not None and start <= at:
            spans.append((start, at + 1))
    for products in (TENSOR, ("FFMA",)):
        counts = [sum(name_of(line) in products for line in code[start:end]) for start, end in spans]
        if any(counts):
            most = max(counts)
            rivals = [span for span, count in zip(spans, counts) if count == most]
            # Of loops around the same products the outermost; of a walk's parts the shortest, which has no masks.
            outermost = [(a, b) for a, b in rivals if not any(c <= a and b <= d and (a, b) != (c, d) for c, d in rivals)]
            start, end = min(outermost, key=lambda span: span[1] - span[0])
            return [name_of(line) for line in code[start:end]]
    return [name_of(line) for line in code]


def counts(ptx):
    with tempfile.TemporaryDirectory() as work:
        cubin = pathlib.Path(work) / "kernel.cubin"
        assembled = subprocess.run(
            [tools / "ptxas", "-arch=sm_90a", "-v", "-o", cubin, ptx], capture_output=True, text=True)
        if assembled.returncode:
            sys.exit(f"{ptx.name}: {assembled.stderr}")
        listing = subprocess.run([tools / "nvdisasm", "-c", cubin], capture_output=True, text=True, check=True).stdout
    code, labels = [], {}
    for line in listing.splitlines():
        if label := LABEL.match(line):
            labels[label.group(1)] = len(code)
        elif instruction := INSTRUCTION.search(line):
            code.append(instruction.group(1))
    names, loop = [name_of(line) for line in code], block_loop(code, labels)
    return ptx.stem, {
        "tensor": sum(name in TENSOR for name in loop),
        "instructions": len(loop),
        "registers": int(re.search(r"Used (\d+) registers", assembled.stderr).group(1)),
        "spilled": int(re.search(r"(\d+) bytes spill stores", assembled.stderr).group(1)),
        "local": names.count("LDL") + names.count("STL"),
        "barriers": names.count("BAR"),
        "injected": assembled.stderr.count("(C75"),
    }


kernels = sorted(folder.glob("*.ptx"))
if not kernels:
    sys.exit(f"{folder} has no PTX")
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    measured = dict(pool.map(counts, kernels))
if sys.argv[4:]:
    lines = (f"  {json.dumps(name)}: {json.dumps(measured[name])}" for name in sorted(measured))
    budgets_path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"budgets: {len(measured)} kernels written to {budgets_path}")
    sys.exit()
budgets, faults = json.loads(budgets_path.read_text()), []
for name in sorted(budgets.keys() | measured.keys()):
    if name not in measured or name not in budgets:
        faults.append(f"{name}: {'has no kernel' if name in budgets else 'has no budget'}; run ci/gpu-budgets.sh --write")
        continue
    for what, limit in budgets[name].items():
        count = measured[name][what]
        if count != limit if what == "tensor" else count > limit:
            faults.append(f"{name}: {what} {count}, budget {limit}")
print("\n".join(faults) if faults else f"budgets: {len(measured)} kernels are within their budgets")
sys.exit(bool(faults))
