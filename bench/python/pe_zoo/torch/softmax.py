"""Changes of the softmax: bounds of its logits and learned logits in its denominator."""

import torch
from torch import nn

from .base import Encoding


class LogitCap(Encoding):
    """q_i . k_j / sqrt(D) replaced by cap tanh(q_i . k_j / (sqrt(D) cap)); Gemma Team 2024."""

    id = "logit-cap"
    ignores_positions = True
    changes_content = "capped"

    def __init__(self, dims, cap=50.0):
        super().__init__(dims)
        self.cap = cap

    def score_bias(self, q, k, layer):
        content = layer.content(q, k)
        return self.cap * (content / self.cap).tanh() - content

    def score_term(self, q, k, layer):
        return lambda score, b, h, i, j: self.cap * (score / self.cap).tanh() - score


class Sinks(Encoding):
    """exp(s_h) added to the denominator of the softmax of each head; OpenAI 2025."""

    id = "sinks"
    ignores_positions = True
    without_score_mod = "it adds to the denominator of the softmax"

    def __init__(self, dims):
        super().__init__(dims)
        self.sinks = nn.ParameterList(
            nn.Parameter(torch.zeros(dims.heads)) for _ in range(dims.layers)
        )

    def weights(self, logits, layer):
        sinks = self.sinks[layer.index].to(logits)[:, None, None].expand(*logits.shape[:-1], 1)
        return torch.cat([logits, sinks], -1).softmax(-1)[..., :-1]
