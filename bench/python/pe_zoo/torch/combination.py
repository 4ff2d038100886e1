"""The registry of encodings, and combinations of them."""

import inspect

from . import (
    absolute,
    cope,
    dape,
    distance,
    fox,
    grape,
    path,
    relative,
    rotary,
    selective_rope,
    stick_breaking,
    tape,
)
from .base import Dims, Encoding, overrides
from .expression import Part, parse
from .rules import reason_against

ENCODINGS = {
    kind.id: kind
    for kind in [
        Encoding,
        absolute.Abacus,
        absolute.LearnedAbsolute,
        absolute.Randomized,
        absolute.Sinusoidal,
        cope.Cope,
        cope.CopeAlibi,
        cope.CopeMlp,
        dape.Dape,
        distance.Alibi,
        distance.DynamicPositionBias,
        distance.Fire,
        distance.Kerple,
        distance.Sandwich,
        distance.T5Bias,
        fox.Fox,
        grape.Grape,
        path.Path,
        relative.Relative,
        relative.RelativeCapped,
        rotary.Fope,
        rotary.Pope,
        rotary.Rope,
        rotary.Xpos,
        selective_rope.SelectiveRope,
        stick_breaking.StickBreaking,
        tape.Tape,
    ]
}


def encoding(text, heads, head_dim, layers=1, train_len=512, max_len=None, **settings):
    """Builds an encoding, or a combination, for a model of these sizes.

    `text` is an id or an expression of pe-bench, such as "cope{max_positions=16}+rope"; `settings`
    are further settings of an expression of one encoding. `train_len` is the longest training
    sequence in tokens, `max_len` the longest of all (default: the same).
    """
    parts = parse(text)
    if settings:
        if len(parts) > 1:
            raise ValueError(f"{text!r} has several parts; write {min(settings)!r} in braces")
        parts[0].settings |= settings
    dims = Dims(heads, head_dim, layers, train_len, max_len or train_len)
    parts = [flat for part in parts for flat in flattened(part)]
    if len(parts) == 1 and ENCODINGS[parts[0].id].over:
        parts += parse(ENCODINGS[parts[0].id].over)
    parts.sort(key=lambda part: (ENCODINGS[part.id].over is None, part.id))
    return Combination(dims, parts)


def flattened(part):
    """The parts that a part of an expression consists of, brackets resolved."""
    if part.id not in ENCODINGS:
        raise ValueError(f"unknown encoding {part.id!r}; known: {', '.join(sorted(ENCODINGS))}")
    kind = ENCODINGS[part.id]
    known = list(inspect.signature(kind).parameters)[1:]
    for name in part.settings:
        if name not in known:
            raise ValueError(
                f"`{part.id}` has no setting {name!r}; known: {', '.join(known) or 'none'}"
            )
    if part.inner is None:
        return [part]
    if kind.over:
        inner = [flat for inner in part.inner for flat in flattened(inner)]
        return [Part(part.id, part.settings, None), *inner]
    if not kind.brackets or len(part.inner) > 1:
        raise ValueError(f"`{part.id}` takes no such encoding in brackets; combine with `+`")
    (setting, tag), inner = kind.brackets, part.inner[0]
    return [Part(part.id, {**part.settings, setting: {tag: inner.id, **inner.settings}}, None)]


class Combination(Encoding):
    """One or more encodings that act together. Parameters have the names of the
    weights that pe-bench keeps, such as `encoding.0.tables.1` if this module is `encoding`."""

    def __init__(self, dims, parts):
        super().__init__(dims)
        self.id = "+".join(part.id for part in parts)
        for at, part in enumerate(parts):
            sizes = dims
            for other in parts[:at] + parts[at + 1 :]:
                sizes = ENCODINGS[other.id].dims_beside(sizes, **other.settings)
            self.add_module(str(at), ENCODINGS[part.id](sizes, **part.settings))
        if reason := reason_against(self.parts):
            raise ValueError(f"`{self.id}`: {reason}")
        self.max_len = min((part.max_len for part in self.parts if part.max_len), default=None)

    @property
    def parts(self):
        return list(self.children())

    def chosen(self, hook):
        """The part with its own form of a hook, of which there is at most one, or the first."""
        return next((part for part in self.parts if overrides(part, hook)), self.parts[0])

    def positions(self, tokens):
        if self.max_len and tokens > self.max_len:
            raise ValueError(
                f"{tokens} tokens, expected at most {self.max_len}, the limit of `{self.id}`"
            )
        return self.chosen("positions").positions(tokens)

    def embed(self, x, ids, positions):
        for part in self.parts:
            x = part.embed(x, ids, positions)
        return x

    def state(self, layer):
        return self.chosen("state").state(layer)

    def transform(self, q, k, layer):
        for part in self.parts:
            q, k = part.transform(q, k, layer)
        return q, k

    def score_bias(self, q, k, layer):
        return sum(part.score_bias(q, k, layer) for part in self.parts)

    def weights(self, logits):
        return self.chosen("weights").weights(logits)

    def score_term(self, q, k, layer):
        for part in self.parts:
            if part.without_score_mod:
                raise ValueError(f"`{part.id}` cannot be a score_mod: {part.without_score_mod}")
        terms = [part.score_term(q, k, layer) for part in self.parts]
        terms = [term for term in terms if term is not None]
        if not terms:
            return None
        return lambda score, *at: sum(term(score, *at) for term in terms)

    def score_mod(self, q, k, layer):
        """The `score_mod` of `flex_attention` for transformed queries and keys; None if nothing is
        added. Raises ValueError with the reason if an encoding cannot be written as one.
        """
        term = self.score_term(q, k, layer)
        return term and (lambda score, *at: score + term(score, *at))

    def after_attention(self, weights, layer):
        return self.chosen("after_attention").after_attention(weights, layer)

    def after_feed_forward(self, state, output, index):
        return self.chosen("after_feed_forward").after_feed_forward(state, output, index)
