"""Compares every encoding with the numbers of `pe-bench vectors`, in f64."""

import inspect
import pathlib
import subprocess
import sys

import pytest
import torch
from program import ids, run, vectors

import pe_zoo.torch as zoo

HERE = pathlib.Path(__file__).parent
VARIANTS = (HERE / "variants.txt").read_text().splitlines()
# Past all buckets, past the training length of 16 tokens, and past the entries of the tables.
LONG = [
    "path",
    "relative",
    "relative-capped",
    "rope{scaling={rope_type=dynamic,factor=2}}",
    "t5-bias",
    "t5-bias{num_buckets=10,max_distance=160}",  # distance 10 is on the edge of a bucket
]
EXACT = 1e-12  # of logits, weights, outputs and the loss
DIFFERENCE = 2e-8  # of gradients: vectors have central differences with eight to nine digits


def assert_close(name, ours, theirs, tolerance):
    """Compares tensors, by the largest difference relative to the largest number (at least 1)."""
    theirs = torch.tensor(theirs, dtype=torch.float64).reshape(ours.shape)
    error = (ours - theirs).abs().max().item() / max(theirs.abs().max().item(), 1.0)
    assert error < tolerance, f"{name}: relative error {error:.1e}"


def tensors(expected):
    """Queries, keys, values and `x` with a batch of one."""
    return [
        torch.tensor([expected[name]], dtype=torch.float64, requires_grad=True) for name in "qkvx"
    ]


def built(expected):
    """The encoding of the vectors, with their parameters."""
    encoding = zoo.encoding(expected["encoding"], **expected["dims"]).double()
    values = {
        weight_name(parameter["name"]): torch.tensor(parameter["values"], dtype=torch.float64).view(
            parameter["shape"]
        )
        for parameter in expected["parameters"]
    }
    named = dict(encoding.named_parameters())
    assert named.keys() == values.keys()
    constants = {
        weight_name(constant["name"]): torch.tensor(constant["values"]).view(constant["shape"])
        for constant in expected["constants"]
    }
    encoding.load_state_dict({**values, **constants})
    return encoding, [named[name] for name in values]


def weight_name(name):
    """The name that kept weights give a parameter: without `parts` and variants of enums."""
    return ".".join(word for word in name.split(".") if word != "parts" and not word[0].isupper())


def lower(logits):
    """Values of the columns up to the row, [H][row][column] one after the other."""
    return [value for head in logits for row in head for value in row]


@pytest.mark.parametrize("text", ids() + VARIANTS)
def test_logits_outputs_and_gradients(text):
    check(vectors(text))


@pytest.mark.parametrize("text", LONG)
def test_twenty_tokens(text):
    check(vectors(text, 20))


def check(expected):
    encoding, parameters = built(expected)
    q, k, v, x = inputs = tensors(expected)
    positions, tokens = torch.tensor(expected["positions"]), torch.tensor([expected["ids"]])
    flat = lambda name: torch.tensor(expected[name], dtype=torch.float64)

    embedded = encoding.embed(x, tokens, positions)
    assert_close("embedded", embedded, [expected["embedded"]], EXACT)
    loss = embedded.flatten() @ flat("embedding_weights")
    seen = torch.ones(len(positions), len(positions), dtype=torch.bool).tril()
    for index, layer in enumerate(expected["layers"]):
        attended = zoo.attend(encoding, q, k, zoo.Layer(index, positions, x, v))
        if layer["logits"]:
            assert_close(
                "logits", attended.logits[0, :, seen].flatten(), lower(layer["logits"]), EXACT
            )
        assert_close(
            "weights", attended.weights[0, :, seen].flatten(), lower(layer["weights"]), EXACT
        )
        assert_close("output", attended.output, [layer["output"]], EXACT)
        loss = loss + attended.output.flatten() @ flat("output_weights")
    assert abs(loss.item() - expected["loss"]) < EXACT * max(1, abs(expected["loss"]))

    loss.backward()
    ours = [
        tensor.new_zeros(tensor.shape) if tensor.grad is None else tensor.grad
        for tensor in inputs + parameters
    ]
    theirs = [[expected["gradients"][name]] for name in "qkvx"] + expected["gradients"][
        "parameters"
    ]
    names = [*"qkvx"] + [parameter["name"] for parameter in expected["parameters"]]
    for name, one, other in zip(names, ours, theirs, strict=True):
        assert_close(f"gradient of {name}", one, other, DIFFERENCE)


