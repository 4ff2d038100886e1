//! Position encodings for Transformers: one trait, every encoding, and the attention that applies them.
//!
//! | Module | Contents |
//! | --- | --- |
//! | [`encoding`] | [`PositionEncoding`], the trait that encodings implement |
//! | [`registry`] | [`Registry`], the encodings available to a program by id |
//! | [`card`], [`probe`] | descriptions of encodings, and properties found by running them |
//! | [`score`] | [`ScoreMod`], the modifiers of attention logits |
//! | [`positions`] | [`Positions`], the position of each row and column |
//! | [`attention`] | the engine that applies an encoding, and its cache for decoding |
//! | [`ops`] | operations of models, fused where the device has them |
//! | [`device`] | name, memory and number types of a device |
//! | [`zoo`] | the encodings of this crate, one file each |
//! | [`rotary`] | channel pairs, tables of angles and scaled frequencies of rotary encodings |
//! | [`compose`] | combinations of encodings, and the expressions that name them |
//! | [`cost`], [`count`] | costs by formula, and the number of multiplications executed |
//! | [`mod@reference`] | scalar f64 implementations of each paper's equations |
//! | [`testkit`] | the checks that every encoding must pass |
//!
//! ```
//! use pe_zoo::{Combination, Dims};
//! use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
//!
//! let dims = Dims { layers: 2, heads: 4, head_dim: 16, train_len: 64, max_len: 128 };
//! let device = burn::tensor::Device::flex();
//! let mut rng = ChaCha8Rng::seed_from_u64(0);
//! let both = Combination::parse("cope{max_positions=16}+rope")?;
//! let encoding = both.init(&dims, &mut rng, &device)?;
//! assert_eq!(both.param_count(&dims), Some(2 * 16 * 16));
//! # let _ = encoding;
//! # Ok::<(), pe_zoo::PeError>(())
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests panic on failure"))]

pub mod attention;
pub mod card;
pub mod compose;
pub mod cost;
pub mod count;
pub mod device;
pub mod encoding;
pub mod erased;
mod error;
pub mod init;
mod kernels;
mod math;
pub mod ops;
mod parts;
pub mod positions;
pub mod probe;
pub mod reference;
pub mod registry;
pub mod rotary;
pub mod score;
pub mod settings;
mod state;
pub mod testkit;
pub mod zoo;

pub use compose::{Combination, Combined};
pub use cost::Cost;
pub use encoding::{Dims, PositionEncoding};
pub use erased::{AnyEncoding, Hooks};
pub use error::PeError;
pub use positions::Positions;
pub use registry::{EncodingConfig, Registry};
pub use score::ScoreMod;
pub use state::TokenState;
