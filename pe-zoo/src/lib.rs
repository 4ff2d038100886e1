//! Position encodings for Transformers: one trait, every encoding, and the attention that applies them.
//!
//! # In a Burn model
//!
//! An encoding, or a combination of several, is built once for a model. It is a Burn module, so its parameters are
//! trained, saved and moved with those of the model. In each layer, [`attention::layer`] computes causal attention under it:
//!
//! ```
//! # use burn::tensor::{Device, Distribution, Tensor};
//! # use pe_zoo::attention::{LayerInput, Weights, layer};
//! # use pe_zoo::{Combination, Dims, Positions, TokenState};
//! # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
//! # let (device, mut rng) = (Device::flex(), ChaCha8Rng::seed_from_u64(0));
//! # let dims = Dims { layers: 2, heads: 4, head_dim: 16, train_len: 64, max_len: 128 };
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
//! `x` is the input of the layer, `[B, T, C]`; `q`, `k` and `v` are its projections, `[B, H, T, D]`. Text such as
//! `cope{max_positions=16}+rope` names any encoding with settings; [`compose`] has the grammar, [`zoo`] the encodings.
//!
//! # Attention with any encoding
//!
//! Some encodings act outside of attention: on embeddings, on positions, or on a state of the tokens that is passed from
//! layer to layer. This attention and its use support all of them, in full passes and in decoding:
//!
//! ```
//! use burn::module::Module;
//! use burn::nn::{Linear, LinearConfig};
//! use burn::tensor::{Device, Distribution, Int, Tensor};
//! use pe_zoo::attention::{LayerCache, LayerInput, Weights, layer};
//! use pe_zoo::compose::Combined;
//! use pe_zoo::encoding::{EmbedContext, PositionRequest, Update};
//! use pe_zoo::{Combination, Dims, Hooks, Positions, TokenState, erased};
//! use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
//!
//! #[derive(Module, Debug)]
//! struct SelfAttention {
//!     qkv: Linear,
//!     out: Linear,
//!     heads: usize,
//! }
//!
//! impl SelfAttention {
//!     /// `[B, T, C] -> [B, T, C]`, and the state of the tokens for the next layer.
//!     fn forward(
//!         &self,
//!         encoding: &Combined,
//!         index: usize,
//!         at: &Positions,
//!         x: &Tensor<3>,
//!         carried: &TokenState,
//!         cache: Option<&mut LayerCache>,
//!     ) -> (Tensor<3>, TokenState) {
//!         let [batch, tokens, width] = x.dims();
//!         let qkv = self.qkv.forward(x.clone());
//!         let projections = [0, 1, 2].map(|part| {
//!             let part = qkv.clone().narrow(2, part * width, width);
//!             part.reshape([batch, tokens, self.heads, width / self.heads]).swap_dims(1, 2)
//!         });
//!         let input = LayerInput::new(index, at, x, projections, carried);
//!         let attended = layer(encoding, input, cache, Weights::Drop);
//!         let mixed = attended.output.swap_dims(1, 2).reshape([batch, tokens, width]);
//!         let output = self.out.forward(mixed);
//!         // A model with feed-forward blocks gives the output of the block instead.
//!         let state = encoding.update(attended.carried, index, Update::FeedForward(&output));
//!         (output, state)
//!     }
//! }
//!
//! let (device, mut rng) = (Device::flex(), ChaCha8Rng::seed_from_u64(0));
//! let dims = Dims { layers: 2, heads: 4, head_dim: 8, train_len: 12, max_len: 64 };
//! let combination = Combination::parse("tape+learned-absolute")?;
//! let encoding = combination.init(&dims, &mut rng, &device)?;
//! let linear = |outputs| LinearConfig::new(32, outputs).init(&device);
//! let layers = [0, 1].map(|_| SelfAttention { qkv: linear(96), out: linear(32), heads: 4 });
//!
//! // Embeddings [B, S, C] and ids [B, S] of all tokens, and the caches of the layers: the output of the new tokens.
//! let run = |all: &Tensor<3>, ids: &Tensor<2, Int>, caches: &mut [LayerCache]| {
//!     let [_batch, tokens, _width] = all.dims();
//!     let cached_tokens = caches[0].len();
//!     let request =
//!         PositionRequest { cached_tokens, new_tokens: tokens - cached_tokens, training_rng: None };
//!     let at = erased::positions(&encoding, &combination.card().id, request)?;
//!     let new = all.clone().slice_dim(1, cached_tokens..tokens);
//!     let mut x = encoding.embed(new, &EmbedContext { at: &at, tokens: ids });
//!     let mut carried = TokenState::default();
//!     for (index, (layer, cache)) in layers.iter().zip(caches).enumerate() {
//!         (x, carried) = layer.forward(&encoding, index, &at, &x, &carried, Some(cache));
//!     }
//!     Ok::<_, pe_zoo::PeError>(x)
//! };
//! let all = Tensor::<3>::random([1, 12, 32], Distribution::Default, &device);
//! let ids = Tensor::<2, Int>::zeros([1, 12], &device);
//! let full = run(&all, &ids, &mut [LayerCache::default(), LayerCache::default()])?;
//!
//! // Eleven tokens, then one more from the cache: the same output.
//! let mut caches = [LayerCache::default(), LayerCache::default()];
//! run(&all.clone().slice_dim(1, 0..11), &ids.clone().slice_dim(1, 0..11), &mut caches)?;
//! let last = run(&all, &ids, &mut caches)?;
//! let difference = (full.slice_dim(1, 11..12) - last).abs().max().into_scalar::<f32>();
//! assert!(difference < 1e-5, "{difference}");
//! # Ok::<(), pe_zoo::PeError>(())
//! ```
//!
//! In training, random positions are drawn from the generator
//! [`PositionRequest::training_rng`](encoding::PositionRequest::training_rng).
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
//! | [`score`] | [`ScoreMod`], the modifiers of attention logits |
//! | [`positions`] | [`Positions`], the position of each row and column |
//! | [`erased`] | encodings whose type is not known when the model is compiled |
//! | [`card`], [`probe`] | descriptions of encodings, and properties found by running them |
//! | [`settings`], [`init`] | parsing of settings, initial values of parameters |
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
