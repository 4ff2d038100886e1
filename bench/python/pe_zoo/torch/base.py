"""The interface of an encoding, and the pieces that several encodings share.

Shapes: B batch, T tokens, H heads, D channels of a head, C = H D channels of a token.
"""

from __future__ import annotations

import dataclasses
import math

import torch
from torch import nn
from torch.nn import functional as F


@dataclasses.dataclass(frozen=True)
class Dims:
    """Sizes of the model that an encoding is built for."""

    heads: int
    head_dim: int
    layers: int = 1
    train_len: int = 512  # longest training sequence in tokens
    max_len: int = 512  # longest sequence in tokens
    model_width: int | None = None  # channels of a token; None: those of all heads

    @property
    def width(self):
        return self.model_width or self.heads * self.head_dim

    def raised(self, train_len=0, max_len=0):
        """The same sizes with lengths of at least these."""
        longest = max(self.train_len, train_len), max(self.max_len, max_len)
        return dataclasses.replace(self, train_len=longest[0], max_len=longest[1])


@dataclasses.dataclass
class Layer:
    """What an encoding may read in one attention layer."""

    index: int  # of the layer, from 0
    positions: torch.Tensor  # of the tokens, integers unless an encoding chooses real ones, [T]
    x: torch.Tensor  # input of the attention, [B, T, C]
    v: torch.Tensor  # values, [B, H, T, D]
    state: torch.Tensor | None = None  # carried from the layer before

    @property
    def distances(self):
        """Distance from each key to each query, [T, T]; 0 for later keys."""
        return (self.positions[:, None] - self.positions[None, :]).clamp(min=0)

    @property
    def float_distances(self):
        """The distances in the type of the values, or in f32 if that is narrower."""
        return self.distances.to(wide(self.v[:0]))

    @property
    def root(self):
        """sqrt(D); `v` has the model's D even if an encoding widens queries and keys."""
        return math.sqrt(self.v.shape[-1])

    def content(self, q, k):
        """q_i . k_j / sqrt(D), [B, H, T, T]."""
        return wide(q @ k.mT) / self.root


class Encoding(nn.Module):
    """A position encoding without effect; each family overrides the hooks that it needs.

    One module serves all layers. Combinations call the hooks of their parts one after the other
    and add up the biases.
    """

    id = "nope"
    brackets = None  # the setting and its tag that `id(word)` sets
    over = None  # encoding in the brackets if none is written, for one without effect by itself
    without_score_mod = None  # reason why FlexAttention cannot express the encoding
    # Facts that decide which encodings act together (rules.py).
    # Layout and channels of the pairs that `transform` turns; () if it changes nothing, LINEAR if it
    # multiplies each query by a number, None if it does something else.
    turns = None
    ignores_positions = False  # only the order of the tokens counts
    chooses_real_positions = False
    takes_real_positions = False  # positions need not be whole numbers
    reads_vectors = False  # multiplies queries or keys with something else than each other
    distorts_vectors = False  # `transform` changes more than the direction of queries and keys
    adds_to_logits = True  # whether an own form of `score_bias` has an effect
    replaces_softmax = False
    changes_content = None  # how the products of queries and keys are changed
    max_len = None  # number of positions; None if unlimited

    def __init__(self, dims):
        super().__init__()
        self.dims = dims

    @staticmethod
    def dims_beside(dims, **settings):
        """Sizes for the encodings that act together with this one."""
        return dims

    def positions(self, tokens):
        """Positions of the tokens, [T]; in training mode random ones are drawn anew."""
        return torch.arange(tokens)

    def embed(self, x, ids, positions):
        """Embeddings [B, T, C] of the tokens `ids` [B, T] with the encoding added."""
        return x

    def state(self, layer):
        """State of the tokens in this layer, from that of the layer before."""
        return layer.state

    def transform(self, q, k, layer):
        """Queries and keys [B, H, T, D] before their products."""
        return q, k

    def score_bias(self, q, k, layer):
        """Term added to q_i . k_j / sqrt(D) of transformed queries and keys, [B, H, T, T] without
        the axes on which it does not depend; 0 if there is none."""
        return 0.0

    def weights(self, logits, layer):
        """Attention weights of masked logits [B, H, T, T]."""
        return logits.softmax(-1)

    def score_term(self, q, k, layer):
        """The bias as a function of score, batch, head, query and key; None if there is none."""

    def after_attention(self, weights, layer):
        """State after the attention."""
        return layer.state

    def after_feed_forward(self, state, output, index):
        """State after the feed-forward block of a layer; its `output` [B, T, C] is that before the
        residual sum."""
        return state


