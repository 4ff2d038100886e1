#!/usr/bin/env python3
"""Prints a table of the attention records of gpu.sh: times, ratios, and the share of the device's peak rates.

  python gpu_table.py DIR/records > table.md

The time is that of the forward and backward pass of one layer's attention. "of rope": the time divided by
pe-zoo's time for rope at the same size. "of sdpa": pe-zoo's time divided by that of PyTorch's fused attention
for rope. "faster than" and the columns after it: PyTorch's time in a mode of torch_step.py divided by pe-zoo's. The
lower bound of the time is the longer of two times: the products of causal attention (2 forward, 5 backward, half a
square each) at the rate that the device reaches for large matrices of that type, and one read and write of queries,
keys, values, outputs and their gradients at the rate of a copy.
"""
import json
import pathlib
import sys

records = pathlib.Path(sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__))


def measured(path):
    record = json.loads(path.read_text())
    return record["measured"] if record["status"] == "done" else None


ours, theirs = {}, {}
for path in sorted((records / "attention").glob("*.json")):
    row = measured(path)
    if row is None:
        continue
    dtype = row.get("dtype") or row.get("precision", "f32")
    size = (dtype, row["dim"] // row["heads"], row["len"])
    peer = {"t5": "t5-bias", "shaw": "relative"}.get(row["encoding"], row["encoding"])
    if "peer" in row:
        theirs[(*size, peer, row["mode"])] = row
    else:
        ours[(*size, row["encoding"])] = row
if not ours:
    sys.exit(f"no finished record of ours under {records}/attention")
ceilings = measured(records / "ceilings.json") if (records / "ceilings.json").exists() else None


def floor_seconds(row, dtype):
    if ceilings is None:
        return None
    products = 7 * row["batch"] * row["heads"] * row["len"] ** 2 * (row["dim"] // row["heads"])
    numbers = 8 * row["batch"] * row["len"] * row["dim"] * (2 if dtype == "bf16" else 4)
    rate = ceilings[f"{dtype}_operations_per_second"]
    return max(products / rate, numbers / ceilings["copied_bytes_per_second"])


def ratio(a, b):
    return f"{a / b:.2f}" if a is not None and b is not None else "-"


print("| type | heads of | length | encoding | ms | MiB | of rope | of sdpa | faster than eager | compile | flex | sdpa-compile | floor/time |")
print("|---|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
for (dtype, width, length, encoding), row in sorted(ours.items()):
    size = (dtype, width, length)
    seconds = row["step_seconds"]

    def their(mode, name=encoding):
        found = theirs.get((*size, name, mode))
        return found and found["step_seconds"]

    rope = ours.get((*size, "rope"))
    memory = row.get("device_bytes")
    print("|", " | ".join([
        dtype, str(width), str(length), encoding, f"{1e3 * seconds:.3f}",
        f"{memory / 2**20:.0f}" if memory else "-",
        ratio(seconds, rope and rope["step_seconds"]), ratio(seconds, their("sdpa", "rope")),
        ratio(their("eager"), seconds), ratio(their("compile"), seconds), ratio(their("flex"), seconds),
        ratio(their("sdpa-compile"), seconds), ratio(floor_seconds(row, dtype), seconds),
    ]), "|")
