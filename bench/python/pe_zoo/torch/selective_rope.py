"""Rotations by angles that grow by steps computed from the tokens; Movahedi et al. 2025."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .base import (
    Encoding,
    by_head,
    causal_filter,
    choice,
    constant,
    fields,
    frequencies,
    rotate,
    uniform,
    unit,
    wide,
)


class Projection(nn.Module):
    def __init__(self, inputs, outputs, rank=None, has_offset=False):
        super().__init__()
        middle = rank or inputs
        self.down = uniform(inputs**-0.5, inputs, rank) if rank else None
        self.up = uniform(middle**-0.5, middle, outputs)
        self.offset = uniform(middle**-0.5, outputs) if has_offset else None

    def forward(self, x):
        x = (x if self.down is None else x @ self.down) @ self.up
        return x if self.offset is None else x + self.offset


class FullRank(nn.Module):
    """A matrix per head with columns of length 1, times a learned number."""

    def __init__(self, dims):
        super().__init__()
        self.weight = uniform(
            math.sqrt(12 / dims.head_dim), dims.heads, dims.head_dim, dims.head_dim // 2
        )
        self.multiplier = nn.Parameter(torch.ones(dims.heads))

    def forward(self, slices):
        return slices @ (F.normalize(self.weight, dim=1) * self.multiplier[:, None, None])


class Phases(nn.Module):
    """Steps of the angles, [B, H, T, D/2], from the input of one layer."""

    def __init__(self, dims, map, filter, bias, gate):
        super().__init__()
        width, heads, pairs = dims.width, dims.heads, dims.head_dim // 2
        self.heads = heads
        self.is_full_rank = choice("map.kind", map["kind"], "low-rank", "full-rank") == "full-rank"
        low_rank = lambda: Projection(width, heads * pairs, map["rank"])
        self.map = FullRank(dims) if self.is_full_rank else low_rank()
        self.taps, self.is_silu = None, False
        if choice("filter.kind", filter["kind"], "convolution", "difference") == "convolution":
            filter = fields(filter, "kind", kernel=4, activation="none")
            self.taps = uniform(filter["kernel"] ** -0.5, heads * pairs, filter["kernel"])
            self.is_silu = filter["activation"] == "silu"
            choice("filter.activation", filter["activation"], "none", "silu")
        self.bias = nn.Parameter(torch.zeros(heads, pairs)) if bias else None
        gates = {
            "none": 0,
            "per-head": heads,
            "per-head-low-rank": heads,
            "per-channel": heads * pairs,
        }
        kind = choice("gate.kind", gate["kind"], *gates)
        rank = None if kind == "per-head" else gate.get("rank", 16)
        self.gate = Projection(width, gates[kind], rank, has_offset=True) if gates[kind] else None

    def forward(self, x):
        slices = unit(by_head(x, self.heads))
        normed = slices.transpose(1, 2).flatten(2)
        if self.is_full_rank:
            steps = self.map(slices).transpose(1, 2).flatten(2)
        else:
            steps = self.map(normed)
        taps = self.taps
        if taps is None:
            taps = constant([[-1.0, 1.0]], steps).expand(steps.shape[-1], 2)
        steps = by_head(causal_filter(steps, taps), self.heads)
        if self.is_silu:
            steps = F.silu(steps)
        if self.bias is not None:
            steps = steps + self.bias.exp()[:, None]
        if self.gate is not None:
            steps = steps * by_head(self.gate(normed), self.heads).sigmoid()
        return steps


class SelectiveRope(Encoding):
    """Pair (m, m + D/2) is turned by tau_m times the running sum of the steps of the tokens."""

    id = "selective-rope"
    ignores_positions = True

    def __init__(
        self,
        dims,
        map={"kind": "low-rank", "rank": 32},
        filter={"kind": "convolution"},
        bias=False,
        gate={"kind": "none"},
        temperature={"kind": "rope"},
    ):
        super().__init__(dims)
        self.turns = ("half-split", dims.head_dim)
        self.layers = nn.ModuleList(
            Phases(dims, map, filter, bias, gate) for _ in range(dims.layers)
        )
        if choice("temperature.kind", temperature["kind"], "rope", "rfa") == "rope":
            temperature = fields(temperature, "kind", base=500000.0, largest=1.0)
            relative = frequencies(temperature["base"], dims.head_dim)
        else:
            temperature = fields(temperature, "kind", theta=None, largest=1.0)
            pairs, half = dims.head_dim // 2, temperature["theta"] * math.pi / 2
            last = max(pairs - 1, 1)
            relative = [math.tan(half * m / last) / math.tan(half) for m in range(pairs)]
        self.temperatures = [temperature["largest"] * t for t in relative]

    def transform(self, q, k, layer):
        steps = wide(self.layers[layer.index](layer.x))
        angle = steps.cumsum(2) * constant(self.temperatures, steps)
        return rotate(q, angle.cos(), angle.sin()), rotate(k, angle.cos(), angle.sin())
