#!/usr/bin/env python3
"""Writes random models of 3 k to 9 k weights of several kinds, and their logits in transformers, as fixtures.

  python tiny_kinds.py KIND bench/llm/fixtures/tiny-KIND

The logits are an entry of the file `tiny.json` beside the folder.

Needs torch, safetensors and transformers 4.36 or newer, for `qwen3` and `smollm3` 4.53, for `olmo2` 4.48,
for `olmo3`, `gemma2` and `gemma3` 5.0. Before 4.37, which has no Qwen2, the numbers of `qwen2` are those of
its equation: a Llama with biases of queries, keys and values, the bias of the attention's output being zero.
"""
import argparse
import json
import pathlib

import torch
import transformers
from safetensors.torch import save_file

SIZES = dict(
    vocab_size=23, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-3, tie_word_embeddings=False,
    bos_token_id=1, eos_token_id=2, initializer_range=0.5, rope_theta=500.0,
)


def mistral():
    config = transformers.MistralConfig(sliding_window=None, **SIZES)
    return transformers.MistralForCausalLM(config), config.to_dict(), "MistralForCausalLM"


def qwen2():
    if hasattr(transformers, "Qwen2ForCausalLM"):
        config = transformers.Qwen2Config(use_sliding_window=False, **SIZES)
        return transformers.Qwen2ForCausalLM(config), config.to_dict(), "Qwen2ForCausalLM"
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(attention_bias=True, **SIZES))
    for layer in model.model.layers:
        layer.self_attn.o_proj.bias.data.zero_()
    # The settings of Qwen2's own file, which has no `attention_bias`.
    settings = {"model_type": "qwen2", "hidden_act": "silu", "use_sliding_window": False, "sliding_window": 4096}
    return model, {**SIZES, **settings}, "LlamaForCausalLM with attention_bias, bias of the output 0"


def qwen3():
    config = transformers.Qwen3Config(use_sliding_window=False, head_dim=4, **SIZES)
    return transformers.Qwen3ForCausalLM(config), config.to_dict(), "Qwen3ForCausalLM"


def smollm3():
    # The fourth layer has no position encoding, and the fifth begins the pattern again.
    config = transformers.SmolLM3Config(**{**SIZES, "num_hidden_layers": 5}, pad_token_id=None)
    return transformers.SmolLM3ForCausalLM(config), config.to_dict(), "SmolLM3ForCausalLM"


def olmo2():
    config = transformers.Olmo2Config(pad_token_id=None, **SIZES)
    return transformers.Olmo2ForCausalLM(config), config.to_dict(), "Olmo2ForCausalLM"


def olmo3():
    # Every fourth layer sees all tokens, with a rotation of its own.
    rotations = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 500.0},
        "full_attention": {
            "rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 16,
        },
    }
    sizes = {name: size for name, size in SIZES.items() if name != "rope_theta"}
    config = transformers.Olmo3Config(
        pad_token_id=None, sliding_window=5, rope_parameters=rotations, **{**sizes, "num_hidden_layers": 5})
    return transformers.Olmo3ForCausalLM(config), config.to_dict(), "Olmo3ForCausalLM"


def mistral_window():
    config = transformers.MistralConfig(sliding_window=6, **SIZES)
    return transformers.MistralForCausalLM(config), config.to_dict(), "MistralForCausalLM"


def qwen3_wide():
    # The heads have twice as many channels as the width.
    config = transformers.Qwen3Config(use_sliding_window=False, head_dim=8, **SIZES)
    return transformers.Qwen3ForCausalLM(config), config.to_dict(), "Qwen3ForCausalLM"


# Of both Gemmas: heads with twice as many channels as the width, and another divisor of the logits than their root.
GEMMA = {
    **{name: size for name, size in SIZES.items() if name != "rope_theta"},
    "num_hidden_layers": 3, "tie_word_embeddings": True, "head_dim": 8, "query_pre_attn_scalar": 5,
    "sliding_window": 5, "attn_implementation": "eager", "pad_token_id": None,
}


def gemma2():
    # Bounds that small logits reach.
    config = transformers.Gemma2Config(
        attn_logit_softcapping=2.0, final_logit_softcapping=3.0, rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        **GEMMA)
    return transformers.Gemma2ForCausalLM(config), config.to_dict(), "Gemma2ForCausalLM"


def gemma3():
    sliding, full = "sliding_attention", "full_attention"
    rotations = {
        sliding: {"rope_type": "default", "rope_theta": 50.0},
        full: {"rope_type": "linear", "rope_theta": 500.0, "factor": 4.0},
    }
    config = transformers.Gemma3TextConfig(
        rope_parameters=rotations, layer_types=[sliding, sliding, full], **GEMMA)
    return transformers.Gemma3ForCausalLM(config), config.to_dict(), "Gemma3ForCausalLM"


KINDS = {"mistral": mistral, "qwen2": qwen2, "qwen3": qwen3, "smollm3": smollm3, "olmo2": olmo2, "olmo3": olmo3,
         "mistral-window": mistral_window, "qwen3-wide": qwen3_wide, "gemma2": gemma2, "gemma3": gemma3}


def write_expected(folder, expected):
    """Replaces the entry of a model in the file with the numbers of all of them, one line for each."""
    path = folder.parent / "tiny.json"
    models = json.loads(path.read_text()) if path.exists() else {}
    models[folder.name] = expected
    lines = [f" {json.dumps(name)}: {json.dumps(models[name])}" for name in sorted(models)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    torch.manual_seed(6)
    model, config, made_with = KINDS[arguments.kind]()
    model.eval()
    for name, weight in model.named_parameters():
        if "norm" in name:
            # Gemma stores the difference from 1.
            weight.uniform_(*((-0.5, 0.5) if "gemma" in arguments.kind else (0.5, 1.5)))
        elif name.endswith(".bias") and "o_proj" not in name:
            weight.uniform_(-1.0, 1.0)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    kept = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    kept = {name: tensor for name, tensor in kept.items() if not name.endswith(("o_proj.bias", "inv_freq"))}
    if config["tie_word_embeddings"]:
        del kept["lm_head.weight"]
    save_file(kept, arguments.folder / "model.safetensors")
    names = [*SIZES, "model_type", "hidden_act", "sliding_window", "use_sliding_window", "head_dim", "no_rope_layers",
             "rope_parameters", "transformers_version", "hidden_activation", "query_pre_attn_scalar",
             "attn_logit_softcapping", "final_logit_softcapping"]
    if "sliding_attention" in (config.get("layer_types") or []):
        names.append("layer_types")
    config = {name: config[name] for name in names if name in config}
    (arguments.folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    ids = [1, 5, 9, 22, 3, 3, 17, 0, 12, 8, 4, 19, 11, 6, 2, 7]
    expected = {
        "source": f"ci/peers/tiny_kinds.py {arguments.kind}; transformers {transformers.__version__}, {made_with}",
        "ids": ids,
        "logits": [[round(x, 5) for x in row] for row in model(torch.tensor([ids])).logits[0].tolist()],
    }
    write_expected(arguments.folder, expected)


if __name__ == "__main__":
    main()
