"""Gates that forget what came before; Lin et al. 2025."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .base import (
    Encoding,
    PerHead,
    between,
    by_head,
    choice,
    constant,
    fields,
    normal,
    sum_from,
    uniform,
    wide,
)


class PerRow(nn.Module):
    """Logarithms of gates of pairs, [B, H, T, T]."""

    def __init__(self, dims, dim):
        super().__init__()
        draw = lambda: uniform(dims.width**-0.5, dims.width, dims.heads * dim)
        self.rows = nn.ParameterList(draw() for _ in range(dims.layers))
        self.keys = nn.ParameterList(draw() for _ in range(dims.layers))
        self.heads = dims.heads

    def forward(self, x, index):
        rows, keys = (by_head(x @ maps[index], self.heads) for maps in (self.rows, self.keys))
        return F.logsigmoid(rows @ keys.mT / math.sqrt(rows.shape[-1]))


class Fox(Encoding):
    """sum over j < l <= i of ln f_l, f_t = sigma(w_h . x_t + b_h). Gates `per-row` are those of
    pairs, f_il = sigma((A_h x_i) . (B_h x_l) / sqrt(dim)), summed over j <= l < i."""

    id = "fox"

    ignores_positions = True

    def __init__(self, dims, gates={"type": "full"}):
        super().__init__(dims)
        self.kind = choice("gates.type", gates["type"], "full", "per-row", "bias-only", "fixed")
        layers = range(dims.layers)
        if self.kind == "full":
            bias = fields(gates, bias=5.0)["bias"]
            self.gates = nn.ModuleList(PerHead(dims, bias) for _ in layers)
        elif self.kind == "per-row":
            self.without_score_mod = "the gate of each token in between depends on the query"
            self.gates = PerRow(dims, fields(gates, dim=8)["dim"])
        else:
            taus = fields(gates, tau_min=2.0, tau_max=128.0)
            least, ratio = taus["tau_min"], taus["tau_max"] / taus["tau_min"]
            steps = max(dims.heads - 1, 1)
            self.fixed = [-1 / (least * ratio ** (h / steps)) for h in range(dims.heads)]
            if self.kind == "bias-only":
                # ln f = -1 / tau if b = -ln(e^(1 / tau) - 1)
                start = -torch.tensor(self.fixed).neg().expm1().log()
                self.gates = nn.ParameterList(nn.Parameter(start.clone()) for _ in layers)

    def log_forget(self, layer):
        """ln f of each token, [B or 1, H, T]."""
        if self.kind == "full":
            return F.logsigmoid(self.gates[layer.index](layer.x))
        if self.kind == "fixed":
            values = constant(self.fixed, layer.x)
        else:
            values = F.logsigmoid(self.gates[layer.index])
        return values[None, :, None].expand(1, -1, layer.x.shape[1])

    def score_bias(self, q, k, layer):
        if self.kind == "per-row":
            return sum_from(self.gates(layer.x, layer.index).tril(-1))
        return between(self.log_forget(layer))

    def score_term(self, q, k, layer):
        total = wide(self.log_forget(layer)).cumsum(-1).expand(layer.x.shape[0], -1, -1)
        return lambda score, b, h, i, j: total[b, h, i] - total[b, h, j]


class ChannelGates(nn.Module):
    """Logarithms of the gates of the channels, [B, H, T, D], from the input of one layer."""

    def __init__(self, dims, bias):
        super().__init__()
        self.heads = dims.heads
        self.weight = normal(0.02, dims.width, dims.width)
        self.bias = nn.Parameter(torch.full((dims.width,), float(bias)))

    def forward(self, x):
        return F.logsigmoid(by_head(wide(x @ self.weight + self.bias), self.heads))


class Wall(Encoding):
    """(sum over c of q_ic k_jc exp(sum over j < l <= i of ln f_lc)) / sqrt(D), f = sigma(W x + b);
    Averbuch and Pai 2026."""

    id = "wall"
    ignores_positions = True
    changes_content = "replaced"
    without_score_mod = "the channels of the products decay"

    def __init__(self, dims, bias=8.0):
        super().__init__(dims)
        self.layers = nn.ModuleList(ChannelGates(dims, bias) for _ in range(dims.layers))

    def score_bias(self, q, k, layer):
        sums = self.layers[layer.index](layer.x).cumsum(2)
        # Later keys, which no query sees, would grow.
        decay = (sums[:, :, :, None] - sums[:, :, None]).clamp(max=0).exp()
        products = torch.einsum("bhic,bhjc,bhijc->bhij", wide(q), wide(k), decay)
        return products / layer.root - layer.content(q, k)
