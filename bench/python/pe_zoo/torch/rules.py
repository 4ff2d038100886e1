"""Which encodings cannot act together."""

import itertools

from .base import LINEAR, Encoding, overrides

HOOKS = ("positions", "embed", "transform", "score_bias", "weights")


def reason_against(parts):
    """The reason why these encodings cannot act together, as in pe-bench; None if they can."""
    ids = [part.id for part in parts]
    if repeated := next((id for id in ids if ids.count(id) > 1), None):
        return f"`{repeated}` is given twice; write it once"
    if len(parts) == 1:
        return None
    for part in parts:
        if not any(acts(part, hook) for hook in HOOKS):
            return f"`{part.id}` has no effect together with other encodings; leave it out"
        if part.over and all(other.ignores_positions for other in parts if other is not part):
            return (
                f"`{part.id}` chooses positions, but no other encoding depends on them; combine it "
                "with an encoding that does, such as `rope`"
            )
    for one, other in itertools.permutations(parts, 2):
        both = lambda hook, one=one, other=other: acts(one, hook) and acts(other, hook)
        names = f"`{one.id}` and `{other.id}`"
        if both("positions"):
            return f"{names} both choose the positions; keep one of them"
        if one.chooses_real_positions and not takes_real_positions(other):
            return (
                f"`{one.id}` chooses fractional positions, but `{other.id}` reads whole positions; "
                "keep one of them"
            )
        if one.changes_content == other.changes_content == "replaced":
            return f"{names} both replace the products of queries and keys; keep one of them"
        if one.replaces_softmax and acts(other, "weights"):
            return (
                f"`{one.id}` replaces the softmax, but `{other.id}` adds to its denominator; "
                "keep one of them"
            )
        if one.distorts_vectors and other.reads_vectors:
            return f"`{one.id}` changes the vectors that `{other.id}` reads; keep one of them"
        if len({one.changes_content, other.changes_content} - {None}) == 2:
            return f"{names} both change the products of queries and keys; keep one of them"
        if both("transform") and not commute(one.turns, other.turns):
            return (
                f"{names} both transform queries and keys, and the order of their transforms matters; "
                "keep one of them"
            )
    return None


def reason_against_layers(pattern, encodings):
    """The reason why these lists of parts cannot be those of the layers of a pattern."""
    for period in range(1, len(pattern)):
        if pattern == pattern[:period] * (len(pattern) // period):
            return "the pattern repeats itself; write it once"
    for part in itertools.chain(*pattern):
        kind = encodings[part.id]
        if part.id == "layers":
            return "a pattern of layers within a pattern; write one pattern without brackets"
        for hook in ("embed", "positions", "after_attention", "after_feed_forward"):
            if getattr(kind, hook) is not getattr(Encoding, hook):
                return f"`{part.id}` acts on the whole model; write it next to the layers"
    return None


def takes_real_positions(part):
    """Whether an encoding reads positions that are not whole, or none."""
    return part.takes_real_positions or part.ignores_positions or part.id == "nope"


def commute(one, other):
    """Whether the order of two transforms with these `turns` is known: factors of rows come last."""
    return LINEAR in (one, other) or (one is not None and one == other)


def acts(part, hook):
    """Whether an encoding, or that of a layer, has its own form of a hook."""
    if part.id == "layers":
        return any(acts(inner, hook) for inner in part.inner)
    without_effect = {"transform": part.turns == (), "score_bias": not part.adds_to_logits}
    return overrides(part, hook) and not without_effect.get(hook, False)
