//! The tiny model as llama.cpp would write it.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use candle_core::quantized::gguf_file::{self, Value as Gguf};
use candle_core::quantized::{GgmlDType, QTensor};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../llm/fixtures/tiny-llama");

pub(crate) type Metadata = Vec<(String, Gguf)>;
pub(crate) type Tensors = Vec<(String, QTensor)>;

/// A file whose settings and tensors were changed.
pub(crate) fn file(change: &dyn Fn(&mut Metadata, &mut Tensors)) -> Vec<u8> {
    let text = |text: &str| Gguf::String(text.to_owned());
    let words = (0..23).map(|id| text(&char::from(b'a' + id).to_string())).collect();
    let metadata = [
        ("general.architecture", text("llama")),
        ("general.alignment", Gguf::U32(32)),
        ("llama.block_count", Gguf::U32(2)),
        ("llama.embedding_length", Gguf::U32(16)),
        ("llama.feed_forward_length", Gguf::U32(24)),
        ("llama.attention.head_count", Gguf::U32(4)),
        ("llama.attention.head_count_kv", Gguf::U32(2)),
        ("llama.attention.layer_norm_rms_epsilon", Gguf::F32(1e-3)),
        ("llama.context_length", Gguf::U32(64)),
        ("llama.rope.freq_base", Gguf::F32(500.0)),
        ("llama.rope.dimension_count", Gguf::U32(4)),
        ("llama.rope.scaling.type", text("yarn")),
        ("llama.rope.scaling.factor", Gguf::F32(4.0)),
        ("llama.rope.scaling.original_context_length", Gguf::U32(8)),
        ("tokenizer.ggml.model", text("gpt2")),
        ("tokenizer.ggml.pre", text("smollm")),
        ("tokenizer.ggml.tokens", Gguf::Array(words)),
        ("tokenizer.ggml.token_type", Gguf::Array(vec![Gguf::I32(1); 23])),
        ("tokenizer.ggml.merges", Gguf::Array(Vec::new())),
        ("tokenizer.ggml.eos_token_id", Gguf::U32(2)),
    ];
    let mut metadata = metadata.map(|(key, value)| (key.to_owned(), value)).to_vec();
    let bytes = fs::read(Path::new(FOLDER).join("model.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors = file.iter().map(|(name, view)| tensor(name, &view)).collect::<Vec<_>>();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    change(&mut metadata, &mut tensors);
    let metadata = metadata.iter().map(|(key, value)| (key.as_str(), value)).collect::<Vec<_>>();
    let tensors = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect::<Vec<_>>();
    let mut out = Cursor::new(Vec::new());
    gguf_file::write(&mut out, &metadata, &tensors).unwrap();
    out.into_inner()
}

/// A tensor under llama.cpp's name, rows of queries and keys as it turns them.
fn tensor(name: &str, view: &safetensors::tensor::TensorView<'_>) -> (String, QTensor) {
    let mut values = view
        .data()
        .chunks(4)
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect::<Vec<_>>();
    let shape = view.shape();
    if name.contains("q_proj") || name.contains("k_proj") {
        // Heads of four rows: (0, 2) and (1, 3) turn together there, (0, 1) and (2, 3) here.
        let rows = values.chunks(shape[1]).map(<[f32]>::to_vec).collect::<Vec<_>>();
        let swapped = rows.chunks(4).flat_map(|head| [0, 2, 1, 3].map(|row| head[row].clone()));
        values = swapped.flatten().collect();
    }
    let parts = [
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
        ("model.layers", "blk"),
        ("input_layernorm", "attn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("post_attention_layernorm", "ffn_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ];
    let name =
        parts.iter().fold(name.to_owned(), |name, (theirs, ours)| name.replace(theirs, ours));
    let device = candle_core::Device::Cpu;
    let tensor = candle_core::Tensor::from_vec(values, shape, &device).unwrap();
    (name, QTensor::quantize(&tensor, GgmlDType::F32).unwrap())
}
