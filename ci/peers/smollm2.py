#!/usr/bin/env python3
"""Runs the same pretrained weights in transformers, in float32, as the reference of pe-bench's models.

  python smollm2.py fixture FOLDER > bench/llm/fixtures/smollm2.json     expected numbers of the tests
  python smollm2.py tiny bench/llm/fixtures/tiny-llama                   a random model of 3 k weights and its numbers
  python smollm2.py speed FOLDER [--prefill 2048] [--decode 64] [--threads 2] [--rounds 3]

FOLDER holds SmolLM2-135M-Instruct.Q4_1.gguf (`pe-bench data fetch smollm2` prints its path). Needs torch,
transformers, gguf and accelerate. `speed` prints one JSON line per round, comparable with
`pe-bench generate smollm2 --speed`.
"""
import argparse
import json
import pathlib
import sys
import time

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

import tiny_kinds

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
LONG = (
    "The ferry left at nine with forty-one passengers, two dogs and a piano. By noon the wind had turned, "
    "and the captain, who had crossed this water more often than anyone alive, told the cook to put out the "
    "stove. Nobody asked why. The piano stood in the bow under a sheet of canvas, and each time the boat fell "
    "into a trough one low string answered. At 12:45 they saw the island; at 13:10 they saw that it was the "
    "wrong one. The captain wrote both times into the log, closed it, and"
)
PROMPTS = [
    ("sentence", "The capital of France is"),
    ("digits", "I paid 1234 dollars, 7.5% more than in 2019, and"),
    ("rust", "fn main() {\n    let mut total = 0;\n    for n in 0..10 {\n"),
    ("chat", "<|im_start|>user\nName three colours.<|im_end|>\n<|im_start|>assistant\n"),
    ("unicode", "Straße 東京 🙂 don't  two\t\tthree"),
    ("long", LONG),
]
# The original length of each is 64, so that the long prompt exceeds it.
SCALINGS = [
    {"rope_type": "linear", "factor": 2.0},
    {"rope_type": "dynamic", "factor": 2.0},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
    {
        "rope_type": "longrope",
        "factor": 4.0,
        "original_max_position_embeddings": 64,
        "short_factor": [1.0 + 0.01 * n for n in range(32)],
        "long_factor": [1.0 + 0.125 * n for n in range(32)],
    },
    {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    },
]
ORIGINAL = 64


def load(folder):
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=GGUF, dtype=torch.float32)
    return model.eval(), AutoTokenizer.from_pretrained(folder, gguf_file=GGUF)


def rescaled(model, scaling):
    """Returns a model with the same weights and another rotary scaling."""
    theta = model.config.rope_parameters["rope_theta"]
    model.config.rope_parameters = {"rope_theta": theta, **scaling}
    model.config.max_position_embeddings = ORIGINAL
    model.model.rotary_emb = LlamaRotaryEmbedding(model.config)


def rows(model, ids):
    """Returns, for the last and a middle position, the largest logits, a few fixed ones, and the log-sum-exp."""
    logits = model(torch.tensor([ids])).logits[0]
    out = []
    for place in sorted({len(ids) // 2, len(ids) - 1}):
        row = logits[place]
        chosen = row.topk(min(8, len(row))).indices.tolist()
        chosen += [n for n in range(0, len(row), max(1, len(row) // 8)) if n not in chosen]
        out.append({
            "place": place,
            "tokens": chosen,
            "logits": [round(row[n].item(), 5) for n in chosen],
            "log_sum_exp": round(row.double().logsumexp(0).item(), 5),
        })
    return out


def greedy(model, ids, count):
    """Returns the greedy tokens up to the first one whose logit leads the second by less than 0.1."""
    out = []
    for _ in range(count):
        best, second = model(torch.tensor([ids + out])).logits[0, -1].topk(2).values.tolist()
        if best - second < 0.1:
            break
        out.append(model(torch.tensor([ids + out])).logits[0, -1].argmax().item())
    return out


@torch.no_grad()
def fixture(folder):
    model, tokenizer = load(folder)
    cases = []
    for name, text in PROMPTS:
        ids = tokenizer(text)["input_ids"]
        cases.append({
            "name": name, "text": text, "ids": ids, "decoded": tokenizer.decode(ids),
            "rows": rows(model, ids), "greedy": greedy(model, ids, 24),
        })
    ids = tokenizer(LONG)["input_ids"]
    scaled = []
    for scaling in SCALINGS:
        rescaled(model, scaling)
        scaled.append({"scaling": scaling, "rows": rows(model, ids)})
    json.dump({
        "source": f"ci/peers/smollm2.py fixture; transformers {transformers.__version__}, torch "
        f"{torch.__version__}, float32 from dequantised GGUF",
        "file": GGUF,
        "original_max_position_embeddings": ORIGINAL,
        "cases": cases,
        "scaled": scaled,
    }, sys.stdout, indent=1, ensure_ascii=False)
    print()


@torch.no_grad()
def tiny(folder):
    torch.manual_seed(6)
    config = LlamaConfig(
        vocab_size=23, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-3, tie_word_embeddings=False,
        bos_token_id=1, eos_token_id=2, initializer_range=0.5, dtype="float32",
        rope_parameters={
            "rope_theta": 500.0, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8,
        },
    )
    model = LlamaForCausalLM(config).eval()
    for name, weight in model.named_parameters():
        if "norm" in name:
            weight.uniform_(0.5, 1.5)
    folder = pathlib.Path(folder)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    ids = [1, 5, 9, 22, 3, 3, 17, 0, 12, 8, 4, 19, 11, 6, 2, 7]
    logits = model(torch.tensor([ids])).logits[0]
    expected = {
        "source": f"ci/peers/smollm2.py tiny; transformers {transformers.__version__}",
        "ids": ids,
        "logits": [[round(x, 5) for x in row] for row in logits.tolist()],
    }
    tiny_kinds.write_expected(folder, expected)


@torch.no_grad()
def speed(folder, o):
    torch.set_num_threads(o.threads)
    model, _ = load(folder)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, model.config.vocab_size, (1, o.prefill), generator=generator)
    for round_ in range(o.rounds + 1):
        start = time.perf_counter()
        # As in generation: keys and values of the whole prompt, logits of its last token only.
        out = model(ids, use_cache=True, logits_to_keep=1)
        prefill = time.perf_counter() - start
        cache, token = out.past_key_values, out.logits[:, -1:].argmax(-1)
        start = time.perf_counter()
        for _ in range(o.decode):
            out = model(token, past_key_values=cache, use_cache=True)
            token = out.logits[:, -1:].argmax(-1)
        decode = time.perf_counter() - start
        if round_ > 0:  # the first one warms up
            print(json.dumps({
                "peer": f"transformers-{transformers.__version__}", "threads": o.threads,
                "prefill_tokens": o.prefill, "prefill_tokens_per_second": round(o.prefill / prefill, 1),
                "decoded_tokens": o.decode, "decode_tokens_per_second": round(o.decode / decode, 2),
            }))


parser = argparse.ArgumentParser()
parser.add_argument("mode", choices=["fixture", "tiny", "speed"])
parser.add_argument("folder")
for option, default in [("prefill", 2048), ("decode", 64), ("threads", 2), ("rounds", 3)]:
    parser.add_argument(f"--{option}", type=int, default=default)
arguments = parser.parse_args()
if arguments.mode == "speed":
    speed(arguments.folder, arguments)
else:
    {"fixture": fixture, "tiny": tiny}[arguments.mode](arguments.folder)
