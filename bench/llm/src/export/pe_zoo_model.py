"""A trained decoder of pe-zoo in plain PyTorch.

    model = load("FOLDER")            # the folder that `pe-bench export` wrote
    logits = model(tokens)            # ids [B, T] to logits [B, T, V]

Parameters have the names of model.safetensors, so `model.state_dict()` can be changed, trained and stored again.
"""
import json
import math
import pathlib

import torch
from torch import nn
from torch.nn import functional as F


def load(folder):
    """Builds the model of a folder with its weights, in evaluation mode."""
    folder = pathlib.Path(folder)
    data = (folder / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8:start]), data[start:]
    header.pop("__metadata__", None)
    found = {}
    for name, t in header.items():
        found[name] = torch.frombuffer(bytearray(body[slice(*t["data_offsets"])]), dtype=torch.float32).view(t["shape"])
    return Decoder(json.loads((folder / "config.json").read_text()), found).eval()


class Encoding:
    """A position encoding without effect; its parameters are those of the model under its prefix."""

    def __init__(self, settings, parameters, prefix):
        self.settings, self.parameters, self.prefix = settings, parameters, prefix

    def of_layer(self, name, layer, part=""):
        """The parameter of a layer, or None; one alone is shared by all layers."""
        shared = self.parameters.get(f"{self.prefix}{name}.0{part}")
        return self.parameters.get(f"{self.prefix}{name}.{layer}{part}", shared)

    def embed(self, x):
        """Embeddings [B, T, C]."""
        return x

    def rotate(self, layer, u):
        """Queries or keys [B, H, T, D]."""
        return u

    def bias(self, layer, x, q, k, v):
        """Added to the logits [B, H, T, T] of rotated queries and keys; x is the input of the attention."""
        return 0.0


def distances(q):
    at = torch.arange(q.shape[2], device=q.device)
    return (at[:, None] - at[None, :]).clamp(min=0)


class LearnedAbsolute(Encoding):
    def embed(self, x):
        table = self.parameters[f"{self.prefix}table"]
        assert x.shape[1] <= len(table), f"{x.shape[1]} tokens, expected at most {len(table)}"
        return x + table[: x.shape[1]]


class Sinusoidal(Encoding):
    def embed(self, x):
        _, tokens, width = x.shape
        exponents = torch.arange(0, width, 2, dtype=torch.float64) / width
        angles = torch.arange(tokens, dtype=torch.float64)[:, None] * self.settings["base"] ** -exponents
        waves = torch.stack([angles.sin(), angles.cos()], -1).reshape(tokens, width)
        return x + waves.to(x)


class Rope(Encoding):
    def rotate(self, layer, u):
        tokens, rotated = u.shape[2], self.settings["rotated"]
        spectrum = next(s for s in self.settings["spectra"] if s["longest"] is None or tokens <= s["longest"])
        frequencies = torch.tensor(spectrum["frequencies"], dtype=torch.float64)
        dynamic = self.settings["dynamic"]
        if dynamic and tokens > dynamic["original"]:
            factor = dynamic["factor"] * tokens / dynamic["original"] - (dynamic["factor"] - 1)
            base = self.settings["base"] * factor ** (rotated / (rotated - 2))
            frequencies = base ** -(torch.arange(0, rotated, 2, dtype=torch.float64) / rotated)
        angles = torch.arange(tokens, dtype=torch.float64)[:, None] * frequencies
        cos, sin = ((wave * spectrum["attention_factor"]).to(u) for wave in (angles.cos(), angles.sin()))
        turning, rest = u[..., :rotated], u[..., rotated:]
        interleaved = self.settings["layout"] == "interleaved"
        a, b = (turning[..., 0::2], turning[..., 1::2]) if interleaved else turning.chunk(2, -1)
        turned = torch.stack([a * cos - b * sin, b * cos + a * sin], -1 if interleaved else -2).flatten(-2)
        return torch.cat([turned, rest], -1)


