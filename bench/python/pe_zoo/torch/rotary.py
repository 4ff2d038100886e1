"""Rotations of queries and keys by their positions."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .base import (
    Encoding,
    angles,
    choice,
    constant,
    fields,
    frequencies,
    normal,
    of_layer,
    rotate,
    sets,
    wide,
)
from .scaling import Rotary, checked, depends_on_length, spectrum


class Rope(Encoding):
    """(a, b) -> (a cos - b sin, b cos + a sin) for each pair of channels, by the angle
    n base^(-2m / R); Su et al. 2021. Learned frequencies are multiplied by exp(alpha). Each second
    head may have the imaginary part of the products of the head before it, and distances beyond a
    window may be shortened (`far`)."""

    id = "rope"
    takes_real_positions = True

    def __init__(
        self,
        dims,
        layout="half-split",
        base=10000.0,
        rotary_fraction=1.0,
        scaling=None,
        learning="fixed",
        imaginary=False,
        far={"type": "none"},
    ):
        super().__init__(dims)
        self.is_interleaved = choice("layout", layout, "half-split", "interleaved") == "interleaved"
        self.rotary = Rotary.plain(base, int(rotary_fraction * dims.head_dim), dims)
        self.scaling = checked(scaling)
        self.turns = None if imaginary else (layout, self.rotary.channels)
        self.is_imaginary = imaginary
        count = 0 if learning == "fixed" else sets(learning, dims.layers)
        zeros = lambda: nn.Parameter(torch.zeros(self.rotary.channels // 2))
        self.log_factors = nn.ParameterList(zeros() for _ in range(count))
        kinds = {
            "none": {},
            "grouped": {"window": None, "group": None},
            "constant": {"window": None},
            "chunks": {"chunk": None, "window": None},
        }
        self.far = fields(far, **kinds[choice("far.type", far["type"], *kinds)])
        self.adds_to_logits = far["type"] != "none"
        if self.adds_to_logits:
            self.changes_content = "replaced"
            self.without_score_mod = "far pairs have products of other queries and keys"

    def spectrum(self, layer):
        """Frequencies per pair, a list or learned, and the factor of cosines and sines."""
        length = int(layer.positions[-1]) + 1 if depends_on_length(self.scaling) else 0
        turns, factor = spectrum(self.scaling, self.rotary, length)
        if len(self.log_factors):
            logs = of_layer(self.log_factors, layer.index).double()
            turns = constant(turns, logs) * logs.exp()
        return turns, factor

    def turned(self, u, at, turns, factor=1.0, phase=0.0):
        """Vectors turned by the angles of these positions."""
        turns = turns if torch.is_tensor(turns) else constant(turns, at.double())
        angle = at[:, None].double() * turns + phase
        return rotate(u, factor * angle.cos(), factor * angle.sin(), self.is_interleaved)

    def transform(self, q, k, layer):
        turns, factor = self.spectrum(layer)
        turned = lambda u, phase=0.0: self.turned(u, layer.positions, turns, factor, phase)
        if not self.is_imaginary:
            return turned(q), turned(k)
        # Each second head has the vectors of the head before it; of an odd number the last has its own.
        shared = [head - 1 if head % 2 else head for head in range(q.shape[1])]
        is_second = torch.arange(q.shape[1], device=q.device)[:, None, None] % 2 == 1
        q, k = q[:, shared], k[:, shared]
        return torch.where(is_second, turned(q, -math.pi / 2), turned(q)), turned(k)

    def score_bias(self, q, k, layer):
        kind, window = self.far["type"], self.far.get("window")
        if kind == "none":
            return 0.0
        at = layer.positions
        if kind == "grouped":
            groups = at.div(self.far["group"], rounding_mode="floor")
            of_queries, of_keys = groups + window - window // self.far["group"], groups
        elif kind == "chunks":
            chunk = self.far["chunk"]
            of_queries, of_keys = torch.full_like(at, chunk + window - 1), at % chunk
        else:
            of_queries, of_keys = torch.full_like(at, window), torch.zeros_like(at)
        turns, _ = self.spectrum(layer)
        far_q, far_k = (
            self.turned(u, to - at, turns) for u, to in ((q, of_queries), (k, of_keys))
        )
        more = layer.content(far_q, far_k) - layer.content(q, k)
        if kind != "chunks":
            return more.masked_fill(layer.distances < window, 0.0)
        # The first queries of a chunk have exact distances to the chunk before.
        begin = at - at % chunk
        first_near = begin.where(at % chunk > window - 1, begin - chunk)
        return more.masked_fill(at >= first_near[:, None], 0.0)


class PositionMap(nn.Module):
    def __init__(self, dims, width):
        super().__init__()
        self.gate, self.content = normal(0.02, dims.width, width), normal(0.02, dims.width, width)
        self.output = normal(0.02, width, dims.heads)

    def forward(self, x):
        return (F.silu(x @ self.gate) * (x @ self.content)) @ self.output


class Repo(Encoding):
    """RoPE at positions that each head computes from the token, Wz (silu(Wg x) * Wc x); Li et al.
    2025."""

    id = "repo"
    ignores_positions = True

    def __init__(self, dims, width=None, base=500000.0):
        super().__init__(dims)
        self.turns = ("half-split", dims.head_dim)
        self.frequencies = frequencies(base, dims.head_dim)
        width = width or max(dims.width // 8, 1)
        self.layers = nn.ModuleList(PositionMap(dims, width) for _ in range(dims.layers))

    def transform(self, q, k, layer):
        positions = wide(self.layers[layer.index](layer.x)).mT  # [B, H, T]
        angle = positions[..., None] * constant(self.frequencies, positions)
        return rotate(q, angle.cos(), angle.sin()), rotate(k, angle.cos(), angle.sin())


class Xpos(Encoding):
    """RoPE with queries multiplied and keys divided by zeta_m^((n - c) / S),
    zeta_m = (2m + 0.4 D) / (1.4 D); Sun et al. 2022."""

    id = "xpos"
    distorts_vectors = True

    def __init__(self, dims, layout="interleaved", base=10000.0, scale_base=512.0, centre="middle"):
        super().__init__(dims)
        self.is_interleaved = choice("layout", layout, "half-split", "interleaved") == "interleaved"
        self.turns = (layout, dims.head_dim)
        self.scale_base = scale_base
        self.centre = centre["given"] if isinstance(centre, dict) else None
        if self.centre is None:
            self.rule = choice("centre", centre, "middle", "torchscale")
        self.frequencies = frequencies(base, dims.head_dim)
        width = dims.head_dim
        self.logs = [math.log((2 * m + 0.4 * width) / (1.4 * width)) for m in range(width // 2)]

    def transform(self, q, k, layer):
        at, centre = layer.positions.double(), self.centre
        if centre is None:
            is_middle = self.rule == "middle"
            centre = (at[0] + at[-1]) / 2 if is_middle else ((at[-1] + 1) / 2).ceil()
        angle = angles(layer.positions, self.frequencies)
        stretch = (at - centre)[:, None] / self.scale_base * constant(self.logs, at)

        def turn(u, factor):
            return rotate(u, factor * angle.cos(), factor * angle.sin(), self.is_interleaved)

        return turn(q, stretch.exp()), turn(k, (-stretch).exp())


class Pope(Encoding):
    """sum over c of softplus(q_c) softplus(k_c) cos((j - i) base^(-c / R) + delta[h, c]) / sqrt(D);
    Gopalakrishnan et al. 2025. The first R channels become 2 R: their cosine and sine parts."""

    id = "pope"
    distorts_vectors = True

    def __init__(self, dims, base=10000.0, rotary_fraction=1.0, initial_phase="zero"):
        super().__init__(dims)
        turning = int(rotary_fraction * dims.head_dim)
        self.frequencies = [base ** (-c / turning) for c in range(turning)]
        is_zero = choice("initial_phase", initial_phase, "zero", "uniform") == "zero"
        least = 0.0 if is_zero else -2 * math.pi
        phase = lambda: nn.Parameter(torch.rand(dims.heads, turning) * least)
        self.phases = nn.ParameterList(phase() for _ in range(dims.layers))

    def transform(self, q, k, layer):
        turning = len(self.frequencies)
        angle = angles(layer.positions, self.frequencies)
        phase = self.phases[layer.index].clamp(-2 * math.pi, 0)[:, None]

        def polar(u, angle):
            magnitude, cos, sin = F.softplus(u[..., :turning]), angle.cos().to(u), angle.sin().to(u)
            return torch.cat([magnitude * cos, magnitude * sin, u[..., turning:]], -1)

        return polar(q, angle), polar(k, angle + phase)


class Fope(Encoding):
    """Each of the first pairs is turned by a fixed random mixture of the waves that complete a turn
    within the training length; Hua et al. 2024. The mixtures are buffers, `cos.0` and so on,
    [H, waves, outputs]."""

    id = "fope"

    def __init__(self, dims, base=10000.0, gain=0.3, padding="code"):
        super().__init__(dims)
        self.turns = ("half-split", dims.head_dim)
        self.padded_sine = float(choice("padding", padding, "code", "zero") == "code")
        slowest = 2 * math.pi / dims.train_len
        self.frequencies = [f for f in frequencies(base, dims.head_dim) if f >= slowest]
        waves, outputs = len(self.frequencies), min(len(self.frequencies), dims.head_dim // 4)
        std = gain * math.sqrt(2 / ((waves + dims.heads) * outputs))
        own = torch.zeros(waves, outputs)
        for m in range(outputs):
            own[m * math.ceil(waves / outputs), m] = 1.0
        for name in ("cos", "sin"):
            mixtures = nn.Module()
            for layer in range(dims.layers):
                noise = torch.randn(dims.heads, waves, outputs)
                mixtures.register_buffer(str(layer), own + std * noise)
            self.add_module(name, mixtures)

    def transform(self, q, k, layer):
        angle = angles(layer.positions, self.frequencies)
        mixed = lambda name, wave: wave.to(q) @ getattr(getattr(self, name), str(layer.index))
        cos, sin = mixed("cos", angle.cos()), mixed("sin", angle.sin())  # [H, T, outputs]
        rest = (0, q.shape[-1] // 2 - cos.shape[-1])
        cos, sin = F.pad(cos, rest, value=1.0), F.pad(sin, rest, value=self.padded_sine)
        return rotate(q, cos, sin), rotate(k, cos, sin)
