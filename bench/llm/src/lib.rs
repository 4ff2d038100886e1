//! Models that were trained elsewhere: loading, generation, length extension, benchmarks, and export of trained models.
//!
//! | Module | Contents |
//! | --- | --- |
//! | [`pretrained`] | Llama-type models from folders and GGUF files, and kept weights |
//! | [`generate`](mod@generate) | text from a prompt |
//! | [`extend`] | evaluation beyond the trained length, with or without fine-tuning |
//! | [`benchmarks`] | published benchmarks from local files |
//! | [`export`] | trained models as files for PyTorch and transformers |
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests panic on failure"))]

pub mod benchmarks;
pub mod export;
pub mod extend;
pub mod generate;
pub mod pretrained;
