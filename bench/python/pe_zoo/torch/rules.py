"""Which encodings cannot act together."""

import itertools

from .base import overrides


def reason_against(parts):
    """The reason why these encodings cannot act together, as in pe-bench; None if they can."""
    ids = [part.id for part in parts]
    for id in ids:
        if ids.count(id) > 1:
            return f"`{id}` is given twice; write it once"
    if len(parts) == 1:
        return None
    members = [Member(part) for part in parts]
    for member in members:
        if not member.hooks:
            return f"`{member.id}` has no effect beside others; leave it out"
        others = [other for other in members if other is not member]
        if member.over and all(other.facts.ignores_positions for other in others):
            return f"`{member.id}` chooses positions, but `{others[0].id}` does not depend on them"
    for one, other in itertools.permutations(members, 2):
        if "positions" in one.hooks and "positions" in other.hooks:
            return f"`{one.id}` and `{other.id}` both choose the positions"
        if "weights" in one.hooks and "score_bias" in other.hooks:
            return f"`{one.id}` replaces the softmax, whose logits `{other.id}` adds to"
        if one.facts.distorts_vectors and other.facts.reads_vectors:
            return f"`{one.id}` changes the vectors that `{other.id}` reads"
        kinds = {one.facts.changes_content, other.facts.changes_content} - {None}
        if len(kinds) == 2:
            return f"`{one.id}` and `{other.id}` both change the products of queries and keys"
        turns = {one.facts.turns, other.facts.turns}
        if (
            "transform" in one.hooks
            and "transform" in other.hooks
            and (len(turns) == 2 or None in turns)
        ):
            return (
                f"the order matters in which `{one.id}` and `{other.id}` transform queries and keys"
            )
    return None


class Member:
    """A part, and the hooks that it overrides."""

    def __init__(self, part):
        self.id, self.over = part.id, part.over
        self.facts = getattr(part, "variant", part)
        hooks = ("positions", "embed", "transform", "score_bias", "weights")
        self.hooks = {hook for hook in hooks if overrides(self.facts, hook)}
        if self.facts.turns == ():
            self.hooks.discard("transform")
