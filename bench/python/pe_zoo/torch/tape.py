"""Rotations that attention and feed-forward blocks update from layer to layer; Zhu et al. 2025."""

import torch
from torch import nn
from torch.nn import functional as F

from .base import Encoding, angles, choice, fields, normal
from .scaling import Rotary, checked, depends_on_length, spectrum


class Maps(nn.Module):
    """Maps of one layer; two in a list are for cosine and sine part, one is for both."""

    def __init__(self, dims, mixed, attention, feed_forward, size):
        super().__init__()
        zeros = lambda count, *shape: nn.ParameterList(
            nn.Parameter(torch.zeros(shape)) for _ in range(count)
        )
        self.attention = zeros(attention, mixed, mixed)
        self.up = zeros(feed_forward, size, mixed)
        self.gate = normal(0.02, size, dims.width) if feed_forward else None
        self.down = nn.ParameterList(normal(0.02, mixed, size) for _ in range(feed_forward))


class Tape(Encoding):
    """z = cos(n f_m) + i sin(n f_m) per head and channel; after the attention with weights A
    z_h += (sum over e of W_A[h, e]) (A z)_h, and after the feed-forward block with output x
    z_h += sum over a of W_D[h, a] silu(W_X x)_a (sum over e of W_U[a, e] z_e).

    The state is [B, H, T, 2, D], cosine and sine part."""

    id = "tape"
    brackets = ("scaling", "rope_type")

    def __init__(
        self,
        dims,
        base=10000.0,
        attention_update="code",
        feed_forward_update={"type": "on"},
        form="tensor",
        scaling=None,
        training_shift={"type": "random"},
    ):
        super().__init__(dims)
        forms = ("tensor", "vector", "tensor-not-equivariant", "vector-not-equivariant")
        self.form = choice("form", form, *forms)
        self.update = choice("attention_update", attention_update, "code", "full-mix", "none")
        mixes = {"vector": dims.head_dim, "vector-not-equivariant": dims.width}
        mixed = mixes.get(form, dims.heads)
        attention = (2 if "not" in form else 1) * (attention_update != "none")
        kind = choice("feed_forward_update.type", feed_forward_update["type"], "on", "off")
        feed_forward = (2 if form == "tensor-not-equivariant" else 1) * (kind == "on")
        size = feed_forward_update.get("position_size") or 4 * dims.heads
        self.layers = nn.ModuleList(
            Maps(dims, mixed, attention, feed_forward, size) for _ in range(dims.layers)
        )
        scaling = checked(scaling)
        if depends_on_length(scaling):
            raise ValueError(
                "scaling depends on the length, expected a scaling that is the same at every length"
            )
        rotary = Rotary.plain(base, dims.head_dim, dims)
        self.frequencies, self.factor = spectrum(scaling, rotary, dims.train_len)
        self.shift = self.longest_shift(dims, training_shift)

    @staticmethod
    def longest_shift(dims, setting):
        if choice("training_shift.type", setting["type"], "random", "none") == "none":
            return 0
        longest = fields(setting, max=None)["max"]
        return 2 * dims.train_len if longest is None else longest

    @staticmethod
    def dims_beside(dims, training_shift={"type": "random"}, **_):
        return dims.raised(max_len=dims.train_len + Tape.longest_shift(dims, training_shift))

    def positions(self, tokens):
        is_shifted = self.training and tokens <= self.dims.train_len
        return torch.arange(tokens) + (torch.randint(self.shift + 1, ()) if is_shifted else 0)

    def state(self, layer):
        if layer.state is not None:
            return layer.state
        angle = angles(layer.positions, self.frequencies * 2)  # both halves of the channels
        waves = self.factor * torch.stack([angle.cos(), angle.sin()], 1).to(layer.v)
        return waves.expand(*layer.v.shape[:2], -1, -1, -1)

    def transform(self, q, k, layer):
        cos, sin = layer.state.unbind(3)

        def turn(u):
            a, b = u.chunk(2, -1)
            return u * cos + torch.cat([-b, a], -1) * sin

        return turn(q), turn(k)

    def unfold(self, z):
        """The state with the components that are mixed on the last axis, [B, T, rest, 2, mixed]."""
        if self.form == "vector":
            return z.transpose(1, 2)
        if self.form == "vector-not-equivariant":
            return z.permute(0, 2, 3, 1, 4).flatten(3)[:, :, None]
        return z.permute(0, 2, 4, 3, 1)

    def fold(self, z):
        if self.form == "vector":
            return z.transpose(1, 2)
        if self.form == "vector-not-equivariant":
            return z[:, :, 0].unflatten(3, (self.dims.heads, -1)).permute(0, 3, 1, 2, 4)
        return z.permute(0, 4, 1, 3, 2)

    def after_attention(self, weights, layer):
        if self.update == "none":
            return layer.state
        maps = self.layers[layer.index].attention
        attended = torch.einsum("bhij,bhjpd->bhipd", weights, layer.state)
        if self.update == "full-mix":
            return layer.state + self.fold(through(maps, self.unfold(attended)))
        sums = torch.stack([maps[0].sum(1), maps[-1].sum(1)])
        return layer.state + self.fold(self.unfold(attended) * sums)

    def after_feed_forward(self, state, output, index):
        maps = self.layers[index]
        if maps.gate is None:
            return state
        gate = F.silu(output @ maps.gate.mT)[:, :, None, None]
        return state + self.fold(through(maps.down, through(maps.up, self.unfold(state)) * gate))


def through(maps, z):
    """The maps applied to the last axis of z [B, T, rest, 2, mixed]."""
    return torch.einsum("btrpm,pnm->btrpn", z, torch.stack([maps[0], maps[-1]]))
