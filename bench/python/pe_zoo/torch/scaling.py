"""Scalings of RoPE: HuggingFace's `rope_scaling`, and `ntk`, `part-ntk`, `composed`, `clipped` and
`high-frequency`."""

import dataclasses
import math

from .base import choice, fields, frequencies

KINDS = {
    "default": {},
    "linear": {"factor": None},
    "ntk": {"factor": None},
    "dynamic": {"factor": None, "original_max_position_embeddings": None},
    "yarn": {
        "factor": None,
        "original_max_position_embeddings": None,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": True,
        "attention_factor": None,
        "mscale": None,
        "mscale_all_dim": None,
        "extrapolation_factor": 1.0,
    },
    "longrope": {
        "short_factor": None,
        "long_factor": None,
        "factor": 1.0,
        "attention_factor": None,
        "original_max_position_embeddings": None,
    },
    "llama3": {
        "factor": None,
        "low_freq_factor": None,
        "high_freq_factor": None,
        "original_max_position_embeddings": None,
    },
    "part-ntk": {
        "factor": None,
        "ntk_factor": 1.0,
        "extrapolation_factor": 1.0,
        "original_max_position_embeddings": None,
    },
    "composed": {"parts": None},
    "proportional": {"partial_rotary_factor": 1.0, "factor": 1.0},
    "clipped": {"pairs": 20, "hard": False},
    "high-frequency": {"original_max_position_embeddings": None},
}


def checked(scaling):
    """The scaling with the defaults of its kind filled in."""
    scaling = dict(scaling or {"rope_type": "default"})
    if "type" in scaling:
        scaling.setdefault("rope_type", scaling.pop("type"))
    kind = choice("scaling.rope_type", scaling["rope_type"], *KINDS, "none")
    filled = fields(scaling, tag="rope_type", **KINDS["default" if kind == "none" else kind])
    if kind == "composed":
        filled["parts"] = [checked(part) for part in filled["parts"]]
    return filled


def depends_on_length(scaling):
    if scaling["rope_type"] == "composed":
        return any(depends_on_length(part) for part in scaling["parts"])
    return scaling["rope_type"] in ("dynamic", "longrope")


@dataclasses.dataclass(frozen=True)
class Rotary:
    """Sizes of a rotation, and the frequencies to which earlier scalings changed the plain ones."""

    base: float
    channels: int
    dims: object
    frequencies: tuple

    @classmethod
    def plain(cls, base, channels, dims):
        return cls(base, channels, dims, tuple(frequencies(base, channels)))

    def ntk(self, factor):
        """Frequencies of a base raised so that the slowest pair is slowed down by the factor."""
        exponents = [m / (self.channels / 2 - 1) for m in range(self.channels // 2)]
        return [f * factor**-exponent for f, exponent in zip(self.frequencies, exponents)]

    def pair(self, turns, original):
        """Pair, a real number, that completes so many turns within the original length."""
        logs = [math.log(f) if f else -math.inf for f in self.frequencies]
        wanted = math.log(turns * math.tau / original)
        if self.frequencies == tuple(frequencies(self.base, self.channels)):
            return -wanted * self.channels / (2 * math.log(self.base))
        last = len(logs) - 1
        slower = next((m for m, log in enumerate(logs) if log <= wanted), last)
        left, right = max(slower, 1) - 1, min(max(slower, 1), last)
        if logs[left] <= logs[right] or math.isinf(logs[right]):
            return slower
        at = left + (logs[left] - wanted) / (logs[left] - logs[right])
        return min(max(at, 0), 2 * len(logs))

    def fast(self, turns, original, truncate=True):
        """1 for pairs with more turns than the first number, 0 with fewer than the second."""
        low, high = (self.pair(n, original) for n in turns)
        if truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = (min(max(end, 0), self.channels - 1) for end in (low, high))
        width = high - low if high > low else 0.001
        return [1 - min(max((m - low) / width, 0), 1) for m in range(self.channels // 2)]


def magnitude(factor, mscale=1.0):
    return 0.1 * mscale * math.log(factor) + 1 if factor > 1 else 1.0


def spectrum(scaling, rotary, length):
    """Frequencies per pair, and the factor of cosines and sines, for a sequence of this length."""
    kind, own = scaling["rope_type"], rotary.frequencies
    factor = scaling.get("factor")
    original = scaling.get("original_max_position_embeddings") or rotary.dims.train_len
    if kind == "linear":
        return [f / factor for f in own], 1.0
    if kind == "ntk":
        return rotary.ntk(factor), 1.0
    if kind == "dynamic":
        return rotary.ntk(factor * max(length, original) / original - (factor - 1)), 1.0
    if kind == "yarn":
        factor = factor or max(rotary.dims.max_len / original, 1.0)
        fast = rotary.fast(
            (scaling["beta_fast"], scaling["beta_slow"]), original, scaling["truncate"]
        )
        kept = [share * scaling["extrapolation_factor"] for share in fast]
        attention = scaling["attention_factor"] or magnitude(factor)
        if scaling["mscale"] and scaling["mscale_all_dim"]:
            attention = magnitude(factor, scaling["mscale"])
            attention /= magnitude(factor, scaling["mscale_all_dim"])
        return [f * (share + (1 - share) / factor) for f, share in zip(own, kept)], attention
    if kind == "longrope":
        divisors = scaling["long_factor" if length > original else "short_factor"]
        attention = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
        return [f / d for f, d in zip(own, divisors)], scaling["attention_factor"] or attention
    if kind == "llama3":
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        kept = [min(max((original * f / math.tau - low) / (high - low), 0), 1) for f in own]
        return [f * (share + (1 - share) / factor) for f, share in zip(own, kept)], 1.0
    if kind == "part-ntk":
        by_ntk = [share * scaling["ntk_factor"] for share in rotary.fast((1.25, 0.75), original)]
        kept = [
            share * scaling["extrapolation_factor"] for share in rotary.fast((16.0, 2.0), original)
        ]
        slow = [
            f / factor * (1 - n) + raised * n
            for f, raised, n in zip(own, rotary.ntk(factor), by_ntk)
        ]
        return [s * (1 - share) + f * share for s, f, share in zip(slow, own, kept)], 1.0
    if kind == "composed":
        attention = 1.0
        for part in scaling["parts"]:
            scaled, more = spectrum(part, rotary, length)
            rotary = dataclasses.replace(rotary, frequencies=tuple(scaled))
            attention *= more
        return list(rotary.frequencies), attention
    if kind == "proportional":
        turning = math.floor(scaling["partial_rotary_factor"] * rotary.channels / 2)
        return [f / factor if m < turning else 0.0 for m, f in enumerate(own)], 1.0
    if kind == "clipped":
        clipped = scaling["pairs"]
        first, last = len(own) - clipped, max(clipped - 1, 1)
        kept = [(1 + math.cos(math.pi * n / last)) / 2 for n in range(clipped)]
        kept = [0.0 if scaling["hard"] else share for share in kept]
        return [*own[:first], *(f * share for f, share in zip(own[first:], kept))], 1.0
    if kind == "high-frequency":
        return [f if f >= math.tau / original else 0.0 for f in own], 1.0
    return list(own), 1.0
