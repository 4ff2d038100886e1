"""Encodings that are added to the token embeddings."""

import torch

from .base import Encoding, angles, choice, fields, frequencies, normal


class LearnedAbsolute(Encoding):
    """x[n] + table[n]; Gehring et al. 2017."""

    id = "learned-absolute"

    def __init__(self, dims, max_len=None, std=None):
        super().__init__(dims)
        self.max_len = max_len or dims.max_len
        self.table = normal(std or dims.width**-0.5, self.max_len, dims.width)

    def embed(self, x, ids, positions):
        return x + self.table[positions]


class Sinusoidal(Encoding):
    """x[n, 2m] + sin(n base^(-2m / C)), x[n, 2m+1] + cos(n base^(-2m / C)); Vaswani et al. 2017."""

    id = "sinusoidal"

    def __init__(self, dims, base=10000.0):
        super().__init__(dims)
        self.frequencies = frequencies(base, dims.width)

    def embed(self, x, ids, positions):
        angle = angles(positions, self.frequencies)
        return x + torch.stack([angle.sin(), angle.cos()], -1).flatten(-2).to(x)


class Abacus(Encoding):
    """x[n] + table[i]: digits are numbered within their number, other tokens have row 0;
    McLeish et al. 2024.

    The offset of the counts is the position of the first token, which is random in training.
    """

    id = "abacus"

    def __init__(self, dims, size=1024, digits=(0, 9), max_offset=99, beyond="last-row", std=None):
        super().__init__(dims)
        self.digits, self.max_offset = digits, max_offset
        self.table = normal(std or dims.width**-0.5, size, dims.width)
        if choice("beyond", beyond, "last-row", "refuse") == "refuse":
            self.max_len = size - 1

    @staticmethod
    def dims_beside(dims, max_offset=99, **_):
        return dims.raised(max_len=dims.train_len + max_offset)

    def positions(self, tokens):
        offset = torch.randint(self.max_offset + 1, ()) if self.training else 0
        return torch.arange(tokens) + offset

    def embed(self, x, ids, positions):
        first, last = self.digits
        is_digit = (ids >= first) & (ids <= last)
        place = torch.arange(1, ids.shape[1] + 1, device=ids.device)
        before = (place * ~is_digit).cummax(1).values
        row = place - before + positions[0].clamp(max=self.max_offset)
        return x + self.table[(row * is_digit).clamp(max=len(self.table) - 1)]


class Randomized(Encoding):
    """Random positions in ascending order from a long range; Ruoss et al. 2023.

    Those of training are drawn anew for each pass; `sampled` positions of the evaluation depend on
    the seed and the number of tokens only. The draws differ from those of pe-bench, which has
    another generator. Real positions have `steps` numbers per unit; Shimizu et al. 2026.
    """

    id = "randomized"
    over = "rope"

    def __init__(
        self,
        dims,
        longest=2048,
        evaluation={"type": "sampled", "seed": 0},
        positions={"type": "whole"},
    ):
        super().__init__(dims)
        self.max_len = longest
        kinds = {"whole": {"steps": 1}, "real": {"steps": 1024}}
        grid = fields(positions, **kinds[choice("positions.type", positions["type"], *kinds)])
        self.steps = grid["steps"]
        self.chooses_real_positions = self.steps > 1
        choice("evaluation.type", evaluation["type"], "sampled", "spread", "contiguous")
        self.evaluation = evaluation

    @staticmethod
    def dims_beside(dims, longest=2048, **_):
        return dims.raised(train_len=longest, max_len=longest)

    def positions(self, tokens):
        kind = self.evaluation["type"]
        if self.training or kind == "sampled":
            generator = None
            if not self.training:
                generator = torch.Generator().manual_seed(self.evaluation["seed"] * 2**20 + tokens)
            numbers = torch.randperm(self.max_len * self.steps, generator=generator)
            return self.of_grid(numbers[:tokens].sort().values)
        at = torch.arange(tokens) * self.steps
        return self.of_grid(at * self.max_len // tokens if kind == "spread" else at)

    def of_grid(self, numbers):
        return numbers.double() / self.steps if self.chooses_real_positions else numbers
