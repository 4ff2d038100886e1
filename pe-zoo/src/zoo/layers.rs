//! # Layers: an encoding of its own for each layer
//!
//! ## What it does
//! Gives the layers of a model different encodings, in a pattern that repeats over the depth. In `rope/rope/rope/nope`
//! every fourth layer has no position encoding.
//!
//! ## Formula
//! Layer `l`, counted from 0, has the encoding `pattern[l mod n]`, where `n` is the length of the pattern.
//!
//! ## Shapes
//! The hooks of each layer are those of its encoding. Layers with the same expression share one encoding, which is built for
//! them alone: it counts them from 0, and a table that all layers share is shared by them.
//!
//! ## Settings
//! `pattern` (default `["rope", "nope"]`): an expression or a table for each layer of the pattern. In an expression the
//! layers are written between slashes, `rope/nope`, in brackets if other encodings are added: `sinusoidal+(rope/nope)`.
//! The model needs at least as many layers as the pattern; a last repetition may be cut off.
//!
//! An encoding that adds to the embeddings, chooses positions or carries state from layer to layer acts on the whole
//! model. Write it next to the layers, as `randomized(rope/nope)`; it is refused inside the pattern.
//!
//! ## Initial values
//! Those of the encodings.
//!
//! ## Deviations
//! None: the settings are names of encodings. Published models also change other things between layers.
//!
//! ## References
//! Yang et al. 2025, "Rope to Nope and Back Again: A New Hybrid Attention Strategy", arXiv 2501.18795.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::{self, ActsOn, Card, Composition};
use crate::compose::{Combined, Inner, owner_of_parameter};
use crate::encoding::{Constant, LayerContext, ScoreContext, StateContext, Update};
use crate::reference::{Heads, ScalarInput, ScalarReference};
use crate::{
    Combination, Cost, Dims, EncodingConfig, Hooks, PeError, PositionEncoding, ScoreMod, TokenState,
};

/// Settings: the encodings of the layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LayersConfig {
    /// Encodings of successive layers, repeated over the depth.
    pub pattern: Vec<Inner>,
}

impl Default for LayersConfig {
    fn default() -> Self {
        let encoding = |id| Inner::from(Combination::parse(id).expect("an encoding of the zoo"));
        Self { pattern: ["rope", "nope"].map(encoding).to_vec() }
    }
}

/// The encoding of a model whose layers have these encodings, in order: the shortest pattern that repeats over them.
///
/// # Errors
/// [`PeError::Combination`] if encodings cannot be those of layers, or if there are none.
pub fn of_layers(layers: &[Combination]) -> Result<Combination, PeError> {
    let repeats = |period: &usize| layers.iter().zip(&layers[*period..]).all(|(a, b)| a == b);
    match (1..=layers.len()).find(repeats) {
        Some(1) => Ok(layers[0].clone()),
        period => {
            let pattern = layers[..period.unwrap_or(0)].iter().cloned().map(Inner::from).collect();
            EncodingConfig::of::<ByLayer>(LayersConfig { pattern })?.try_into()
        }
    }
}

/// Encoding of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerPlace {
    /// Index among the different encodings of the pattern.
    pub kind: usize,
    /// Index of the layer among those of its encoding.
    pub layer: usize,
}

/// One of the different encodings of a pattern.
#[derive(Debug, Clone, Copy)]
pub struct LayerKind<'a> {
    /// Encoding that these layers share.
    pub encoding: &'a Combination,
    /// Number of layers that have it.
    pub layers: usize,
}

impl LayerKind<'_> {
    /// Sizes that the encoding is built for in a model of these sizes.
    pub fn dims(&self, dims: &Dims) -> Dims {
        Dims { layers: self.layers, ..*dims }
    }
}

/// Encodings of all layers of a model.
#[derive(Debug, Clone)]
pub struct Placement<'a> {
    /// The different encodings, in the order of their first layers.
    pub kinds: Vec<LayerKind<'a>>,
    /// LayerPlace of each layer.
    pub places: Vec<LayerPlace>,
}

impl LayersConfig {
    /// Assigns the encodings of the pattern to the layers of a model.
    pub fn placement(&self, layers: usize) -> Placement<'_> {
        let mut kinds: Vec<LayerKind<'_>> = Vec::new();
        let mut places = Vec::new();
        for inner in self.pattern.iter().cycle().take(layers) {
            let encoding = inner.combination();
            let kind = kinds.iter().position(|kind| kind.encoding == encoding);
            let kind = kind.unwrap_or_else(|| {
                kinds.push(LayerKind { encoding, layers: 0 });
                kinds.len() - 1
            });
            places.push(LayerPlace { kind, layer: kinds[kind].layers });
            kinds[kind].layers += 1;
        }
        Placement { kinds, places }
    }
}

/// Encodings of the layers of a model.
#[derive(Module, Debug)]
pub struct ByLayer {
    kinds: Vec<Combined>,
    #[module(skip)]
    places: Vec<LayerPlace>,
    #[module(skip)]
    fixed_keys: bool,
}

