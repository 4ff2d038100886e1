//! # DAPE: a bias that a small network adapts to the content
//!
//! ## What it does
//! For each pair of tokens, a small network maps the logits and biases of all heads to an addition
//! to the logit of each head, so that a fixed bias becomes one that depends on the content. The
//! second version also uses the neighbouring keys.
//!
//! ## Formula
//! `s = q.k / sqrt(D)`, `b` the base bias, `logit = s + b + g([s; b])`, `[s; b]` the `2 H` planes
//! (`H` without a base), `g(y) = W2 act(W1 y + c1) + c2` with LeakyReLU, at each pair. In the
//! convolution `W1` and `W2` also take keys `j - 1` and `j + 1`; keys after the row are 0.
//!
//! ## Shapes
//! `score: HeadMlp`; `W1` `[width, taps 2H]`, `W2` `[H, taps width]`.
//!
//! ## Settings
//! `base`: `{ type = "none" }`, `{ type = "alibi", .. }`, `{ type = "kerple", .. }` (default) or
//! `{ type = "fire", .. }`, each with that encoding's own settings.
//! `mixer`: `per-pair` (default, DAPE) or `convolution` (DAPE-V2, 1 x 3 along the keys).
//! `width` (32): hidden units. Each layer has its own network.
//!
//! ## Initial values
//! Networks: as PyTorch starts linear layers and convolutions, which the authors' code leaves as they are. Base: as the
//! encoding alone.
//!
//! ## Deviations
//! The authors' code gives each layer its own KERPLE; here this is `base.sharing`, with the default of
//! KERPLE. In the authors' convolution the last row of a sequence differs from the others: the
//! hidden units one key past it are cut off. Here no row is cut off, so that a token's logits do not
//! depend on whether another follows.
//!
//! ## References
//! Zheng et al. 2024, "DAPE", arXiv 2405.14722, and "DAPE V2", arXiv 2410.04798;
//! `chuanyang-Zheng/DAPE` at bde344a844.

mod base;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

pub use base::{Base, BaseBias};

use super::fire::NEGATIVE_SLOPE;
use super::kerple;
use crate::card::{Card, Composition};
use crate::encoding::ScoreContext;
use crate::reference::{Heads, ScalarInput, ScalarReference, dape, table_f64, values_f64};
use crate::score::HeadMlp;
use crate::settings::check_size;
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, init};

/// Columns of a row that the network sees at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mixer {
    /// A single pair of tokens.
    #[default]
    PerPair,
    /// A key and its two neighbours, in each of the two layers.
    Convolution,
}

impl Mixer {
    fn taps(self) -> usize {
        match self {
            Self::PerPair => 1,
            Self::Convolution => 3,
        }
    }
}

crate::settings! {
    /// Settings of DAPE and its base.
    pub struct DapeConfig {
        /// Base bias that the network adapts.
        pub base: Base = Base::Kerple(kerple::KerpleConfig::default()),
        /// Columns of a row that the network sees at once.
        pub mixer: Mixer = Mixer::default(),
        /// Number of hidden units.
        pub width: usize = 32,
    }
}

/// Network of one layer. Columns of the weights are ordered by tap, then by plane or hidden unit.
#[derive(Module, Debug)]
pub struct DapeNetwork {
    /// Weights of the hidden layer, `[width, taps planes]`.
    pub w1: Param<Tensor<2>>,
    /// Biases of the hidden layer, `[width]`.
    pub c1: Param<Tensor<1>>,
    /// Weights of the output layer, `[H, taps width]`.
    pub w2: Param<Tensor<2>>,
    /// Biases of the output layer, `[H]`.
    pub c2: Param<Tensor<1>>,
}

/// Bias that a network adapts to the content.
#[derive(Module, Debug)]
pub struct Dape {
    /// Static bias that the network adapts.
    pub base: Option<BaseBias>,
    /// Networks, one for each layer.
    pub networks: Vec<DapeNetwork>,
    #[module(skip)]
    mixer: Mixer,
    #[module(skip)]
    head_dim: usize,
}

impl DapeConfig {
    /// Number of input planes: the heads' logits, and the heads' biases if there is a base.
    fn planes(&self, dims: &Dims) -> usize {
        match self.base {
            Base::None {} => dims.heads,
            _ => 2 * dims.heads,
        }
    }

