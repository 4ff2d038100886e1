"""Every position encoding of pe-zoo in plain PyTorch.

    attention = pe_zoo.torch.SelfAttention(256, heads=4, encoding="cope{max_positions=16}+rope")
    y = attention(x)  # [B, T, 256] -> [B, T, 256]

`pe-bench explain ID` prints formulas, settings and deviations from the papers. The tests compare
every encoding with `pe-bench vectors`.
"""

from .attention import Attended, SelfAttention, attend, flex_attend
from .base import Dims, Encoding, Layer
from .combination import ENCODINGS, Combination, encoding
from .decoder import Decoder, load

__all__ = [
    "ENCODINGS",
    "Attended",
    "Combination",
    "Decoder",
    "Dims",
    "Encoding",
    "Layer",
    "SelfAttention",
    "attend",
    "encoding",
    "flex_attend",
    "load",
]
