//! # Dynamic position bias: a network from distance to a bias per head
//!
//! ## What it does
//! Adds to each logit a number per head that a small network computes from the distance of the two tokens, or from the
//! logarithm of the distance, which changes little between far tokens.
//!
//! ## Formula
//! `logit[h, i, j] = q_i . k_j / sqrt(D) + network(d)[h]`, `d = i - j` or `ln(1 + i - j)`; `network` has `depth` hidden
//! layers `u -> silu(W u + b)` of `width` units and a linear output.
//!
//! ## Shapes
//! `score: Distance([H, N])`, `N` one more than the longest distance of the pass.
//!
//! ## Settings
//! `distance`: `linear` (default, as in x-transformers) or `log`.
//! `width` (default `C / 4`) and `depth` (2): hidden units and hidden layers, as in x-transformers.
//! `sharing`: `all-layers` (default, as in x-transformers) or `per-layer`.
//!
//! ## Initial values
//! Weights and biases uniform in `+-1 / sqrt(inputs)`, PyTorch's for linear layers, as in x-transformers.
//!
//! ## Deviations
//! Layer normalisation within the network, which is off by default in x-transformers, is not implemented. Queries see
//! no later keys, so there are no negative distances, which x-transformers also computes.
//!
//! ## References
//! Wang et al. 2021, "CrossFormer", arXiv 2108.00154, section 3.3, for images; for sequences `DynamicPositionBias` of
//! `lucidrains/x-transformers` at 9252ed7838.

use burn::module::{Module, Param};
use burn::tensor::activation::silu;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::ScoreContext;
use crate::ops::linear;
use crate::reference::distance::{self as scalar, ScalarLinear};
use crate::reference::{Heads, ScalarInput, ScalarReference, table_f64, values_f64};
use crate::score::Beyond;
use crate::settings::{Sharing, check_size, of_layer};
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, init};

/// Input of the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DistanceScale {
    /// The distance in positions.
    #[default]
    Linear,
    /// Logarithm of the distance plus 1.
    Log,
}

/// Largest number of hidden layers of a network.
const DEEPEST: usize = 1024;

crate::settings! {
    /// Settings of the dynamic position bias and its network.
    pub struct DynamicPositionBiasConfig {
        /// Input of the network.
        pub distance: DistanceScale = DistanceScale::Linear,
        /// Number of units of each hidden layer; `None`: a quarter of the model's width.
        pub width: Option<usize> = None,
        /// Number of hidden layers.
        pub depth: usize = 2,
        /// Which layers share a network.
        pub sharing: Sharing = Sharing::AllLayers,
    }
}

/// Linear map of the network.
#[derive(Module, Debug)]
pub struct BiasLayer {
    /// Weights of the map, `[inputs, outputs]`.
    pub weight: Param<Tensor<2>>,
    /// Biases of the outputs, `[outputs]`.
    pub bias: Param<Tensor<1>>,
}

/// Network from distances to biases.
#[derive(Module, Debug)]
pub struct BiasNetwork {
    /// Linear maps: of the hidden layers, then of the output.
    pub maps: Vec<BiasLayer>,
}

/// Bias computed from the distance by a network.
#[derive(Module, Debug)]
pub struct DynamicPositionBias {
    /// Networks: one, or one per layer of the model.
    pub networks: Vec<BiasNetwork>,
    #[module(skip)]
    distance: DistanceScale,
}

impl DynamicPositionBiasConfig {
    fn width(&self, dims: &Dims) -> usize {
        self.width.unwrap_or(dims.width / 4)
    }

    /// Numbers of inputs and outputs of the linear maps.
    fn shapes(&self, dims: &Dims) -> Vec<[usize; 2]> {
        let width = self.width(dims);
        let mut sizes = vec![1];
        sizes.resize(1 + self.depth, width);
        sizes.push(dims.heads);
        sizes.windows(2).map(|pair| [pair[0], pair[1]]).collect()
    }
}

impl BiasNetwork {
    /// Computes the biases `[H, N]` of distances `[N, 1]`.
    fn forward(&self, distances: Tensor<2>) -> Tensor<2> {
        let apply = |x, map: &BiasLayer| linear(x, map.weight.val(), Some(map.bias.val()));
        let (last, hidden) = self.maps.split_last().expect("a network has an output");
        let x = hidden.iter().fold(distances, |x, map| silu(apply(x, map)));
        apply(x, last).transpose()
    }
}

impl PositionEncoding for DynamicPositionBias {
    type Settings = DynamicPositionBiasConfig;

    const CARD: Card = Card {
        id: "dynamic-position-bias",
        label: "Dynamic position bias",
        summary: "Adds to the logits a number per head that a network computes from the distance.",
        parameters: "width (2 + (depth - 1) (width + 1) + H) + H",
        paper: "Wang et al. 2021",
        url: "https://arxiv.org/abs/2108.00154",
    };

