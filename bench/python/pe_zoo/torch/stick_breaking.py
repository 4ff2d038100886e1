"""Weights without a softmax; Tan et al. 2024."""

import torch
from torch.nn import functional as F

from .base import Encoding, choice, sum_from


class StickBreaking(Encoding):
    """sigma(z[i, j]) times the product over j < m < i of (1 - sigma(z[i, m])), z the logits."""

    id = "stick-breaking"
    ignores_positions = True
    replaces_softmax = True
    without_score_mod = "it replaces the softmax"

    def __init__(self, dims, current="excluded", remainder="dropped"):
        super().__init__(dims)
        self.includes_own = choice("current", current, "excluded", "included") == "included"
        self.adds_remainder = choice("remainder", remainder, "dropped", "own-token") == "own-token"

    def weights(self, logits, layer):
        diagonal = 0 if self.includes_own else -1  # last key that takes a share
        takes = torch.ones_like(logits, dtype=torch.bool).tril(diagonal)
        logits = logits.masked_fill(~takes, 0.0)
        left = F.logsigmoid(-logits) * takes
        weights = (F.logsigmoid(logits) + sum_from(left) - left).exp() * takes
        if self.adds_remainder:
            weights = weights + torch.diag_embed(left.sum(-1).exp())
        return weights
