"""Learned vectors per distance that a vector of the row, such as the query, is multiplied with."""

import torch
from torch import nn

from .base import Encoding, by_head, normal


class Relative(Encoding):
    """q_i . e[i - j] / sqrt(D); distances past the table add nothing. Shaw et al. 2018."""

    id = "relative"
    is_capped = False
    reads_vectors = True

    def __init__(self, dims, max_distance=None, std=None):
        super().__init__(dims)
        self.table = normal(
            std or dims.head_dim**-0.5, dims.head_dim, max_distance or dims.train_len
        )

    def products(self, q, layer):
        """q_i . e[n] / sqrt(D) of each query and entry."""
        return q @ self.table / layer.root

    def score_bias(self, q, k, layer):
        products = self.products(q, layer)
        last = products.shape[-1] - 1
        entries = layer.distances.clamp(max=last).expand(*q.shape[:2], -1, -1)
        bias = products.gather(-1, entries)
        return bias if self.is_capped else bias * (layer.distances <= last)

    def score_term(self, q, k, layer):
        products, at = self.products(q, layer), layer.positions
        last = products.shape[-1] - 1

        def term(score, b, h, i, j):
            distance = (at[i] - at[j]).clamp(min=0)
            bias = products[b, h, i, distance.clamp(max=last)]
            return bias if self.is_capped else bias * (distance <= last)

        return term


class RelativeCapped(Relative):
    """q_i . e[min(i - j, N - 1)] / sqrt(D)."""

    id = "relative-capped"
    is_capped = True


class LayerProfiles(nn.Module):
    def __init__(self, dims, profiles, distances):
        super().__init__()
        self.weight = normal(0.02, dims.width, dims.heads * profiles)
        self.scale = nn.Parameter(torch.ones(dims.heads, profiles))
        self.profiles = normal(0.02, profiles, distances)


class RelativeProfiles(Relative):
    """w_i . P[i - j], w = u min(1, limit / |u|), u = s (W x_i) of each head; Inkling 2."""

    id = "relative-profiles"
    reads_vectors = False

    def __init__(self, dims, profiles=16, max_distance=None, limit=8.0):
        Encoding.__init__(self, dims)
        distances = max_distance or min(dims.train_len, 1024)
        self.layers = nn.ModuleList(
            LayerProfiles(dims, profiles, distances) for _ in range(dims.layers)
        )
        self.limit = limit

    def products(self, q, layer):
        own = self.layers[layer.index]
        weights = by_head(layer.x @ own.weight, self.dims.heads) * own.scale[:, None]
        square = weights.square().sum(-1, keepdim=True) / self.limit**2
        return weights / square.clamp(min=1).sqrt() @ own.profiles