    fn card(settings: &DynamicPositionBiasConfig) -> Card {
        match settings.sharing {
            Sharing::AllLayers => Self::CARD,
            Sharing::PerLayer => {
                Card { parameters: "L (width (2 + (depth - 1) (width + 1) + H) + H)", ..Self::CARD }
            }
        }
    }

    fn check(settings: &DynamicPositionBiasConfig, dims: &Dims) -> Result<(), PeError> {
        let expected = format!("1 to {DEEPEST}");
        let fits = (1..=DEEPEST).contains(&settings.depth);
        PeError::require(fits, Self::CARD.id, "depth", settings.depth, &expected)?;
        if let Some(width) = settings.width {
            return check_size(Self::CARD.id, "width", width);
        }
        let expected = "at least 4, because `width` is a quarter of it by default";
        let holds = settings.width(dims) > 0;
        PeError::require(holds, Self::CARD.id, "model.width", dims.width, expected)
    }

    fn build(
        settings: &DynamicPositionBiasConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let mut map = |[inputs, outputs]: [usize; 2]| {
            let bound = (inputs as f64).powf(-0.5);
            BiasLayer {
                weight: init::uniform(bound, [inputs, outputs], rng, device),
                bias: init::uniform(bound, [outputs], rng, device),
            }
        };
        let shapes = settings.shapes(dims);
        let networks = (0..settings.sharing.sets(dims.layers))
            .map(|_| BiasNetwork { maps: shapes.iter().map(|shape| map(*shape)).collect() })
            .collect();
        Ok(DynamicPositionBias { networks, distance: settings.distance })
    }

    fn param_count(settings: &DynamicPositionBiasConfig, dims: &Dims) -> Option<usize> {
        let of_map = |[inputs, outputs]: [usize; 2]| (inputs + 1) * outputs;
        let network: usize = settings.shapes(dims).into_iter().map(of_map).sum();
        Some(settings.sharing.sets(dims.layers) * network)
    }

    fn cost(settings: &DynamicPositionBiasConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let rows = dims.layers * len;
        let products: usize = settings.shapes(dims).iter().map(|shape| shape[0] * shape[1]).sum();
        let units = settings.depth * settings.width(dims);
        Some(
            Cost::none()
                .product("network at each distance", rows * products)
                .activation("SiLU", rows * units, 4)
                .pair_elementwise("sum of logits", rows * len * dims.heads),
        )
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let (at, device) = (ctx.layer.at, ctx.q.device());
        let key = format!("dynamic-position-bias {:?}", self.distance);
        let distances = at.memo(&key, &device, || {
            let values = (0..=at.longest_distance())
                .map(|n| match self.distance {
                    DistanceScale::Linear => n as f32,
                    DistanceScale::Log => (n as f64).ln_1p() as f32,
                })
                .collect::<Vec<_>>();
            Tensor::<1>::from_data(values.as_slice(), &device).unsqueeze_dim::<2>(1)
        });
        let table = of_layer(&self.networks, ctx.layer.layer).forward(distances);
        ScoreMod::Distance { table, beyond: Beyond::Last }
    }
}

impl ScalarReference for DynamicPositionBias {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let network = of_layer(&self.networks, input.layer);
        let maps = network.maps.iter().map(|map| ScalarLinear {
            weight: table_f64(&map.weight),
            bias: values_f64(&map.bias),
        });
        let maps = maps.collect::<Vec<_>>();
        input.biased(&scalar::dynamic(input, &maps, self.distance == DistanceScale::Log))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on logits; shift invariant; biases networks.maps.bias, networks.maps.weight",
        texts: &[
            "dynamic-position-bias",
            "dynamic-position-bias{distance=log,sharing=per-layer}",
            "dynamic-position-bias{width=3,depth=1}",
        ],
    }];

    const DIMS: Dims =
        Dims { layers: 3, width: 512, heads: 8, head_dim: 64, train_len: 8, max_len: 8 };

    #[test]
    fn the_default_network_is_that_of_x_transformers() {
        // Model width 512: 1 -> 128 -> 128 -> 8.
        let count = DynamicPositionBias::param_count(&DynamicPositionBiasConfig::default(), &DIMS);
        assert_eq!(count, Some(128 + 128 + 128 * 128 + 128 + 128 * 8 + 8));
    }

    #[test]
    fn empty_networks_are_refused_by_name() {
        let refused = |config: DynamicPositionBiasConfig, dims: &Dims| {
            DynamicPositionBias::check(&config, dims).unwrap_err().to_string()
        };
        let default = DynamicPositionBiasConfig::default();
        let narrow = Dims { width: 2, heads: 1, head_dim: 2, ..DIMS };
        // The default is the fault of the model's width, not of a setting that nobody gave.
        assert!(
            refused(default.clone(), &narrow).contains("model.width is 2, expected at least 4")
        );
        assert!(
            refused(DynamicPositionBiasConfig { width: Some(0), ..default.clone() }, &DIMS)
                .contains(": width is 0, expected at least 1")
        );
        assert!(
            refused(DynamicPositionBiasConfig { depth: 0, ..default }, &DIMS)
                .contains("depth is 0")
        );
    }
}