impl ByLayer {
    /// Calls a hook of a layer's encoding with the index of the layer among those that have it.
    fn in_layer<T>(
        &self,
        ctx: &LayerContext<'_>,
        hook: impl FnOnce(&Combined, &LayerContext<'_>) -> T,
    ) -> T {
        let LayerPlace { kind, layer } = self.places[ctx.layer];
        hook(&self.kinds[kind], &LayerContext { layer, ..*ctx })
    }
}

impl PositionEncoding for ByLayer {
    type Settings = LayersConfig;

    const CARD: Card = Card {
        id: "layers",
        label: "Layers",
        summary: "Gives the layers of a model different encodings, in a pattern that repeats.",
        parameters: "0",
        paper: "Yang et al. 2025",
        url: "https://arxiv.org/abs/2501.18795",
    };

    fn card(settings: &LayersConfig) -> Card {
        let count = settings.pattern.len();
        let kinds = settings.placement(count).kinds;
        let share = |kind: &LayerKind<'_>| format!("{} of {count} layers", kind.layers);
        let summary = kinds
            .iter()
            .map(|kind| format!("In {}: {}", share(kind), kind.encoding.card().summary));
        let learned = kinds.iter().filter(|kind| kind.encoding.card().parameters != "0");
        let parameters =
            learned.map(|kind| format!("{} (L: {})", kind.encoding.card().parameters, share(kind)));
        let parameters = parameters.collect::<Vec<_>>().join(" + ");
        Card {
            summary: card::text(summary.collect::<Vec<_>>().join(" ")),
            parameters: if parameters.is_empty() { "0" } else { card::text(parameters) },
            ..Self::CARD
        }
    }

    fn composition(_: &LayersConfig) -> Composition {
        Composition::Layers { field: "pattern" }
    }

    fn check(settings: &LayersConfig, dims: &Dims) -> Result<(), PeError> {
        let length = settings.pattern.len();
        let expected =
            format!("a pattern of 1 to {} layers, the number of layers of the model", dims.layers);
        let fits = (1..=dims.layers).contains(&length);
        PeError::require(
            fits,
            Self::CARD.id,
            "pattern",
            format!("{length} layers long"),
            expected,
        )?;
        let mut kinds = settings.placement(dims.layers).kinds.into_iter();
        kinds.try_for_each(|kind| kind.encoding.check(&kind.dims(dims)))
    }

    fn build(
        settings: &LayersConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let placement = settings.placement(dims.layers);
        let (mut kinds, mut fixed_keys) = (Vec::new(), true);
        for kind in placement.kinds {
            let encoding = kind.encoding.init(&kind.dims(dims), rng, device)?;
            // Keys that no transform changes are fixed as they are.
            let transforms = kind.encoding.properties()?.acts_on(ActsOn::QueryKey);
            fixed_keys &= encoding.fixed_keys() || !transforms;
            kinds.push(encoding);
        }
        Ok(Self { kinds, places: placement.places, fixed_keys })
    }

    fn param_count(settings: &LayersConfig, dims: &Dims) -> Option<usize> {
        let kinds = settings.placement(dims.layers).kinds.into_iter();
        kinds.map(|kind| kind.encoding.param_count(&kind.dims(dims))).sum()
    }

    fn cost(settings: &LayersConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let kinds = settings.placement(dims.layers).kinds.into_iter();
        let costs = kinds.map(|kind| kind.encoding.cost(&kind.dims(dims), len));
        Some(Cost::of_layers(costs.collect::<Option<Vec<_>>>()?.into_iter()))
    }

    fn horizon(settings: &LayersConfig, layers: usize, layer: usize) -> Option<usize> {
        let pattern = &settings.pattern;
        let own = pattern[layer % pattern.len()].combination();
        let is_own = pattern.iter().map(|other| other.combination() == own).collect::<Vec<_>>();
        // Layers with the same encoding among the first ones.
        let count = |layers: usize| {
            let of = |places: &[bool]| places.iter().filter(|is_own| **is_own).count();
            layers / pattern.len() * of(&is_own) + of(&is_own[..layers % pattern.len()])
        };
        own.horizon(count(layers), count(layer))
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        self.kinds.iter().all(|kind| kind.reference().is_some()).then_some(self)
    }

    fn max_len(&self) -> Option<usize> {
        self.kinds.iter().filter_map(Hooks::max_len).min()
    }

    fn constants(&self) -> Vec<Constant> {
        let of_kind = |(at, kind): (usize, &Combined)| {
            let name = format!("kinds.{at}");
            kind.constants().into_iter().map(move |constant| constant.within(&name))
        };
        self.kinds.iter().enumerate().flat_map(of_kind).collect()
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        let LayerPlace { kind, layer } = self.places[ctx.layer];
        // Encodings that read the state of the layer before are refused.
        let carried = TokenState::default();
        self.kinds[kind].state(&StateContext { layer, carried: &carried, ..*ctx })
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        self.in_layer(ctx, |encoding, ctx| encoding.transform_qk(q, k, ctx))
    }

    fn fixed_keys(&self) -> bool {
        self.fixed_keys
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        self.in_layer(ctx.layer, |encoding, layer| {
            encoding.score(&ScoreContext { layer, q: ctx.q, k: ctx.k })
        })
    }

