"""Loads the weights that a training of pe-bench keeps."""

import json
import pathlib

import torch
from program import ids, run

import pe_zoo.torch as zoo

# Sizes that would follow from the lengths of the training are given.
SIZED = {
    "relative": "max_distance=9",
    "relative-capped": "max_distance=9",
    "relative-profiles": "max_distance=9",
    "learned-absolute": "max_len=99",
}
VARIANTS = [
    "cope{gates=separate-keys}+rope",
    "dape(fire)",
    "fox{gates={type=per-row}}",
    "fox{gates={type=bias-only}}",
    "grape{variant={type=multiplicative}}",
    "grape{variant={type=contextual}}",
    "grape{variant={type=additive}}",
    "path{forget={type=gate}}",
    "selective-rope{map={kind=full-rank},bias=true,gate={kind=per-channel}}",
]


def read(path):
    """The tensors of a safetensors file."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {
        name: torch.frombuffer(
            bytearray(data[slice(*(start + at for at in tensor["data_offsets"]))]),
            dtype=torch.float32,
        ).view(tensor["shape"])
        for name, tensor in header.items()
        if name.startswith("encoding.")
    }


def test_kept_weights_load_by_their_names(tmp_path):
    encodings = [f"{id}{{{SIZED[id]}}}" if id in SIZED else id for id in ids()] + VARIANTS
    suite = tmp_path / "suite.toml"
    suite.write_text(f"""
name = "weights"
title = "Weights"
about = "Names of parameters"
seeds = [0]
encodings = {json.dumps(encodings)}
model = {{ layers = 2, width = 12, heads = 2 }}
train = {{ steps = 1, batch_size = 1, len = 16 }}
eval = {{ lens = [16], samples = 1 }}
[[workload]]
name = "counting"
task = {{ kind = "counting", variables = 1 }}
""")
    result = run("run", str(suite), "--out", str(tmp_path / "out"), "--keep-weights", "last")
    assert result.returncode == 0, result.stderr
    loaded = 0
    for path in pathlib.Path(tmp_path / "out/weights").glob("*.safetensors"):
        text = json.loads(path.with_suffix(".json").read_text())["encoding"]["id"]
        model = torch.nn.Module()
        model.encoding = zoo.encoding(text, heads=2, head_dim=6, layers=2)
        constants = {f"encoding.{name}": value for name, value in model.encoding.named_buffers()}
        model.load_state_dict({**read(path), **constants})
        loaded += 1
    assert loaded == len(encodings)
