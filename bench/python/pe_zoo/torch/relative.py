"""Learned vectors per distance that the query is multiplied with; Shaw et al. 2018."""

from .base import Encoding, normal


class Relative(Encoding):
    """q_i . e[i - j] / sqrt(D); distances past the table add nothing."""

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
        last = self.table.shape[1] - 1
        entries = layer.distances.clamp(max=last).expand(*q.shape[:2], -1, -1)
        bias = self.products(q, layer).gather(-1, entries)
        return bias if self.is_capped else bias * (layer.distances <= last)

    def score_term(self, q, k, layer):
        products, at, last = self.products(q, layer), layer.positions, self.table.shape[1] - 1

        def term(score, b, h, i, j):
            distance = (at[i] - at[j]).clamp(min=0)
            bias = products[b, h, i, distance.clamp(max=last)]
            return bias if self.is_capped else bias * (distance <= last)

        return term


class RelativeCapped(Relative):
    """q_i . e[min(i - j, N - 1)] / sqrt(D)."""

    id = "relative-capped"
    is_capped = True
