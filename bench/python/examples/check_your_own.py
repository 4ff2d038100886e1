"""Checks an implementation with `pe-bench vectors`: PE_BENCH=pe-bench pytest check_your_own.py

Replace `attention` by your own; here it is ALiBi.
"""

import json
import os
import subprocess

import torch


def attention(q, k, v, x, parameters, layer):
    """Output [H, T, D] of a layer, from queries, keys and values [H, T, D] and input x [T, C]."""
    heads, tokens, channels = q.shape
    slopes = torch.tensor([2**-4, 2**-8, 2**-2]).double()  # three heads
    distance = torch.arange(tokens)[:, None] - torch.arange(tokens)
    logits = q @ k.mT / channels**0.5 - slopes[:, None, None] * distance
    return logits.masked_fill(distance < 0, -torch.inf).softmax(-1) @ v


def test_outputs_and_gradients(encoding="alibi"):
    found = json.loads(
        subprocess.check_output([os.environ["PE_BENCH"], "vectors", encoding, "--json"])
    )
    q, k, v, x = (torch.tensor(found[name]).double().requires_grad_() for name in "qkvx")
    parameters = {
        p["name"]: torch.tensor(p["values"]).double().view(p["shape"]) for p in found["parameters"]
    }
    loss = 0
    for index, layer in enumerate(found["layers"]):
        output = attention(q, k, v, x, parameters, index)
        torch.testing.assert_close(output, torch.tensor(layer["output"]).double())
        loss = loss + output.flatten() @ torch.tensor(found["output_weights"]).double()
    gradients = torch.autograd.grad(loss, [q, k, v])
    for gradient, name in zip(gradients, "qkv"):
        torch.testing.assert_close(
            gradient, torch.tensor(found["gradients"][name]).double(), rtol=1e-6, atol=1e-7
        )
