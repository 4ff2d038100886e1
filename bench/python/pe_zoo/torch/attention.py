"""Causal attention that applies an encoding."""

from __future__ import annotations

import dataclasses
import math

import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask
from torch.nn.attention.flex_attention import flex_attention as eager_flex_attention

from .base import Layer, by_head, overrides
from .combination import encoding as build


@dataclasses.dataclass
class Attended:
    """Results of the attention of one layer."""

    output: torch.Tensor  # weights times values, [B, H, T, D]
    logits: torch.Tensor  # before the softmax, -inf for later keys, [B, H, T, T]
    weights: torch.Tensor  # [B, H, T, T]
    state: torch.Tensor | None  # for the feed-forward block and the next layer


def attend(encoding, q, k, layer):
    """Plain attention of queries and keys [B, H, T, D] over the values of the layer."""
    layer.state = encoding.state(layer)
    q, k = encoding.transform(q, k, layer)
    logits = layer.content(q, k) + encoding.score_bias(q, k, layer)
    future = torch.ones(logits.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    logits = logits.masked_fill(future, -math.inf)
    weights = encoding.weights(logits, layer).to(layer.v)
    return Attended(weights @ layer.v, logits, weights, encoding.after_attention(weights, layer))


def flex_attend(encoding, q, k, layer, flex_attention=None):
    """The output of `attend` by FlexAttention; pass `torch.compile(flex_attention)` on a GPU."""
    tokens = q.shape[2]
    layer.state = encoding.state(layer)
    q, k = encoding.transform(q, k, layer)
    mask = create_block_mask(lambda b, h, i, j: j <= i, None, None, tokens, tokens, device=q.device)
    score_mod = encoding.score_mod(q, k, layer)
    call = flex_attention or eager_flex_attention
    return call(q, k, layer.v, score_mod=score_mod, block_mask=mask, scale=1 / layer.root)


class SelfAttention(nn.Module):
    """Causal multi-head self-attention, [B, T, C] -> [B, T, C], with an encoding of the zoo.

    `encoding` is an expression, built for this layer, or the module that `pe_zoo.torch.encoding`
    built for all layers of a model; then `layer` is the index of this one. If `flex` is given,
    `flex_attention` or the compiled function, it computes the output.
    """

    def __init__(self, width, heads, encoding="rope", layer=0, flex=None, **sizes):
        super().__init__()
        if width % heads:
            raise ValueError(f"heads is {heads}, expected a divisor of width, which is {width}")
        self.heads, self.layer, self.flex = heads, layer, flex
        if isinstance(encoding, str):
            encoding = build(encoding, heads, width // heads, **sizes)
            for hook in ("positions", "embed", "after_feed_forward"):
                if any(overrides(part, hook) for part in encoding.parts):
                    raise ValueError(
                        f"`{encoding.id}` acts outside of attention as well; build it with "
                        f"`pe_zoo.torch.encoding` and call its `{hook}` in the model"
                    )
        self.encoding = encoding
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x, positions=None):
        return self.attend(x, positions)[0]

    def attend(self, x, positions=None, state=None):
        """Output, and the state of the tokens, from that of the layer before."""
        if positions is None:
            positions = self.encoding.positions(x.shape[1]).to(x.device)
        q, k, v = (by_head(u, self.heads) for u in self.qkv(x).chunk(3, -1))
        layer = Layer(self.layer, positions, x, v, state)
        if self.flex:
            output, state = flex_attend(self.encoding, q, k, layer, self.flex), layer.state
        else:
            attended = attend(self.encoding, q, k, layer)
            output, state = attended.output, attended.state
        return self.out(output.transpose(1, 2).flatten(2)), state