class Alibi(Encoding):
    def bias(self, layer, x, q, k, v):
        learned = self.of_layer("log_slopes", layer)
        slopes = torch.tensor(self.settings["slopes"]).to(q) if learned is None else learned.exp()
        return -slopes[:, None, None] * distances(q)


class T5Bias(Encoding):
    def bias(self, layer, x, q, k, v):
        table = self.of_layer("tables", layer)[: self.settings["buckets"]]
        count, exact = len(table), len(table) // 2
        scale = (count - exact) / math.log2(self.settings["max_distance"] / exact)
        far = lambda n: min(exact + math.floor(scale * math.log2(n / exact) + 1e-9), count - 1)
        buckets = torch.tensor([n if n < exact else far(n) for n in range(q.shape[2])], device=q.device)
        return table[buckets[distances(q)]].permute(2, 0, 1)


class Cope(Encoding):
    def bias(self, layer, x, q, k, v):
        slot = self.settings["slots"][layer]
        if slot is None:
            return 0.0
        table, root = self.of_layer("tables", slot), math.sqrt(q.shape[-1])
        keys = {"query-key": k, "query-value": v}.get(self.settings["gates"])
        if keys is None:
            keys = (x @ self.of_layer("key_weights", slot)).view(q.transpose(1, 2).shape).transpose(1, 2)
        divided = self.settings["convention"] != "equation"
        gates = torch.sigmoid(q @ keys.mT / (root if divided else 1.0)).tril()
        at = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=table.shape[1] - 1)
        scores, below = q @ table, at.floor()
        here, next_one = (scores.gather(-1, n.long()) for n in (below, at.ceil()))
        z = here + (next_one - here) * (at - below)
        if self.settings["convention"] == "code":
            return z / root
        return z if divided else z + (q @ k.mT) * (1 - 1 / root)


class Fox(Encoding):
    def bias(self, layer, x, q, k, v):
        fixed = self.settings["log_forget"]
        if self.settings["per_row"]:
            rows, keys = ((x @ self.of_layer(f"gates.{part}", layer)).unflatten(2, (q.shape[1], -1)).transpose(1, 2)
                          for part in ("rows", "keys"))
            gates = F.logsigmoid(rows @ keys.mT / math.sqrt(rows.shape[-1])).tril(-1)
            return gates.flip(-1).cumsum(-1).flip(-1)
        weight, offset = (self.of_layer("gates", layer, part) for part in (".weight", ".bias"))
        gates = self.of_layer("gates", layer) if weight is None else x @ weight + offset
        log_forget = F.logsigmoid(gates) if fixed is None else torch.tensor(fixed).to(q)
        sums = log_forget.expand(*x.shape[:2], -1).cumsum(1).transpose(1, 2)
        return (sums[..., :, None] - sums[..., None, :]).tril()


class Window(Encoding):
    def bias(self, layer, x, q, k, v):
        return -1e9 * (distances(q) >= self.settings["size"])


class Layers(Encoding):
    """Encodings of their own for the layers, each with its own count of layers."""

    def __init__(self, settings, parameters, prefix):
        super().__init__(settings, parameters, prefix)
        self.kinds = [build(kind, parameters, f"{prefix}kinds.{n}.") for n, kind in enumerate(settings["kinds"])]

    def place(self, layer):
        place = self.settings["places"][layer]
        return self.kinds[place["kind"]], place["layer"]

    def rotate(self, layer, u):
        encodings, layer = self.place(layer)
        for encoding in encodings:
            u = encoding.rotate(layer, u)
        return u

    def bias(self, layer, x, q, k, v):
        encodings, layer = self.place(layer)
        return sum(encoding.bias(layer, x, q, k, v) for encoding in encodings)


ACTIVATIONS = {"gelu": F.gelu, "relu": F.relu, "swi-glu": lambda x: F.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1],
               "ge-glu": lambda x: F.gelu(x.chunk(2, -1)[0], approximate="tanh") * x.chunk(2, -1)[1]}
KINDS = {"nope": Encoding, "learned-absolute": LearnedAbsolute, "sinusoidal": Sinusoidal, "rope": Rope,
         "alibi": Alibi, "t5-bias": T5Bias, "cope": Cope, "fox": Fox, "window": Window, "layers": Layers}


