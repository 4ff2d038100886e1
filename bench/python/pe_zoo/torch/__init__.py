"""Every position encoding of pe-zoo in plain PyTorch.

    attention = pe_zoo.torch.SelfAttention(width=256, heads=4, encoding="cope{max_positions=16}+rope")
    y = attention(x)  # [B, T, C] -> [B, T, C]

Formulas, settings and deviations from the papers are what `pe-bench explain ID` prints; results are compared with
`pe-bench vectors` in the tests.
"""
from .attention import Attended, SelfAttention, attend, flex_attend
from .base import Dims, Encoding, Layer
from .combination import ENCODINGS, Combination, encoding

__all__ = [
    "ENCODINGS", "Attended", "Combination", "Dims", "Encoding", "Layer", "SelfAttention", "attend", "encoding",
    "flex_attend",
]