    fn mixed_values(&self, ctx: &LayerContext<'_>) -> Option<Tensor<4>> {
        self.in_layer(ctx, Hooks::mixed_values)
    }

    fn update(&self, rows: TokenState, layer: usize, update: Update<'_>) -> TokenState {
        let LayerPlace { kind, layer } = self.places[layer];
        self.kinds[kind].update(rows, layer, update)
    }
}

impl ByLayer {
    /// Calls the reference of a layer's encoding with the problem as the encoding counts its layers.
    fn scalar<T>(
        &self,
        input: &ScalarInput,
        read: impl FnOnce(&dyn ScalarReference, &ScalarInput) -> T,
    ) -> T {
        let LayerPlace { kind, layer } = self.places[input.layer];
        let reference = self.kinds[kind].reference().expect("all encodings have one");
        read(reference, &ScalarInput { layer, ..input.clone() })
    }
}

impl ScalarReference for ByLayer {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        let transformed = self.scalar(input, |encoding, input| encoding.scalar_transformed(input));
        ScalarInput { layer: input.layer, ..transformed }
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        self.scalar(input, |encoding, input| encoding.scalar_logits(input))
    }

    fn scalar_sinks(&self, layer: usize) -> Option<Vec<f64>> {
        let LayerPlace { kind, layer } = self.places[layer];
        self.kinds[kind].reference()?.scalar_sinks(layer)
    }

    fn scalar_weights_of(&self, layer: usize, logits: &Heads) -> Heads {
        let LayerPlace { kind, layer } = self.places[layer];
        let reference = self.kinds[kind].reference().expect("all encodings have one");
        reference.scalar_weights_of(layer, logits)
    }

    fn differentiable_at(&self, parameter: usize, value: f64) -> bool {
        owner_of_parameter(&self.kinds, parameter).is_none_or(|owner| {
            let reference = self.kinds[owner.module].reference();
            reference.is_none_or(|own| own.differentiable_at(owner.parameter, value))
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[
        Examples {
            facts: "acts on query, key; shift invariant",
            texts: &["layers", "rope/rope/rope/nope"],
        },
        Examples {
            facts: "acts on query, key, logits; content dependent, reads vectors, shift invariant; biases kinds.parts.log_slopes",
            texts: &["rope+alibi{learning=per-layer}/cope/nope"],
        },
    ];

    const DIMS: Dims =
        Dims { layers: 6, width: 8, heads: 2, head_dim: 4, train_len: 8, max_len: 16 };

    fn built(text: &str) -> Combined {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        Combination::parse(text).unwrap().init(&DIMS, &mut rng, &crate::probe::device()).unwrap()
    }

    /// Six layers of the pattern `a/b/a/c` are a, b, a, c, a, b.
    #[test]
    fn layers_with_the_same_expression_share_one_encoding_that_counts_them_alone() {
        let settings: LayersConfig = serde_json::from_str(
            r#"{ "pattern": ["rope", "alibi", [{ "type": "rope" }], { "type": "nope" }] }"#,
        )
        .unwrap();
        let Placement { kinds, places } = settings.placement(6);
        let kinds = kinds.iter().map(|kind| (kind.encoding.id(), kind.layers)).collect::<Vec<_>>();
        assert_eq!(kinds, [("rope", 3), ("alibi", 2), ("nope", 1)]);
        let places = places.iter().map(|place| (place.kind, place.layer)).collect::<Vec<_>>();
        assert_eq!(places, [(0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (1, 1)]);
    }

    #[test]
    fn parameters_and_costs_are_those_of_the_layers() {
        let of = |text: &str| {
            let encoding = Combination::parse(text).unwrap();
            let cost = encoding.cost(&DIMS, 8).unwrap();
            (encoding.param_count(&DIMS).unwrap() as u64, cost.macs())
        };
        let (whole, mixed) = (of("cope"), of("cope/nope/nope"));
        assert_eq!([whole.0, whole.1], [3 * mixed.0, 3 * mixed.1]);
        // CoPE keeps the products that PaTH saves, but in another layer.
        let (cope, path, mixed) = (of("cope").1, of("path").1, of("cope/path").1);
        assert_eq!(2 * mixed, cope + path);
        let parameters = Combination::parse("cope/nope/nope").unwrap().card().parameters.clone();
        assert_eq!(parameters, "L D max_positions (L: 1 of 3 layers)");
    }

    #[test]
    fn a_model_with_fewer_layers_than_the_pattern_is_refused() {
        let dims = Dims { layers: 3, ..DIMS };
        let error = Combination::parse("rope/rope/rope/nope")
            .unwrap()
            .check(&dims)
            .unwrap_err()
            .to_string();
        assert!(error.contains("pattern is 4 layers long") && error.contains("1 to 3"), "{error}");
    }

    /// Without that, decoding would rotate all cached keys at every step.
    #[test]
    fn keys_stay_fixed_beside_layers_that_do_not_change_them() {
        assert!(built("rope/nope").fixed_keys() && built("rope/cope").fixed_keys());
        assert!(!built("rope/xpos").fixed_keys());
    }
}
