//! Position encodings for Transformers: one trait, every encoding, and the attention that applies them.
//!
//! # In a Burn model
//!
//! [`model::SelfAttention`] is a layer of causal self-attention with any encoding that acts inside attention, and
//! [`model::Decoder`] a whole decoder with any encoding:
//!
//! ```
//! use burn::tensor::{Device, Distribution, Int, Tensor};
//! use pe_zoo::Combination;
//! use pe_zoo::model::{Decoder, ModelConfig, SelfAttentionConfig};
//! use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
//!
//! let (device, mut rng) = (Device::flex(), ChaCha8Rng::seed_from_u64(0));
//! let layer = SelfAttentionConfig::new("cope{max_positions=16}+rope", 64, 4, 128).init(&mut rng, &device)?;
//! let x = Tensor::<3>::random([1, 10, 64], Distribution::Default, &device);
//! assert_eq!(layer.forward(x)?.dims(), [1, 10, 64]);
//!
//! let (config, encoding) = (ModelConfig::default(), Combination::parse("tape+learned-absolute")?);
//! let (mut weights, mut of_encoding) = (ChaCha8Rng::seed_from_u64(1), ChaCha8Rng::seed_from_u64(2));
//! let dims = config.dims(64, 128);
//! let decoder = Decoder::new(&config, 100, &encoding, &dims, &mut weights, &mut of_encoding, &device)?;
//! let tokens = Tensor::<2, Int>::zeros([1, 10], &device);
//! assert_eq!(decoder.predict(tokens, None)?.dims(), [1, 10, 100]);
//! # Ok::<(), pe_zoo::PeError>(())
//! ```
//!
//! Text such as `cope{max_positions=16}+rope` names any encoding with settings; [`compose`] has the grammar, [`zoo`] the
//! encodings. Both modules are Burn modules, so their parameters are trained, saved and moved with those of a model.
//!
//! # In attention of your own
//!
//! In each layer, [`attention::layer`] computes causal attention under an encoding that is built once for a model:
//!
//! ```
//! # use burn::tensor::{Device, Distribution, Tensor};
//! # use pe_zoo::attention::{LayerInput, Weights, layer};
//! # use pe_zoo::{Combination, Dims, Positions, TokenState};
//! # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
//! # let (device, mut rng) = (Device::flex(), ChaCha8Rng::seed_from_u64(0));
//! # let dims = Dims { layers: 2, width: 64, heads: 4, head_dim: 16, train_len: 64, max_len: 128 };
//! # let random = || Tensor::<4>::random([1, 4, 10, 16], Distribution::Default, &device);
//! # let (q, k, v) = (random(), random(), random());
//! # let x = Tensor::<3>::random([1, 10, 64], Distribution::Default, &device);
//! # let carried = TokenState::default();
//! let encoding = Combination::parse("cope{max_positions=16}+rope")?.inside_attention()?;
//! let encoding = encoding.init(&dims, &mut rng, &device)?;
//! let at = Positions::contiguous(0, 10);
//! let attended = layer(&encoding, LayerInput::new(0, &at, &x, [q, k, v], &carried), None, Weights::Drop);
//! assert_eq!(attended.output.dims(), [1, 4, 10, 16]);
//! # Ok::<(), pe_zoo::PeError>(())
//! ```
//!
//! `inside_attention` refuses an encoding that also acts elsewhere: on embeddings, on positions, or on a state of the tokens.
//! `x` is the input of the layer, `[B, T, C]`; `q`, `k` and `v` are its projections, `[B, H, T, D]`.
//!
//! A model that takes those too calls their hooks around its layers: positions of new tokens by
//! [`erased::positions`], [`Hooks::embed`] after the embedding, and [`Hooks::update`] after each layer, with the
//! [`TokenState`] that the layer before returned. `Decoder` in [`mod@model`] does, in full passes and in decoding. In training, random
//! positions are drawn from the generator [`PositionRequest::training_rng`](encoding::PositionRequest::training_rng).
//!
//! # An encoding of your own
//!
//! A type that implements [`PositionEncoding`] gets everything that the encodings of this crate have: a name in expressions,
//! combinations with others, the fused kernels, and the conformance kit of [`testkit`].
//!
//! ```
//! use burn::module::{Module, Param};
//! use burn::tensor::{Device, Tensor};
//! use pe_zoo::card::Card;
//! use pe_zoo::encoding::ScoreContext;
//! use pe_zoo::settings::NoSettings;
//! use pe_zoo::{Dims, PeError, PositionEncoding, Registry, ScoreMod, init, testkit};
//! use rand_chacha::ChaCha8Rng;
//!
//! /// Subtracts from each logit a learned slope per head times the distance.
//! #[derive(Module, Debug)]
//! struct LearnedSlope {
//!     /// `[H]`.
//!     slopes: Param<Tensor<1>>,
//! }
//!
//! impl PositionEncoding for LearnedSlope {
//!     type Settings = NoSettings;
//!
//!     const CARD: Card = Card {
//!         id: "learned-slope",
//!         label: "Learned slope",
//!         summary: "Subtracts from the logits a learned slope per head times the distance.",
//!         parameters: "H",
//!         paper: "this example",
//!         url: "",
//!     };
//!
//!     fn build(
//!         _: &NoSettings,
//!         dims: &Dims,
//!         _: &mut ChaCha8Rng,
//!         device: &Device,
//!     ) -> Result<Self, PeError> {
//!         Ok(Self { slopes: init::constant(0.1, [dims.heads], device) })
//!     }
//!
//!     fn score(&self, _: &ScoreContext<'_>) -> ScoreMod {
//!         ScoreMod::Slope(self.slopes.val())
//!     }
//! }
//!
//! let registry = Registry::builtin().with::<LearnedSlope>()?;
//! testkit::assert_conforms(&registry.parse("cope+learned-slope")?);
//! # Ok::<(), pe_zoo::PeError>(())
//! ```
//!
//! The folder `examples/outside` of the repository is a program with three such encodings, all of them terms of the
//! logits that their author supplies ([`ScoreMod::Term`]), and all commands of `pe-bench`.
//!
//! # Modules
//!
//! | Module | Contents |
//! | --- | --- |
//! | [`encoding`] | [`PositionEncoding`], the trait that encodings implement |
//! | [`registry`] | [`Registry`], the encodings available to a program by id |
//! | [`zoo`] | the encodings of this crate, one file each |
//! | [`compose`] | combinations of encodings, and the expressions that name them |
//! | [`attention`] | the engine that applies an encoding, and its cache for decoding |
//! | [`mod@model`] | a causal decoder and a layer of self-attention with any encoding |
//! | [`score`] | [`ScoreMod`], the modifiers of attention logits |
//! | [`positions`] | [`Positions`], the position of each row and column |
//! | [`erased`] | encodings whose type is not known when the model is compiled |
//! | [`card`], [`probe`] | descriptions of encodings, and properties found by running them |
//! | [`mod@settings`], [`init`] | parsing of settings, initial values of parameters |
//! | [`rotary`] | channel pairs, tables of angles and scaled frequencies of rotary encodings |
//! | [`cost`], [`count`] | costs by formula, and the number of multiplications executed |
//! | [`mod@reference`] | scalar f64 implementations of each paper's equations |
//! | [`testkit`] | the checks that every encoding must pass |
//! | [`ops`] | operations of models, fused where the device has them |
//! | [`device`] | name, memory and number types of a device |
//!
//! # Features
//!
//! | Feature | Backend |
//! | --- | --- |
//! | `flex` (default) | CPU, pure Rust, with fused SIMD kernels |
//! | `cuda` | NVIDIA GPUs, with fused CubeCL kernels |
//! | `wgpu` | Vulkan, Metal and WebGPU, with the same kernels |
//! | `tch` | LibTorch, with plain tensor operations |
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
pub mod model;
pub mod ops;
pub mod parts;
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

/// Tests the example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
