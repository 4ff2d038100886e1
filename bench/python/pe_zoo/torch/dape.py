"""A bias that a network across heads adapts to the content; Zheng et al. 2024."""

import torch
from torch import nn
from torch.nn import functional as F

from .base import Encoding, choice, uniform
from .distance import Alibi, Fire, Kerple


class Network(nn.Module):
    def __init__(self, planes, heads, width, taps):
        super().__init__()
        inputs, hidden = taps * planes, taps * width
        self.w1, self.c1 = uniform(inputs**-0.5, width, inputs), uniform(inputs**-0.5, width)
        self.w2, self.c2 = uniform(hidden**-0.5, heads, hidden), uniform(hidden**-0.5, heads)


class Dape(Encoding):
    """b + W2 act(W1 [s; b] + c1) + c2 at each pair, s = q.k / sqrt(D), b the base bias, act
    LeakyReLU. In the convolution W1 and W2 also take the keys j - 1 and j + 1."""

    id = "dape"
    brackets = ("base", "type")
    without_score_mod = "the bias of a head depends on the logits of all heads"
    bases = {"alibi": Alibi, "kerple": Kerple, "fire": Fire}

    def __init__(self, dims, base={"type": "kerple"}, mixer="per-pair", width=32):
        super().__init__(dims)
        settings = dict(base)
        kind = choice("base.type", settings.pop("type"), "none", *self.bases)
        if kind == "fire":
            settings["activation"] = settings.get("activation") or "leaky-relu"
        self.base = None if kind == "none" else self.bases[kind](dims, **settings)
        self.taps = 1 if choice("mixer", mixer, "per-pair", "convolution") == "per-pair" else 3
        planes = dims.heads * (1 if self.base is None else 2)
        self.networks = nn.ModuleList(
            Network(planes, dims.heads, width, self.taps) for _ in range(dims.layers)
        )

    def score_bias(self, q, k, layer):
        planes, bias = layer.content(q, k), 0.0
        if self.base is not None:
            bias = self.base.score_bias(q, k, layer).expand_as(planes)
            planes = torch.cat([planes, bias], 1)
        network = self.networks[layer.index]
        side = self.taps // 2
        # Weights are [outputs, taps inputs]. The hidden units reach one key past the last.
        kernel = lambda weight: weight.unflatten(1, (self.taps, -1)).mT[:, :, None]
        planes = planes.to(network.w1)
        seen = F.pad(planes.tril(), (side, 2 * side)) if side else planes
        hidden = F.leaky_relu(F.conv2d(seen, kernel(network.w1), network.c1))
        return bias + F.conv2d(F.pad(hidden, (side, 0)), kernel(network.w2), network.c2)
