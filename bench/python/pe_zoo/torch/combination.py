"""The registry of encodings, combinations of them, and layers with different ones."""

import dataclasses
import inspect

from torch import nn

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
    softmax,
    stick_breaking,
    tape,
    temperature,
)
from .base import LINEAR, Dims, Encoding
from .expression import Part, parse
from .rules import acts, reason_against, reason_against_layers, takes_real_positions

def encoding(
    text, heads, head_dim, layers=1, train_len=512, max_len=None, model_width=None, **settings
):
    """Builds an encoding, or a combination, for a model of these sizes.

    `text` is an id or an expression of pe-bench, such as "cope{max_positions=16}+rope"; `settings`
    are further settings of an expression of one encoding. `train_len` is the longest training
    sequence in tokens, `max_len` the longest of all (default: the same), `model_width` the number of
    channels of a token (default: those of all heads).
    """
    parts = parse(text)
    if settings:
        if len(parts) > 1:
            raise ValueError(
                f"{text!r} has several parts; write the setting {min(settings)!r} in braces after its part"
            )
        parts[0].settings |= settings
    dims = Dims(heads, head_dim, layers, train_len, max_len or train_len, model_width)
    return Combination(dims, together(parts))


def together(parts):
    """The parts of a sum in order, brackets resolved."""
    parts = [flat for part in parts for flat in flattened(part)]
    if len(parts) == 1 and ENCODINGS[parts[0].id].over:
        parts += parse(ENCODINGS[parts[0].id].over)
    return sorted(parts, key=lambda part: (ENCODINGS[part.id].over is None, part.id))


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
        raise ValueError(
            f"`{part.id}` does not take this encoding in brackets; use `+`, as `{part.id}+…`"
        )
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
        return next((part for part in self.parts if acts(part, hook)), self.parts[0])

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
        for part in sorted(self.parts, key=lambda part: part.turns == LINEAR):
            q, k = part.transform(q, k, layer)
        return q, k

    def score_bias(self, q, k, layer):
        return sum(part.score_bias(q, k, layer) for part in self.parts)

    def weights(self, logits, layer):
        return self.chosen("weights").weights(logits, layer)

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


class Layers(Encoding):
    """The encodings of `pattern` in turn over the layers; Yang et al. 2025. Equal expressions share
    one encoding, which counts the layers that have it."""

    id = "layers"

    def __init__(self, dims, pattern=("rope", "nope")):
        super().__init__(dims)
        if len(pattern) > dims.layers:
            raise ValueError(
                f"the pattern has {len(pattern)} layers, expected at most {dims.layers}, the layers of the model"
            )
        pattern = [together(parse(sum) if isinstance(sum, str) else sum) for sum in pattern]
        if reason := reason_against_layers(pattern, ENCODINGS):
            raise ValueError(f"`layers`: {reason}")
        pattern = [pattern[index % len(pattern)] for index in range(dims.layers)]
        kinds = [kind for at, kind in enumerate(pattern) if kind not in pattern[:at]]
        self.places = [
            (kinds.index(kind), pattern[:index].count(kind)) for index, kind in enumerate(pattern)
        ]
        self.kinds = nn.ModuleList(
            Combination(dataclasses.replace(dims, layers=pattern.count(kind)), kind)
            for kind in kinds
        )
        turns = {part.turns for part in self.inner if acts(part, "transform")}
        self.turns = () if not turns else turns.pop() if len(turns) == 1 else None
        self.ignores_positions = all(part.ignores_positions for part in self.inner)
        self.reads_vectors = any(part.reads_vectors for part in self.inner)
        self.takes_real_positions = all(takes_real_positions(part) for part in self.inner)
        self.replaces_softmax = any(part.replaces_softmax for part in self.inner)
        self.distorts_vectors = any(part.distorts_vectors for part in self.inner)
        changes = (part.changes_content for part in self.inner)
        self.changes_content = next((change for change in changes if change), None)
        self.max_len = min((kind.max_len for kind in self.kinds if kind.max_len), default=None)
        reasons = (part.without_score_mod for part in self.inner)
        self.without_score_mod = next((reason for reason in reasons if reason), None)

    @property
    def inner(self):
        """The encodings of all layers."""
        return [part for kind in self.kinds for part in kind.parts]

    def place(self, index):
        """The encoding of a layer, and its index among the layers that have it."""
        kind, index = self.places[index]
        return self.kinds[kind], index

    def call(self, hook, *arguments, layer):
        """A hook of a layer's encoding."""
        kind, index = self.place(layer.index)
        return getattr(kind, hook)(*arguments, dataclasses.replace(layer, index=index))

    def state(self, layer):
        return self.call("state", layer=layer)

    def transform(self, q, k, layer):
        return self.call("transform", q, k, layer=layer)

    def score_bias(self, q, k, layer):
        return self.call("score_bias", q, k, layer=layer)

    def weights(self, logits, layer):
        return self.call("weights", logits, layer=layer)

    def score_term(self, q, k, layer):
        return self.call("score_term", q, k, layer=layer)

    def after_attention(self, weights, layer):
        return self.call("after_attention", weights, layer=layer)


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
        distance.Window,
        fox.Fox,
        fox.Wall,
        grape.Grape,
        Layers,
        path.Path,
        relative.Relative,
        relative.RelativeCapped,
        relative.RelativeProfiles,
        rotary.Fope,
        rotary.Pope,
        rotary.Repo,
        rotary.Rope,
        rotary.Xpos,
        selective_rope.SelectiveRope,
        softmax.LogitCap,
        softmax.Sinks,
        stick_breaking.StickBreaking,
        tape.Tape,
        temperature.Temperature,
    ]
}
