"""What vectors do not show: carried state, positions of a training, and the attention module."""

import itertools
import json
import pathlib
import re

import pytest
import torch

import pe_zoo.torch as zoo

FIXTURES = pathlib.Path(__file__).parents[3] / "pe-zoo/fixtures/vectors.json"
TAPES = [
    f"tape{{form={form},attention_update={update},feed_forward_update={{type={feed_forward}}}}}"
    for form in ("tensor", "vector", "tensor-not-equivariant", "vector-not-equivariant")
    for update, feed_forward in (
        ("code", "on"),
        ("full-mix", "on"),
        ("full-mix", "off"),
        ("none", "on"),
    )
]


def randomised(encoding, std=0.5):
    """The encoding in f64 with random parameters; many start at zero."""
    with torch.no_grad():
        for parameter in encoding.double().parameters():
            parameter.normal_(0, std)
    return encoding


def group(form, heads, channels, h, d):
    """Index of a component among those that are mixed with it, and all of these."""
    if form.startswith("tensor"):
        return h, [(e, d) for e in range(heads)]
    if form == "vector":
        return d, [(h, e) for e in range(channels)]
    return h * channels + d, list(itertools.product(range(heads), range(channels)))


def updated(encoding, z, weights, output):
    """State after attention and feed-forward block, in loops over the components."""
    tape, maps = encoding.parts[0], encoding.parts[0].layers[0]
    _, heads, tokens, parts, channels = z.shape
    components = list(itertools.product(range(heads), range(tokens), range(parts), range(channels)))
    for is_attention in (True, False):
        if (is_attention and tape.update == "none") or (not is_attention and maps.gate is None):
            continue
        before, after = z, z.clone()
        for h, t, p, d in components:
            n, members = group(tape.form, heads, channels, h, d)
            if is_attention:
                attended = lambda h, d: weights[0, h, t] @ before[0, h, :, p, d]
                code = tape.update == "code"
                mixed = [attended(h, d) if code else attended(*member) for member in members]
                update = maps.attention[-p][n] @ torch.stack(mixed)
            else:
                inside = maps.up[-p] @ torch.stack([before[0, g, t, p, e] for g, e in members])
                opened = maps.gate @ output[0, t]
                update = maps.down[-p][n] @ (opened * opened.sigmoid() * inside)
            after[0, h, t, p, d] += update
        z = after
    return z


@pytest.mark.parametrize("text", TAPES)
@torch.no_grad()
def test_tape_updates_its_state(text):
    torch.manual_seed(0)
    encoding = randomised(zoo.encoding(text, heads=2, head_dim=4, layers=2))
    draw = lambda *shape: torch.randn(*shape).double()
    q, k, v, x, output = (
        draw(1, 2, 3, 4),
        draw(1, 2, 3, 4),
        draw(1, 2, 3, 4),
        draw(1, 3, 8),
        draw(1, 3, 8),
    )
    layer = zoo.Layer(0, encoding.positions(3), x, v)
    attended = zoo.attend(encoding, q, k, layer)
    state = encoding.after_feed_forward(attended.state, output, 0)
    torch.testing.assert_close(state, updated(encoding, layer.state, attended.weights, output))
    next_layer = zoo.Layer(1, layer.positions, x, v, state)
    assert (zoo.attend(encoding, q, k, next_layer).logits != attended.logits).any()


@torch.no_grad()
def test_a_shift_changes_no_weight_of_tape():
    torch.manual_seed(0)
    encoding = randomised(zoo.encoding("tape", heads=2, head_dim=4, layers=2))
    draw = lambda *shape: torch.randn(*shape).double()
    q, k, v, x = draw(1, 2, 5, 4), draw(1, 2, 5, 4), draw(1, 2, 5, 4), draw(1, 5, 8)
    weights = []
    for shift in (0, 17):
        state = None
        for index in range(2):
            attended = zoo.attend(
                encoding, q, k, zoo.Layer(index, torch.arange(5) + shift, x, v, state)
            )
            state = encoding.after_feed_forward(attended.state, x, index)
        weights.append(attended.weights)
    torch.testing.assert_close(*weights)