WITHOUT_SCORE_MOD = {
    "cope",
    "cope-alibi",
    "cope-mlp",
    "dape",
    "grape",
    "path",
    "sinks",
    "stick-breaking",
    "wall",
}


def inner(encoding):
    """The parts of a combination, those of its layers one by one."""
    parts = [[part] if part.id != "layers" else part.inner for part in encoding.parts]
    return [part for group in parts for part in group]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("text", ids() + VARIANTS)
@torch.no_grad()
def test_flex_attention(text):
    expected = vectors(text)
    encoding, _ = built(expected)
    q, k, v, x = (tensor.detach() for tensor in tensors(expected))
    for index, layer in enumerate(expected["layers"]):
        layer_of = zoo.Layer(index, torch.tensor(expected["positions"]), x, v)
        try:
            output = zoo.flex_attend(encoding, q, k, layer_of)
        except ValueError as error:
            assert "cannot be a score_mod" in str(error)
            refused = {part.id for part in inner(encoding) if part.without_score_mod}
            assert refused and refused <= WITHOUT_SCORE_MOD | {"fox", "rope"}, text
            assert "fox" not in refused or "per-row" in text
            assert "rope" not in refused or "far=" in text
        else:
            assert not {part.id for part in inner(encoding)} & (WITHOUT_SCORE_MOD - {"grape"}), text
            assert_close("output", output, [layer["output"]], EXACT)


def test_every_encoding_is_here():
    assert set(zoo.ENCODINGS) == set(ids())


@pytest.mark.parametrize("id", [id for id in ids() if id not in ("randomized", "layers")])
def test_settings_and_defaults(id):
    ours = inspect.signature(zoo.ENCODINGS[id]).parameters
    for name, theirs in vectors(id)["settings"]["settings"].items():
        default = ours[name].default
        if isinstance(theirs, dict):  # fields that are left out have the defaults of their kind
            assert (default or {"rope_type": "default"}).items() <= theirs.items(), name
        else:
            assert (list(default) if isinstance(default, tuple) else default) == theirs, name


REFUSED = """
rope/rope rope/nope/rope/nope (rope/nope)/alibi sinusoidal/nope randomized(rope)/nope tape/nope rope/
sinks+(stick-breaking/rope) kerple{weight=power}+logit-cap sinks+stick-breaking fope+pope
rope+rope alibi+nope cope+randomized abacus+tape cope+pope relative+xpos
cope{convention=equation}+path kerple{weight=power}+path rope+tape grape+rope
rope{layout=interleaved}+selective-rope xpos{layout=half-split}+rope{layout=interleaved}
grape{variant={type=additive}}+pope rope(alibi) dape(rope) rope{bas=1} cope{max_positions=2 rope+
{} cope{gates=none}
""".split()


@pytest.mark.parametrize("text", REFUSED)
def test_what_pe_bench_refuses_is_refused(text):
    assert run("vectors", text).returncode != 0
    with pytest.raises(ValueError):
        zoo.encoding(text, heads=3, head_dim=6, layers=2)


def test_a_clamped_kerple_passes_gradients_straight_through():
    encoding = zoo.encoding("kerple", heads=2, head_dim=4)
    with torch.no_grad():
        encoding.parts[0].p[0].fill_(-0.5)
    bias = encoding.parts[0].at(torch.tensor([3.0]), 0)
    bias.sum().backward()
    assert torch.allclose(
        bias, -0.01 * (1 + encoding.parts[0].a[0].clamp(min=0.01) * 3).log()[:, None]
    )
    assert (encoding.parts[0].p[0].grad != 0).all()


def test_the_example_that_checks_an_implementation():
    example = HERE.parent / "examples" / "check_your_own.py"
    assert subprocess.run([sys.executable, "-m", "pytest", "-q", example]).returncode == 0
