"""Factors of queries that grow with their positions; Nakanishi 2025."""

import torch
from torch import nn

from .base import LINEAR, Encoding, choice, fields

DEFAULTS = {
    "ssmax": {"slope": 0.43},
    "log": {"slope": 0.0, "offset": 1.0},
    "llama4": {"scale": 0.1, "every": 8192},
    "ministral3": {"scale": 0.1, "every": 16384},
}


class Temperature(Encoding):
    """q_i times slope_h ln(i + 1) (`ssmax`), slope_h ln(i + 1) + offset_h (`log`),
    1 + scale ln(1 + floor((i + 1) / every)) (`llama4`) or 1 + scale ln(1 + floor(i / every))
    (`ministral3`)."""

    id = "temperature"
    turns = LINEAR

    def __init__(self, dims, growth={"type": "ssmax"}):
        super().__init__(dims)
        self.kind = choice("growth.type", growth["type"], *DEFAULTS)
        self.growth = fields(growth, **DEFAULTS[self.kind])
        sets = lambda name: nn.ParameterList(
            nn.Parameter(torch.full((dims.heads,), float(self.growth[name])))
            for _ in range(dims.layers if name in self.growth else 0)
        )
        self.slopes, self.offsets = sets("slope"), sets("offset")

    def factors(self, layer):
        """Factors [1 or H, T, 1] in f64."""
        at = layer.positions.double()
        if len(self.slopes):
            factors = self.slopes[layer.index].double()[:, None, None] * (at + 1).log()[:, None]
            return factors + self.offsets[layer.index][:, None, None] if len(self.offsets) else factors
        blocks = (at + (self.kind == "llama4")) // self.growth["every"]
        return 1 + self.growth["scale"] * (1 + blocks).log()[None, :, None]

    def transform(self, q, k, layer):
        return q * self.factors(layer).to(q), k