    /// Number of weights of one layer's network, without biases.
    fn weights(&self, dims: &Dims) -> usize {
        self.mixer.taps() * self.width * (self.planes(dims) + dims.heads)
    }
}

impl PositionEncoding for Dape {
    type Settings = DapeConfig;

    const CARD: Card = Card {
        id: "dape",
        label: "DAPE",
        summary: "Adds to the logits the output of a network that sees all heads' logits and biases.",
        parameters: "L ((2 H + 1) width + (width + 1) H) + base",
        paper: "Zheng et al. 2024",
        url: "https://arxiv.org/abs/2405.14722",
    };

    fn card(settings: &DapeConfig) -> Card {
        let parameters = match (settings.mixer, &settings.base) {
            (Mixer::PerPair, Base::None {}) => "L ((H + 1) width + (width + 1) H)",
            (Mixer::PerPair, _) => Self::CARD.parameters,
            (Mixer::Convolution, Base::None {}) => "L ((3 H + 1) width + (3 width + 1) H)",
            (Mixer::Convolution, _) => "L ((6 H + 1) width + (3 width + 1) H) + base",
        };
        Card { parameters, ..Self::CARD }
    }

    fn composition(_settings: &DapeConfig) -> Composition {
        Composition::Setting { field: "base", tag: "type" }
    }

    fn check(settings: &DapeConfig, dims: &Dims) -> Result<(), PeError> {
        check_size(Self::CARD.id, "width", settings.width)?;
        settings.base.check(dims)
    }

    fn build(
        settings: &DapeConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let base = settings.base.init(dims, rng, device)?;
        let (heads, width) = (dims.heads, settings.width);
        let inputs = [settings.planes(dims), width].map(|planes| settings.mixer.taps() * planes);
        // PyTorch's default: uniform in `+-1 / sqrt(inputs)`.
        let bounds = inputs.map(|inputs| (inputs as f64).powf(-0.5));
        let networks = (0..dims.layers)
            .map(|_| DapeNetwork {
                w1: init::uniform(bounds[0], [width, inputs[0]], rng, device),
                c1: init::uniform(bounds[0], [width], rng, device),
                w2: init::uniform(bounds[1], [heads, inputs[1]], rng, device),
                c2: init::uniform(bounds[1], [heads], rng, device),
            })
            .collect();
        Ok(Dape { base, networks, mixer: settings.mixer, head_dim: dims.head_dim })
    }

    fn param_count(settings: &DapeConfig, dims: &Dims) -> Option<usize> {
        Some(
            settings.base.param_count(dims)
                + dims.layers * (settings.weights(dims) + settings.width + dims.heads),
        )
    }

    fn cost(settings: &DapeConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let Dims { layers, heads, .. } = *dims;
        // A convolution computes hidden units for one key more than there are.
        let keys = match settings.mixer {
            Mixer::PerPair => len,
            Mixer::Convolution => len + 1,
        };
        let pairs = layers * len * keys;
        Some(
            Cost::none()
                .pair_product_kept("queries with keys", layers * len * len * dims.heads_width())
                .over_queries()
                .pair_product("network", pairs * settings.weights(dims))
                .pair_activation("LeakyReLU", pairs * settings.width, 1)
                .pair_elementwise("network's biases", pairs * (settings.width + heads))
                .pair_elementwise("sums of logits", 2 * layers * len * len * heads)
                .and(settings.base.cost(dims, len)),
        )
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let layer = ctx.layer.layer;
        let network = &self.networks[layer];
        let base = self.base.as_ref().map(|base| base.score(ctx));
        ScoreMod::HeadMlp(HeadMlp {
            base: base.map(Box::new),
            taps: self.mixer.taps(),
            w1: network.w1.val(),
            c1: network.c1.val(),
            w2: network.w2.val(),
            c2: network.c2.val(),
            negative_slope: NEGATIVE_SLOPE,
            // Another encoding may widen queries; the division by `sqrt(D)` does not change.
            scale: 1.0 / (self.head_dim as f64).sqrt(),
        })
    }
}

