"""Positions counted by gates that look at the content; Golovneva et al. 2024."""

import torch
from torch import nn
from torch.nn import functional as F

from .base import Encoding, by_head, choice, constant, of_layer, sets, sum_from, uniform


class Counted(Encoding):
    """p[i, j] = sum of sigma(q_i . k_m / sqrt(D)) for m in j..=i, and a bias z[i, j] from it."""

    without_score_mod = "the position of a key is a sum of gates over other keys of the row"
    ignores_positions = True
    layers = {"type": "all"}  # layers with the encoding

    def __init__(self, dims, convention):
        super().__init__(dims)
        self.convention = choice("convention", convention, "listing", "code", "equation")
        self.changes_content = "undivided" if convention == "equation" else None

    def slot(self, index):
        """Number of a layer among those with the encoding; None for others."""
        kind = choice("layers.type", self.layers["type"], "all", "first", "every")
        every = self.layers["n"] if kind == "every" else 1
        if (kind == "first" and index > 0) or (index + 1) % every:
            return None
        return (index + 1) // every - 1

    @property
    def slots(self):
        return sum(self.slot(index) is not None for index in range(self.dims.layers))

    def gate_keys(self, k, layer):
        return k

    def added(self, q, p, slot):
        """z[i, j] for positions p [B, H, T, T]."""
        raise NotImplementedError

    def score_bias(self, q, k, layer):
        slot = self.slot(layer.index)
        if slot is None:
            return 0.0
        scale = 1.0 if self.convention == "equation" else 1 / layer.root
        gates = (q @ self.gate_keys(k, layer).mT * scale).sigmoid().tril()
        z = self.added(q, sum_from(gates), slot)
        if self.convention == "equation":  # no division anywhere
            return z + q @ k.mT - layer.content(q, k)
        return z / layer.root if self.convention == "code" else z


class Cope(Counted):
    """z[i, j] = q_i . e[p], linear between e[floor p] and e[ceil p]."""

    id = "cope"
    reads_vectors = True

    def __init__(
        self,
        dims,
        max_positions=64,
        convention="listing",
        gates="query-key",
        sharing="per-layer",
        layers={"type": "all"},
    ):
        super().__init__(dims, convention)
        self.layers = layers
        self.gates = choice("gates", gates, "query-key", "query-value", "separate-keys")
        table = lambda: nn.Parameter(torch.zeros(dims.head_dim, max_positions))
        self.tables = nn.ParameterList(table() for _ in range(sets(sharing, self.slots)))
        key_weights = self.slots * (gates == "separate-keys")
        self.key_weights = nn.ParameterList(
            uniform(dims.width**-0.5, dims.width, dims.width) for _ in range(key_weights)
        )

    def gate_keys(self, k, layer):
        if self.gates == "separate-keys":
            return by_head(layer.x @ self.key_weights[self.slot(layer.index)], self.dims.heads)
        return layer.v if self.gates == "query-value" else k

    def added(self, q, p, slot):
        products = q @ of_layer(self.tables, slot)  # [B, H, T, N]
        p = p.clamp(max=products.shape[-1] - 1)
        below = p.floor()
        z_below, z_above = (products.gather(-1, entry.long()) for entry in (below, p.ceil()))
        return z_above * (p - below) + z_below * (1 - p + below)


class CopeAlibi(Counted):
    """z[i, j] = -slope_h p[i, j]."""

    id = "cope-alibi"

    def __init__(self, dims, slopes="from-1/4", sign="minus", convention="listing"):
        super().__init__(dims, convention)
        first = {"from-1": 0, "from-1/4": 2, "from-1/16": 4, "learned": None}
        first = first[choice("slopes", slopes, *first)]
        self.sign = -1 if choice("sign", sign, "minus", "plus") == "minus" else 1
        learned = dims.layers * (first is None)
        self.learned = nn.ParameterList(
            nn.Parameter(torch.zeros(dims.heads)) for _ in range(learned)
        )
        self.fixed = [2.0 ** -(first + h) for h in range(dims.heads)] if first is not None else None

    def added(self, q, p, slot):
        slopes = self.learned[slot] if self.fixed is None else constant(self.fixed, q)
        return self.sign * slopes[:, None, None] * p


class Network(nn.Module):
    def __init__(self, head_dim, width, last):
        super().__init__()
        sign = torch.randint(2, (width,)) * 2.0 - 1
        self.w1 = nn.Parameter(sign / last)
        # The kinks of the units are uniform over the range of positions.
        self.b1 = nn.Parameter(-sign * torch.rand(width))
        self.w2 = nn.Parameter(torch.zeros(head_dim, width))
        self.b2 = nn.Parameter(torch.zeros(head_dim))


class CopeMlp(Counted):
    """z[i, j] = q_i . (W2 act(W1 p + b1) + b2)."""

    id = "cope-mlp"
    reads_vectors = True

    def __init__(
        self,
        dims,
        width=64,
        max_positions=64,
        activation="relu",
        layers={"type": "all"},
        convention="listing",
    ):
        super().__init__(dims, convention)
        self.layers, self.last = layers, max_positions - 1
        self.activation = (
            F.relu if choice("activation", activation, "relu", "gelu") == "relu" else F.gelu
        )
        self.networks = nn.ModuleList(
            Network(dims.head_dim, width, self.last) for _ in range(self.slots)
        )

    def added(self, q, p, slot):
        network = self.networks[slot]
        hidden = self.activation(p.clamp(max=self.last)[..., None] * network.w1 + network.b1)
        return (
            torch.einsum("bhijw,bhiw->bhij", hidden.to(q), q @ network.w2)
            + (q @ network.b2)[..., None]
        )