LINEAR = "linear"


def overrides(part, hook):
    """Whether an encoding has its own form of a hook."""
    return getattr(type(part), hook) is not getattr(Encoding, hook)


def choice(name, value, *allowed):
    """Returns the value of a setting if it is allowed."""
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}, expected one of {', '.join(map(repr, allowed))}")
    return value


def fields(setting, tag="type", **defaults):
    """A setting such as {"type": "full", "bias": 5.0} with the defaults of its kind filled in."""
    unknown = setting.keys() - defaults.keys() - {tag}
    if unknown:
        raise ValueError(
            f"unknown field {min(unknown)!r} in {setting}; known: {', '.join(defaults)}"
        )
    return {**defaults, **setting}


def of_layer(sets, index):
    """Parameters of a layer; a single set serves all layers."""
    return sets[min(index, len(sets) - 1)]


def sets(sharing, layers):
    """Number of sets of parameters."""
    return layers if choice("sharing", sharing, "per-layer", "all-layers") == "per-layer" else 1


def normal(std, *shape):
    return nn.Parameter(torch.randn(shape) * std)


def uniform(bound, *shape):
    return nn.Parameter((torch.rand(shape) * 2 - 1) * bound)


def constant(values, like):
    """Fixed numbers as a tensor of the type of another one."""
    return torch.tensor(values, dtype=like.dtype, device=like.device)


def by_head(x, heads):
    """[B, T, H E] as [B, H, T, E]."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class PerHead(nn.Module):
    """One number per head and token from the input of the layer, [B, T, C] to [B, H, T]."""

    def __init__(self, dims, bias):
        super().__init__()
        self.weight = normal(0.02, dims.width, dims.heads)
        self.bias = nn.Parameter(torch.full((dims.heads,), float(bias)))

    def forward(self, x):
        return (x @ self.weight + self.bias).mT


def frequencies(base, channels):
    """base^(-2 m / channels) for each pair m."""
    return [base ** (-2 * m / channels) for m in range(channels // 2)]


def angles(positions, per_position):
    """Positions times frequencies, [T, pairs], in f64."""
    return positions[:, None].double() * constant(per_position, positions.double())


def rotate(u, cos, sin, interleaved=False):
    """Turns the pairs (m, m + R/2), or (2m, 2m + 1), of the first R channels of u [B, H, T, D];
    `cos` and `sin` are [..., T, R/2]."""
    cos, sin = cos.to(u), sin.to(u)
    turning, rest = u[..., : 2 * cos.shape[-1]], u[..., 2 * cos.shape[-1] :]
    a, b = (turning[..., 0::2], turning[..., 1::2]) if interleaved else turning.chunk(2, -1)
    turned = torch.stack([a * cos - b * sin, b * cos + a * sin], -1 if interleaved else -2)
    return torch.cat([turned.flatten(-2), rest], -1)


def slopes(heads):
    """ALiBi's slopes; for other numbers than powers of two taken from the next powers, as in its
    authors' code."""
    geometric = lambda n: [2 ** (-8 * (h + 1) / n) for h in range(n)]
    below = 2 ** int(math.log2(heads))
    return geometric(below) + geometric(2 * below)[::2][: heads - below]


def wide(x):
    """The tensor in f32 if it is in a narrower type: for distances, running sums and logits."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def sum_from(x):
    """Sum over m >= j of the last axis."""
    return wide(x).flip(-1).cumsum(-1).flip(-1)


def between(x):
    """Sums over the tokens l in j+1..=i of x [..., T], [..., T, T]; negative for later keys."""
    total = wide(x).cumsum(-1)
    return total[..., :, None] - total[..., None, :]


def causal_filter(x, taps):
    """Causal convolution of each channel of x [B, T, C]; the last of `taps` [C, K] is that of the
    token itself."""
    channels, kernel = taps.shape
    return F.conv1d(F.pad(x.mT, (kernel - 1, 0)), taps[:, None], groups=channels).mT


def unit(x, eps=1e-6):
    """Vectors divided by sqrt(squared length + eps)."""
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + eps)


def rms(x, eps):
    """Vectors divided by the root of their mean square."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