impl ScalarReference for Dape {
    /// Delegates to the base, whose parameters come first.
    fn differentiable_at(&self, parameter: usize, value: f64) -> bool {
        self.base.as_ref().is_none_or(|base| base.differentiable_at(parameter, value))
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let network = &self.networks[input.layer];
        let taps = self.mixer.taps();
        let by_tap = |weights: &Param<Tensor<2>>| -> Vec<Vec<Vec<f64>>> {
            let split = |row: Vec<f64>| {
                row.chunks(row.len() / taps).map(<[f64]>::to_vec).collect::<Vec<_>>()
            };
            table_f64(weights).into_iter().map(split).collect()
        };
        let mixer = dape::ScalarMixer {
            inner: by_tap(&network.w1),
            inner_bias: values_f64(&network.c1),
            outer: by_tap(&network.w2),
            outer_bias: values_f64(&network.c2),
        };
        let base = self.base.as_ref().map(|base| base.scalar(input));
        dape::logits(input, base.as_ref(), &mixer)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::zoo::alibi;
    use crate::zoo::tests::Examples;
    use serde_json::{Value, json};

    pub(crate) const EXAMPLES: &[Examples] = &[
        Examples {
            facts: "acts on logits; content dependent, mixes heads, shift invariant; biases base.Kerple.a, base.Kerple.p; dense on GPUs",
            texts: &[
                "dape",
                "dape{base={type=kerple,kernel=power},width=1}",
                "dape{mixer=convolution,width=5}",
            ],
        },
        Examples {
            facts: "acts on logits; content dependent, ignores positions, mixes heads, shift invariant; dense on GPUs",
            texts: &["dape{base={type=none},width=5}", "dape{mixer=convolution,base={type=none}}"],
        },
        Examples {
            facts: "acts on logits; content dependent, mixes heads, shift invariant; dense on GPUs",
            texts: &["dape{base={type=alibi}}"],
        },
        Examples {
            facts: "acts on logits; content dependent, mixes heads, shift invariant; biases base.Alibi.log_slopes; dense on GPUs",
            texts: &["dape{base={type=alibi,learning=per-layer}}"],
        },
        Examples {
            facts: "acts on logits; content dependent, mixes heads; biases base.Fire.networks.b1, base.Fire.networks.b2, base.Fire.networks.c, base.Fire.networks.multiplier, base.Fire.networks.w1, base.Fire.networks.w2; dense on GPUs",
            texts: &[
                "dape{base={type=fire,initial_len=20.0}}",
                "dape{mixer=convolution,base={type=fire},width=3}",
            ],
        },
    ];

    const DIMS: Dims =
        Dims { layers: 2, width: 12, heads: 3, head_dim: 4, train_len: 8, max_len: 8 };

    fn read(settings: Value) -> Result<DapeConfig, PeError> {
        let Value::Object(fields) = settings else { panic!("settings are a map") };
        crate::settings::read("dape", fields)
    }

    #[test]
    fn a_base_s_own_settings_are_read_and_its_unknown_ones_refused() {
        let nested = json!({ "base": { "type": "alibi", "slopes": "paper" } });
        let config = read(nested).unwrap();
        let Base::Alibi(alibi) = config.base else { panic!("another base") };
        assert_eq!(alibi.slopes, alibi::Slopes::Paper);
        for unknown in [
            json!({ "base": { "type": "alibi", "slope": "paper" } }),
            json!({ "base": { "type": "none", "slope": 1 } }),
        ] {
            let error = read(unknown).unwrap_err().to_string();
            assert!(error.contains("dape") && error.contains("`slope`"), "{error}");
        }
    }

    #[test]
    fn a_base_s_complaint_names_the_field_as_it_is_written_here() {
        let config = read(json!({ "base": { "type": "fire", "eps": 0.0 } })).unwrap();
        let error = Dape::check(&config, &DIMS).unwrap_err().to_string();
        assert!(error.starts_with("dape: base.eps is 0"), "{error}");
    }

    #[test]
    fn the_network_has_the_published_number_of_parameters() {
        // The number of parameters of one layer: (2H + 1) 32 + 33 H.
        let config = DapeConfig {
            base: Base::Alibi(alibi::AlibiConfig::default()),
            ..DapeConfig::default()
        };
        assert_eq!(Dape::param_count(&config, &DIMS), Some(2 * (7 * 32 + 33 * 3)));
    }
}
