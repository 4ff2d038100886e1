"""GRAPE in four variants; Zhang et al. 2025."""

import torch
from torch import nn
from torch.nn import functional as F

from .base import (
    Encoding,
    angles,
    by_head,
    choice,
    constant,
    frequencies,
    normal,
    rms,
    rotate,
    slopes,
    sum_from,
    wide,
)


class Grape(Encoding):
    """One of the variants below: a new module gets the class of its variant."""

    id = "grape"

    def __init__(self, dims, variant={"type": "path"}):
        settings = dict(variant)
        variants = {
            "multiplicative": Multiplicative,
            "contextual": Contextual,
            "additive": Additive,
            "path": Path,
        }
        self.__class__ = variants[choice("variant.type", settings.pop("type"), *variants)]
        self.__init__(dims, **settings)


class Norms(nn.Module):
    """Learned RMS normalisation of queries and keys; none without parameters."""

    def __init__(self, dims, qk_norm):
        super().__init__()
        count = dims.layers * (choice("qk_norm", qk_norm, "none", "rms") == "rms")
        ones = lambda: nn.ParameterList(
            nn.Parameter(torch.ones(dims.head_dim)) for _ in range(count)
        )
        self.q, self.k = ones(), ones()

    def forward(self, q, k, index):
        if not len(self.q):
            return q, k
        return rms(q, 1e-5) * self.q[index], rms(k, 1e-5) * self.k[index]


def logs(base, head_dim):
    return torch.tensor(frequencies(base, head_dim)).log()


class Multiplicative(Grape):
    """Plane (m, m + D/2) is turned by -n exp(stored_m / storage)."""

    def __init__(self, dims, base=1e4, spectrum="all-heads", storage=16.0, qk_norm="none"):
        Encoding.__init__(self, dims)
        self.storage = storage
        self.turns = ("half-split", dims.head_dim) if qk_norm == "none" else None
        is_shared = choice("spectrum", spectrum, "all-heads", "per-head") == "all-heads"
        start = logs(base, dims.head_dim).repeat(1 if is_shared else dims.heads, 1) * storage
        self.stored = nn.ParameterList(nn.Parameter(start.clone()) for _ in range(dims.layers))
        self.norms = Norms(dims, qk_norm)

    def transform(self, q, k, layer):
        turns = (self.stored[layer.index] / self.storage).exp()  # [1 or H, D/2]
        angle = -wide(turns)[:, None] * layer.positions[:, None]
        return self.norms(*(rotate(u, angle.cos(), angle.sin()) for u in (q, k)), layer.index)


class Contextual(Grape):
    """Plane (m, m + D/2) is turned by -exp(stored_m) times the sum of sigma((W x + b) / 16) over
    the earlier tokens."""

    ignores_positions = True

    def __init__(self, dims, base=1e4, phase="all-heads", qk_norm="rms"):
        Encoding.__init__(self, dims)
        self.turns = ("half-split", dims.head_dim) if qk_norm == "none" else None
        is_shared = choice("phase", phase, "all-heads", "per-head") == "all-heads"
        steps = 1 if is_shared else dims.heads
        each = lambda start: nn.ParameterList(
            nn.Parameter(start.clone()) for _ in range(dims.layers)
        )
        self.stored = each(logs(base, dims.head_dim))
        self.weight = each(torch.zeros(dims.width, steps))
        self.bias = each(torch.full((steps,), -6.907255))
        self.norms = Norms(dims, qk_norm)

    def transform(self, q, k, layer):
        n = layer.index
        omega = ((layer.x @ self.weight[n] + self.bias[n]) / 16).sigmoid().mT  # [B, 1 or H, T]
        phase = wide(omega).cumsum(-1) - omega
        angle = -phase[..., None] * self.stored[n].exp()
        return self.norms(*(rotate(u, angle.cos(), angle.sin()) for u in (q, k)), n)


class Additive(Grape):
    """-(i - j) softplus(w_h) slope_h (g_j + g'_i), g_j = softplus(u_h . k_j / (|u_h| sqrt(D))),
    g'_i = softplus(v_h . q_i / (|v_h| sqrt(D)))."""

    reads_vectors = True

    def __init__(self, dims, gate="key", qk_norm="none"):
        Encoding.__init__(self, dims)
        choice("gate", gate, "key", "query", "both")
        self.turns = () if qk_norm == "none" else None
        self.slopes = slopes(dims.heads)
        self.omega = nn.ParameterList(
            nn.Parameter(torch.full((dims.heads,), 0.54132485)) for _ in range(dims.layers)
        )
        directions = lambda count: nn.ParameterList(
            normal(dims.head_dim**-0.5, dims.heads, dims.head_dim) for _ in range(count)
        )
        self.key = directions(dims.layers * (gate != "query"))
        self.query = directions(dims.layers * (gate != "key"))
        self.norms = Norms(dims, qk_norm)

    def transform(self, q, k, layer):
        return self.norms(q, k, layer.index)

    def prices(self, q, k, layer):
        """Rate per head, and prices of the queries and of the keys, [B, H, T]."""

        def price(u, directions):
            if not len(directions):
                return u.new_zeros(u.shape[:-1])
            direction = F.normalize(directions[layer.index], dim=1, eps=1e-6)
            return F.softplus((u * direction[:, None]).sum(-1) / layer.root)

        rate = F.softplus(self.omega[layer.index]) * constant(self.slopes, q)
        return rate, price(q, self.query), price(k, self.key)

    def score_bias(self, q, k, layer):
        rate, of_query, of_key = self.prices(q, k, layer)
        gates = of_query[..., :, None] + of_key[..., None, :]
        return -layer.float_distances * rate[:, None, None] * gates

    def score_term(self, q, k, layer):
        (rate, of_query, of_key), at = self.prices(q, k, layer), layer.positions
        return lambda score, b, h, i, j: (
            -(at[i] - at[j]) * rate[h] * (of_query[b, h, i] + of_key[b, h, j])
        )


class Path(Grape):
    """slope_h times the sum over l in j+1..=i of ln sigma(p_i . R_l rms(p_l) / d), p = W x."""

    without_score_mod = (
        "the bias of a pair is a sum over the tokens in between, each with a price set by the query"
    )

    def __init__(self, dims, dim=8, qk_norm="rms"):
        Encoding.__init__(self, dims)
        self.turns = () if qk_norm == "none" else None
        self.slopes = slopes(dims.heads)
        draw = lambda: normal(0.5 * dims.width**-0.5, dims.width, dims.heads * dim)
        self.projection = nn.ParameterList(draw() for _ in range(dims.layers))
        self.norms = Norms(dims, qk_norm)

    def transform(self, q, k, layer):
        return self.norms(q, k, layer.index)

    def score_bias(self, q, k, layer):
        p = by_head(layer.x @ self.projection[layer.index], len(self.slopes))
        pairs = p.shape[-1] // 2
        angle = angles(-layer.positions, [1.0] * pairs)
        turned = rotate(rms(p, torch.finfo(torch.float32).eps), angle.cos(), angle.sin())
        prices = F.logsigmoid(p @ turned.mT / p.shape[-1]).tril()
        return constant(self.slopes, q)[:, None, None] * (sum_from(prices) - prices)
