#!/usr/bin/env python3
"""Measures the peak rates of a device: products of large matrices and copies of large arrays.

The rates are the ceilings of a roofline model. Prints one JSON line: operations per second of products in
bf16, tf32 and f32, and bytes per second of a copy (bytes read plus bytes written); the best of several repeats.

  python ceilings.py --device cuda
"""
import argparse
import json
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
parser.add_argument("--size", type=int, default=8192, help="rows and columns of the factors")
parser.add_argument("--megabytes", type=int, default=2048, help="size of the copied array")
parser.add_argument("--repeats", type=int, default=10)
o = parser.parse_args()


def fastest(work):
    """Returns the seconds of the fastest call."""
    best = float("inf")
    for _ in range(o.repeats + 2):
        if o.device != "cpu":
            torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        if o.device != "cpu":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best


def product(dtype, tf32=False):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    a, b = (torch.randn(o.size, o.size, device=o.device, dtype=dtype) for _ in range(2))
    return 2 * o.size**3 / fastest(lambda: a @ b)


source = torch.zeros(o.megabytes << 20, dtype=torch.uint8, device=o.device)
target = torch.empty_like(source)
print(json.dumps({
    "peer": f"torch-{torch.__version__}", "device": o.device, "size": o.size, "megabytes": o.megabytes,
    "bf16_operations_per_second": product(torch.bfloat16),
    "tf32_operations_per_second": product(torch.float32, tf32=True),
    "f32_operations_per_second": product(torch.float32),
    "copied_bytes_per_second": 2 * source.numel() / fastest(lambda: target.copy_(source)),
}))