def build(encodings, parameters, prefix):
    """The encodings that act together in a model or a layer."""
    return [KINDS[e["kind"]](e, parameters, f"{prefix}{n}.") for n, e in enumerate(encodings)]


class Decoder(nn.Module):
    def __init__(self, config, weights):
        super().__init__()
        self.config = config
        # Not by register_parameter, which refuses names with dots.
        self._parameters.update((name, nn.Parameter(tensor)) for name, tensor in weights.items())
        self.encodings = build(config["encodings"], self._parameters, "encoding.")

    def linear(self, name, x):
        return F.linear(x, self._parameters[f"{name}.weight"], self._parameters.get(f"{name}.bias"))

    def norm(self, name, x):
        gain, epsilon = self._parameters[f"{name}.weight"], self.config["norm_epsilon"]
        if self.config["norm"] == "layer-norm":
            return F.layer_norm(x, gain.shape, gain, self._parameters[f"{name}.bias"], epsilon)
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * gain

    def feed_forward(self, layer, x):
        name = f"blocks.{layer}.feed_forward"
        activation = ACTIVATIONS[self.config["activation"]]
        return self.linear(f"{name}.down", activation(self.linear(f"{name}.up", x)))

    def unit(self, name, u):
        """RMSNorm of queries or keys [B, H, T, D], if the model has it: of each head, or of all together."""
        gain = self._parameters.get(f"{name}.weight")
        if gain is None:
            return u
        vectors = u if len(gain) == u.shape[-1] else u.transpose(1, 2).flatten(2)
        vectors = vectors * torch.rsqrt(vectors.square().mean(-1, keepdim=True) + self.config["norm_epsilon"]) * gain
        return vectors if vectors.dim() == 4 else vectors.unflatten(2, (u.shape[1], -1)).transpose(1, 2)

    def attention(self, layer, x):
        batch, tokens, _ = x.shape
        heads, kv_heads = self.config["heads"], self.config["kv_heads"]
        parts = self.linear(f"blocks.{layer}.qkv", x).view(batch, tokens, -1, self.config["head_dim"]).transpose(1, 2)
        q, k, v = parts.split([heads, kv_heads, kv_heads], 1)
        q, k = (self.unit(f"blocks.{layer}.qk_norm.{name}", u) for name, u in (("queries", q), ("keys", k)))
        k, v = (u.repeat_interleave(heads // kv_heads, 1) for u in (k, v))
        for encoding in self.encodings:
            q, k = encoding.rotate(layer, q), encoding.rotate(layer, k)
        logits = q @ k.mT / math.sqrt(q.shape[-1]) + sum(e.bias(layer, x, q, k, v) for e in self.encodings)
        hidden = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
        weights = logits.masked_fill(hidden, -math.inf).softmax(-1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, tokens, -1)
        if f"blocks.{layer}.gate.weight" in self._parameters:
            mixed = mixed * self.linear(f"blocks.{layer}.gate", x).sigmoid()
        return self.linear(f"blocks.{layer}.out", mixed)

    def forward(self, tokens):
        x = self._parameters["embedding.weight"][tokens] * self.config["embedding_scale"]
        for encoding in self.encodings:
            x = encoding.embed(x)
        place = self.config["norm_place"]
        for layer in range(self.config["layers"]):
            for part in ("attention", "feed_forward"):
                apply, norm = getattr(self, part), f"blocks.{layer}.{part}_norm"
                if place in ("pre", "both"):
                    output = apply(layer, self.norm(norm, x))
                    x = x + (self.norm(f"blocks.{layer}.output_norms.{part}", output) if place == "both" else output)
                elif place == "output":
                    x = x + self.norm(norm, apply(layer, x))
                else:
                    x = self.norm(norm, x + apply(layer, x))
        x = x if place == "post" else self.norm("last_norm", x)
        logits = self.linear("embedding" if self.config["tied_head"] else "head", x)
        cap = self.config["head_cap"]
        return logits if cap is None else cap * torch.tanh(logits / cap)