@pytest.mark.parametrize("update, name", [("code", "code"), ("full-mix", "fullmix")])
@torch.no_grad()
def test_tape_has_the_numbers_of_the_authors_code(update, name):
    """Rows and weights are those of pe-zoo/fixtures/SOURCE.md."""
    rows = json.loads(FIXTURES.read_text())["vectors"]
    text = f"tape{{attention_update={update},feed_forward_update={{type=on,position_size=3}}}}"
    encoding = zoo.encoding(text, heads=2, head_dim=4, layers=2).double()
    grid = lambda *shape: torch.meshgrid(*(torch.arange(n).double() for n in shape), indexing="ij")
    (h, t, d), (u, c) = grid(2, 5, 4), grid(5, 8)
    q, k = (
        (1 + 0.7 * h + 0.31 * t + 0.53 * d).sin()[None],
        (0.4 + 0.9 * h + 0.23 * t + 0.61 * d).cos()[None],
    )
    v, x = (
        (0.2 + 0.5 * h + 0.17 * t + 0.29 * d).sin()[None],
        (0.3 + 0.41 * u + 0.19 * c).cos()[None],
    )
    maps = encoding.parts[0].layers[0]
    weights = {
        maps.attention[0]: lambda h, e: 0.2 * (1 + h + 2 * e).sin(),
        maps.up[0]: lambda a, h: 0.3 * (1 + a + h).cos(),
        maps.gate: lambda a, c: 0.2 * (0.5 + a + 0.3 * c).sin(),
        maps.down[0]: lambda h, a: 0.25 * (2 + h - a).sin(),
    }
    for parameter, values in weights.items():
        parameter.copy_(values(*grid(*parameter.shape)))

    def assert_row(row, ours):
        lines = [
            torch.tensor(line, dtype=torch.float64).flatten() for head in rows[row] for line in head
        ]
        torch.testing.assert_close(ours.flatten(), torch.cat(lines), rtol=1e-11, atol=1e-11)

    seen = torch.ones(5, 5, dtype=torch.bool).tril()
    attended = zoo.attend(encoding, q, k, zoo.Layer(0, torch.arange(5), x, v))
    assert_row("tape_layer0_logits(=rope_half)", attended.logits[0, :, seen])
    assert_row(f"tape_z_after_attn_{name}", attended.state[0].mT)
    state = encoding.after_feed_forward(attended.state, x, 0)
    assert_row(f"tape_z_after_ff_{name}", state[0].mT)
    attended = zoo.attend(encoding, q, k, zoo.Layer(1, torch.arange(5), x, v, state))
    assert_row(f"tape_layer1_logits_{name}_same_qk", attended.logits[0, :, seen])


@pytest.mark.parametrize(
    "text", ["cope{max_positions=4}+rope", "t5-bias", "fox", "path", "dape(alibi)", "pope"]
)
def test_attention_is_causal_and_treats_sequences_alike(text):
    torch.manual_seed(0)
    attention = zoo.SelfAttention(width=16, heads=2, encoding=text, train_len=8).double()
    randomised(attention.encoding)
    x = torch.randn(3, 8, 16).double()
    output = attention(x)
    torch.testing.assert_close(attention(x[1:2]), output[1:2])
    changed = x.clone()
    changed[:, 5:] = 0
    torch.testing.assert_close(attention(changed)[:, :5], output[:, :5])
    assert not torch.allclose(attention(changed)[:, 5:], output[:, 5:])
    output.sum().backward()
    assert all(parameter.grad is not None for parameter in attention.parameters())


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@torch.no_grad()
def test_attention_by_flex_attention():
    from torch.nn.attention.flex_attention import flex_attention

    attention = zoo.SelfAttention(width=16, heads=2, encoding="alibi+rope")
    x = torch.randn(2, 8, 16)
    expected = attention(x)
    attention.flex = flex_attention
    torch.testing.assert_close(attention(x), expected)


