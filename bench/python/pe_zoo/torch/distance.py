"""Biases that depend on the distance of the two tokens."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .base import Encoding, choice, constant, normal, of_layer, sets, slopes, uniform


class DistanceBias(Encoding):
    """A bias per head and distance."""

    def at(self, distances, index):
        """Biases [H, ...] of distances [...] in a layer."""
        raise NotImplementedError

    def score_bias(self, q, k, layer):
        return self.at(layer.float_distances, layer.index)

    def score_term(self, q, k, layer):
        positions = layer.positions
        longest = int(positions[-1] - positions[0])
        distances = torch.arange(longest + 1).to(layer.float_distances)
        table = self.at(distances, layer.index)
        return lambda score, b, h, i, j: table[h, (positions[i] - positions[j]).clamp(min=0)]


class Alibi(DistanceBias):
    """-slope_h (i - j); Press et al. 2021."""

    id = "alibi"
    takes_real_positions = True

    def __init__(self, dims, slopes="authors", learning="fixed"):
        super().__init__(dims)
        self.slopes = self.initial(slopes, dims.heads)
        learned = 0 if learning == "fixed" else sets(learning, dims.layers)
        logs = torch.tensor(self.slopes).log() if learned else None
        self.log_slopes = nn.ParameterList(nn.Parameter(logs.clone()) for _ in range(learned))

    @staticmethod
    def initial(setting, heads):
        if isinstance(setting, dict):
            return setting["given"]
        if choice("slopes", setting, "authors", "paper") == "paper":
            return [2 ** (-8 * (h + 1) / heads) for h in range(heads)]
        return slopes(heads)

    def of_heads(self, index, like):
        if len(self.log_slopes):
            return of_layer(self.log_slopes, index).exp()
        return constant(self.slopes, like)

    def at(self, distances, index):
        slopes = self.of_heads(index, distances)
        return -slopes.view(-1, *[1] * distances.dim()) * distances

    def score_term(self, q, k, layer):
        if not layer.positions.is_floating_point():
            return super().score_term(q, k, layer)
        slopes, positions = self.of_heads(layer.index, layer.float_distances), layer.positions
        return lambda score, b, h, i, j: -slopes[h] * (positions[i] - positions[j]).clamp(min=0)


class Window(DistanceBias):
    """-1e9 where i - j >= size, so that the weight is 0; Beltagy et al. 2020."""

    id = "window"

    def __init__(self, dims, size=512):
        super().__init__(dims)
        self.size = size

    def at(self, distances, index):
        hidden = -1e9 * (distances >= self.size).to(distances)
        return hidden.expand(self.dims.heads, *distances.shape)


def straight_through(x, low, high=None):
    """Clamped values with the gradient of the unclamped ones."""
    return x + (x.clamp(low, high) - x).detach()


class Kerple(DistanceBias):
    """-p_h ln(1 + a_h (i - j)), or -a_h (i - j)^p_h; Chi et al. 2022. With a weight the content is
    multiplied by exp(-wa_h (i - j)^wp_h). Or -exp(a_h) (|i - j - mu_h| + 1e-5)^p_h,
    mu_h = exp(m_h) - exp(-m_h); Bianchessi et al. 2025."""

    id = "kerple"

    def __init__(
        self, dims, kernel="logarithmic", weight="none", sharing="all-layers", mean="zero"
    ):
        super().__init__(dims)
        kinds = "logarithmic", "power", "none", "generalized-gaussian"
        self.kernel = choice("kernel", kernel, *kinds)
        is_gaussian = kernel == "generalized-gaussian"
        choice("mean", mean, "zero", *["learned"] * is_gaussian)
        self.weight = choice("weight", weight, "none", "power")
        self.changes_content = None if weight == "none" else "scaled"
        count = sets(sharing, dims.layers)
        draw = lambda most, count: nn.ParameterList(
            nn.Parameter(torch.rand(dims.heads) * most) for _ in range(count)
        )
        of_kernel, of_weight = count * (kernel != "none"), count * (weight != "none")
        if is_gaussian:
            given = lambda values: nn.ParameterList(
                nn.Parameter(torch.tensor(values)) for _ in range(of_kernel)
            )
            self.a = given([math.log(slope) for slope in slopes(dims.heads)])
            self.p = given([1.0] * dims.heads)
        else:
            self.a, self.p = draw(1.0, of_kernel), draw(2.0, of_kernel)
        self.m = draw(0.0, count * (mean == "learned"))
        self.weight_a, self.weight_p = draw(1.0, of_weight), draw(2.0, of_weight)

    def at(self, distances, index):
        if self.kernel == "none":
            return distances.new_zeros(self.dims.heads, *distances.shape)
        column = lambda x: x.view(-1, *[1] * distances.dim())
        if self.kernel == "generalized-gaussian":
            a, p = column(of_layer(self.a, index)), column(of_layer(self.p, index))
            if len(self.m):
                m = column(of_layer(self.m, index))
                distances = distances + (m.exp() - (-m).exp())
            return -a.exp() * (distances.abs() + 1e-5) ** p
        a = column(straight_through(of_layer(self.a, index), 0.01))
        if self.kernel == "logarithmic":
            p = column(straight_through(of_layer(self.p, index), 0.01))
            return -p * (1 + a * distances).log()
        return -a * distances ** column(straight_through(of_layer(self.p, index), 0.01, 2.0))

    def factors(self, distances, index):
        """Factors of the content, [H, ...]."""
        column = lambda x: x.view(-1, *[1] * distances.dim())
        a = column(straight_through(of_layer(self.weight_a, index), 0.01))
        p = column(straight_through(of_layer(self.weight_p, index), 0.01, 2.0))
        return (-a * distances**p).exp()

    def score_bias(self, q, k, layer):
        bias = super().score_bias(q, k, layer)
        if self.weight == "none":
            return bias
        return bias + layer.content(q, k) * (self.factors(layer.float_distances, layer.index) - 1)

    def score_term(self, q, k, layer):
        bias = super().score_term(q, k, layer)
        if self.weight == "none":
            return bias
        positions = layer.positions
        distances = torch.arange(int(positions[-1] - positions[0]) + 1).to(layer.float_distances)
        factors = self.factors(distances, layer.index)

        def term(score, b, h, i, j):
            factor = factors[h, (positions[i] - positions[j]).clamp(min=0)]
            return bias(score, b, h, i, j) + score * (factor - 1)

        return term


class Sandwich(DistanceBias):
    """(sum over k of cos((i - j) / 10000^(2k / d)) - d/2) H / (8 (h + 1)); Chi et al. 2023."""

    id = "sandwich"

    def __init__(self, dims, d_bar=None):
        super().__init__(dims)
        d_bar = d_bar or dims.head_dim
        self.waves = [10000.0 ** (-2 * k / d_bar) for k in range(1, d_bar // 2 + 1)]
        self.factors = [dims.heads / (8 * (h + 1)) for h in range(dims.heads)]

    def at(self, distances, index):
        wide = distances.double()
        sums = ((wide[..., None] * constant(self.waves, wide)).cos() - 1).sum(-1).to(distances)
        return constant(self.factors, distances).view(-1, *[1] * distances.dim()) * sums


class T5Bias(DistanceBias):
    """table[bucket(i - j), h]; Raffel et al. 2020."""

    id = "t5-bias"

    def __init__(
        self,
        dims,
        num_buckets=32,
        max_distance=128,
        buckets="causal",
        std=None,
        sharing="all-layers",
    ):
        super().__init__(dims)
        both_sides = choice("buckets", buckets, "causal", "bidirectional") == "bidirectional"
        self.buckets, self.max_distance = num_buckets // (2 if both_sides else 1), max_distance
        draw = lambda: normal(std or dims.width**-0.5, num_buckets, dims.heads)
        self.tables = nn.ParameterList(draw() for _ in range(sets(sharing, dims.layers)))

    def bucket(self, distances):
        exact = self.buckets // 2
        ratio = (distances.double().clamp(min=exact) / exact).log()
        whole = torch.tensor(self.max_distance / exact).double().log()
        # A distance exactly on an edge belongs to the bucket above it.
        far = exact + (ratio / whole * (self.buckets - exact) + 1e-9).floor()
        return torch.where(distances < exact, distances, far.clamp(max=self.buckets - 1)).long()

    def at(self, distances, index):
        return of_layer(self.tables, index)[self.bucket(distances)].movedim(-1, 0)


class BiasNetwork(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.maps = nn.ModuleList(BiasMap(*shape) for shape in zip(sizes, sizes[1:]))


class BiasMap(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = uniform(inputs**-0.5, inputs, outputs)
        self.bias = uniform(inputs**-0.5, outputs)

    def forward(self, x):
        return x.to(self.weight) @ self.weight + self.bias


class DynamicPositionBias(DistanceBias):
    """network(i - j)[h], or of ln(1 + i - j); Wang et al. 2021, as in x-transformers."""

    id = "dynamic-position-bias"

    def __init__(self, dims, distance="linear", width=None, depth=2, sharing="all-layers"):
        super().__init__(dims)
        self.is_log = choice("distance", distance, "linear", "log") == "log"
        sizes = [1] + [width or dims.width // 4] * depth + [dims.heads]
        self.networks = nn.ModuleList(BiasNetwork(sizes) for _ in range(sets(sharing, dims.layers)))

    def at(self, distances, index):
        *hidden, last = of_layer(self.networks, index).maps
        u = (distances.log1p() if self.is_log else distances)[..., None]
        for layer in hidden:
            u = F.silu(layer(u))
        return last(u).movedim(-1, 0)


class FireNetwork(nn.Module):
    def __init__(self, heads, width, c):
        super().__init__()
        self.c, self.multiplier = nn.Parameter(torch.tensor([c])), nn.Parameter(torch.ones(1))
        self.w1, self.b1 = uniform(1.0, width), uniform(1.0, width)
        self.w2, self.b2 = uniform(width**-0.5, heads, width), uniform(width**-0.5, heads)


class Fire(Encoding):
    """(W2 act(w1 u + b1) + b2)[h], u = psi(i - j) / (psi(max(i, |m L0|)) + eps),
    psi(x) = ln(|c x| + 1); Li et al. 2023."""

    id = "fire"

    def __init__(
        self,
        dims,
        width=32,
        c=0.1,
        initial_len=512.0,
        eps=1e-6,
        activation=None,
        sharing="per-layer",
    ):
        super().__init__(dims)
        self.initial_len, self.eps = initial_len, eps
        activation = choice("activation", activation or "relu", "relu", "leaky-relu")
        self.activation = F.relu if activation == "relu" else F.leaky_relu
        count = sets(sharing, dims.layers)
        self.networks = nn.ModuleList(FireNetwork(dims.heads, width, c) for _ in range(count))

    def scaled(self, distance, position, network):
        """Distance divided by position, both on the learned logarithmic scale."""
        psi = lambda x: ((network.c * x).abs() + 1).log()
        threshold = (network.multiplier * self.initial_len).abs()
        return psi(distance) / (psi(torch.maximum(position, threshold)) + self.eps)

    def score_bias(self, q, k, layer):
        network = of_layer(self.networks, layer.index)
        distances = layer.float_distances
        u = self.scaled(distances, layer.positions[:, None].to(distances), network)
        hidden = self.activation(u[..., None] * network.w1 + network.b1)
        return (hidden.to(network.w2) @ network.w2.mT + network.b2).permute(2, 0, 1)

    def score_term(self, q, k, layer):
        network = of_layer(self.networks, layer.index)
        at = layer.positions.to(layer.float_distances)

        def term(score, b, h, i, j):
            u = self.scaled((at[i] - at[j]).clamp(min=0), at[i], network)[0]
            bias = network.b2[h]
            for n in range(len(network.w1)):
                bias = bias + network.w2[h, n] * self.activation(u * network.w1[n] + network.b1[n])
            return bias

        return term
