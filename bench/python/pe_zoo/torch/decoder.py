"""A trained decoder, from the folder that `pe-bench export` wrote."""

import json
import pathlib

import torch
from torch import nn
from torch.nn import functional as F

from .attention import attend
from .base import Layer
from .combination import encoding

ACTIVATIONS = {
    "gelu": F.gelu,
    "relu": F.relu,
    "swi-glu": lambda x: F.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1],
    "ge-glu": lambda x: F.gelu(x.chunk(2, -1)[0], approximate="tanh") * x.chunk(2, -1)[1],
}


def load(folder):
    """The model of a folder with its weights, in evaluation mode."""
    folder = pathlib.Path(folder)
    data = (folder / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    weights = {}
    for name, tensor in header.items():
        own = bytearray(data[slice(*(start + at for at in tensor["data_offsets"]))])
        weights[name] = torch.frombuffer(own, dtype=torch.float32).view(tensor["shape"])
    return Decoder(json.loads((folder / "config.json").read_text()), weights).eval()


class Decoder(nn.Module):
    """A Transformer decoder: ids [B, T] to logits [B, T, V].

    Parameters have the names of `model.safetensors`, so a changed `state_dict()` can be stored again.
    """

    def __init__(self, config, weights):
        super().__init__()
        self.config = config
        self.encoding = encoding(
            config["encoding"],
            config["heads"],
            config["head_dim"],
            config["layers"],
            config["trained_tokens"],
            config["most_tokens"],
            config["width"],
        )
        of_encoding, own = {}, "encoding."
        for name, tensor in weights.items():
            if name.startswith(own):
                of_encoding[name.removeprefix(own)] = tensor
            else:
                # Not by register_parameter, which refuses names with dots.
                self._parameters[name] = nn.Parameter(tensor)
        if any(name not in of_encoding for name, _ in self.encoding.named_buffers()):
            raise ValueError(
                f"`{self.encoding.id}` has random constants, which these weights do not contain; load a folder of "
                "`pe-bench export`, which writes the constants too"
            )
        self.encoding.load_state_dict(of_encoding)

    def linear(self, name, x):
        return F.linear(x, self._parameters[f"{name}.weight"], self._parameters.get(f"{name}.bias"))

    def norm(self, name, x):
        gain, epsilon = self._parameters[f"{name}.weight"], self.config["norm_epsilon"]
        if self.config["norm"] == "layer-norm":
            return F.layer_norm(x, gain.shape, gain, self._parameters[f"{name}.bias"], epsilon)
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * gain

    def unit(self, name, u):
        """RMSNorm of queries or keys [B, H, T, D] if the model has it, of each head or of all."""
        gain = self._parameters.get(f"{name}.weight")
        if gain is None:
            return u
        vectors = u if len(gain) == u.shape[-1] else u.transpose(1, 2).flatten(2)
        epsilon = self.config["norm_epsilon"]
        vectors = vectors * torch.rsqrt(vectors.square().mean(-1, keepdim=True) + epsilon) * gain
        return vectors if vectors.dim() == 4 else vectors.unflatten(2, (u.shape[1], -1)).transpose(1, 2)

    def attention(self, index, x, positions, state):
        """Output, and the state of the tokens, from that of the layer before."""
        batch, tokens, _ = x.shape
        heads, kv_heads = self.config["heads"], self.config["kv_heads"]
        name = f"blocks.{index}"
        parts = self.linear(f"{name}.qkv", x).view(batch, tokens, -1, self.config["head_dim"])
        q, k, v = parts.transpose(1, 2).split([heads, kv_heads, kv_heads], 1)
        q, k = self.unit(f"{name}.qk_norm.queries", q), self.unit(f"{name}.qk_norm.keys", k)
        k, v = (u.repeat_interleave(heads // kv_heads, 1) for u in (k, v))
        attended = attend(self.encoding, q, k, Layer(index, positions, x, v, state))
        mixed = attended.output.transpose(1, 2).reshape(batch, tokens, -1)
        if f"{name}.gate.weight" in self._parameters:
            mixed = mixed * self.linear(f"{name}.gate", x).sigmoid()
        return self.linear(f"{name}.out", mixed), attended.state

    def feed_forward(self, index, x):
        name = f"blocks.{index}.feed_forward"
        activation = ACTIVATIONS[self.config["activation"]]
        return self.linear(f"{name}.down", activation(self.linear(f"{name}.up", x)))

    def part(self, index, name, x, apply):
        """A part of a block with its norms and the residual sum; `apply` computes the part."""
        place, norm = self.config["norm_place"], f"blocks.{index}.{name}_norm"
        output = apply(self.norm(norm, x) if place in ("pre", "both") else x)
        if place == "post":
            return self.norm(norm, x + output)
        if place == "output":
            output = self.norm(norm, output)
        elif place == "both":
            output = self.norm(f"blocks.{index}.output_norms.{name}", output)
        return x + output

    def forward(self, tokens):
        positions = self.encoding.positions(tokens.shape[1]).to(tokens.device)
        x = self._parameters["embedding.weight"][tokens] * self.config["embedding_scale"]
        x, state = self.encoding.embed(x, tokens, positions), None
        for index in range(self.config["layers"]):

            def attention(x, index=index):
                nonlocal state
                output, state = self.attention(index, x, positions, state)
                return output

            def feed_forward(x, index=index):
                nonlocal state
                output = self.feed_forward(index, x)
                state = self.encoding.after_feed_forward(state, output, index)
                return output

            x = self.part(index, "attention", x, attention)
            x = self.part(index, "feed_forward", x, feed_forward)
        x = x if self.config["norm_place"] == "post" else self.norm("last_norm", x)
        logits = self.linear("embedding" if self.config["tied_head"] else "head", x)
        cap = self.config["head_cap"]
        return logits if cap is None else cap * torch.tanh(logits / cap)