def test_layers_share_one_encoding():
    encoding = zoo.encoding("cope", heads=2, head_dim=8, layers=2)
    layers = [zoo.SelfAttention(16, 2, encoding, layer=index) for index in range(2)]
    with torch.no_grad():
        encoding.parts[0].tables[1].normal_()
    layers[1].qkv, layers[1].out = layers[0].qkv, layers[0].out
    x = torch.randn(1, 4, 16)
    assert not torch.allclose(layers[0](x), layers[1](x))


@pytest.mark.parametrize("text", ["abacus", "randomized(rope)", "tape"])
def test_positions_are_random_in_training_only(text):
    encoding = zoo.encoding(text, heads=2, head_dim=8, train_len=16)
    drawn = {tuple(encoding.positions(4).tolist()) for _ in range(20)}
    assert len(drawn) > 1 and all(list(p) == sorted(set(p)) for p in drawn)
    encoding.eval()
    assert len({tuple(encoding.positions(4).tolist()) for _ in range(5)}) == 1


@pytest.mark.parametrize(
    "evaluation, expected", [("spread", [0, 5, 10, 15]), ("contiguous", [0, 1, 2, 3])]
)
def test_positions_of_an_evaluation(evaluation, expected):
    text = f"randomized{{longest=20,evaluation={{type={evaluation}}}}}(rope)"
    assert (
        zoo.encoding(text, heads=1, head_dim=2, train_len=4).eval().positions(4).tolist()
        == expected
    )


def test_positions_past_a_table_are_refused():
    encoding = zoo.encoding("learned-absolute", heads=2, head_dim=8, train_len=16, max_len=20)
    assert len(encoding.positions(20)) == 20
    with pytest.raises(ValueError, match="at most 20"):
        encoding.positions(21)


def test_settings_beside_the_expression():
    encoding = zoo.encoding("cope", heads=2, head_dim=8, max_positions=5)
    assert encoding.parts[0].tables[0].shape == (8, 5)
    for text, settings in [
        ("cope+rope", {"max_positions": 5}),
        ("cope", {"max_position": 5}),
        ("coppe", {}),
    ]:
        with pytest.raises(ValueError):
            zoo.encoding(text, heads=2, head_dim=8, **settings)


@pytest.mark.parametrize("id", sorted(zoo.ENCODINGS))
def test_bfloat16_is_close_and_has_gradients(id):
    torch.manual_seed(0)
    encoding = zoo.encoding(id, heads=2, head_dim=8, layers=2)
    inputs = [torch.randn(1, 2, 300, 8) for _ in range(3)] + [torch.randn(1, 300, 16)]
    outputs = []
    for dtype in (torch.float64, torch.bfloat16):
        encoding.to(dtype)
        q, k, v, x = (tensor.to(dtype).requires_grad_() for tensor in inputs)
        output = zoo.attend(encoding, q, k, zoo.Layer(0, torch.arange(300), x, v)).output
        assert output.dtype == dtype
        output.sum().backward()
        outputs.append(output.double())
    assert (outputs[0] - outputs[1]).abs().mean() < 0.01


def test_what_acts_outside_of_attention_is_refused_inside():
    for text in ("abacus", "learned-absolute", "randomized(rope)", "sinusoidal+rope", "tape"):
        with pytest.raises(ValueError, match="acts outside"):
            zoo.SelfAttention(width=16, heads=2, encoding=text)


def test_the_code_of_the_guide_runs():
    guide = (pathlib.Path(__file__).parents[3] / "doc/guide/pytorch.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    assert len(blocks) == 3
    names = {}
    for block in blocks:
        exec(block, names)
    assert names["y"].shape == (2, 64, 256)
    assert names["logits"].shape == (2, 32, 64)
    for text in zoo.ENCODINGS:
        names["Decoder"](encoding=text)(torch.randint(64, (2, 32))).sum().backward()
