"""Keys changed by every token on the way; Yang et al. 2025."""

import torch
from torch import nn
from torch.nn import functional as F

from .base import (
    Encoding,
    PerHead,
    between,
    by_head,
    causal_filter,
    choice,
    fields,
    normal,
    uniform,
    unit,
)


class PathLayer(nn.Module):
    def __init__(self, dims, rank, kernel, forget):
        super().__init__()
        self.down, self.up = normal(0.02, dims.width, rank), normal(0.02, rank, dims.width)
        self.kernel = uniform(kernel**-0.5, kernel, dims.width)
        self.strength = PerHead(dims, 0.0)
        self.forget = None if forget is None else PerHead(dims, forget)


class Path(Encoding):
    """q_i . H_i H_{i-1} ... H_{j+1} k_j / sqrt(D), H_t = I - beta_t w_t w_t^T,
    w_t = L2norm(SiLU(conv(W_up W_down x_t))), beta_t = 2 sigma(w_h . x_t + b_h); with forgetting
    + (sum over j < l <= i of ln f_l) / sqrt(D)."""

    id = "path"
    ignores_positions = reads_vectors = True
    changes_content = "replaced"
    without_score_mod = "a product of maps of all tokens in between lies between query and key"

    def __init__(self, dims, rank=32, kernel=3, forget={"type": "none"}):
        super().__init__(dims)
        is_gated = choice("forget.type", forget["type"], "none", "gate") == "gate"
        bias = fields(forget, bias=0.0)["bias"] if is_gated else None
        self.layers = nn.ModuleList(PathLayer(dims, rank, kernel, bias) for _ in range(dims.layers))

    def score_bias(self, q, k, layer):
        weights, x = self.layers[layer.index], layer.x
        w = F.silu(causal_filter(x @ weights.down @ weights.up, weights.kernel.mT))
        w = unit(by_head(w, self.dims.heads))
        beta = 2 * weights.strength(x).sigmoid()
        keys, rows = k, []
        before = torch.arange(q.shape[2], device=q.device)
        for t in range(q.shape[2]):  # token t changes all earlier keys
            along = (keys @ w[:, :, t, :, None]) * beta[:, :, t, None, None] * (before < t)[:, None]
            keys = keys - along * w[:, :, t, None]
            rows.append(keys @ q[:, :, t, :, None])
        bias = torch.cat(rows, -1).mT / layer.root - layer.content(q, k)
        if weights.forget is not None:
            bias = bias + between(F.logsigmoid(weights.forget(x))) / layer.root
        return bias
