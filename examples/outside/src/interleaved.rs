//! Interleaved layers (Yang et al. 2025, arXiv:2501.18795; Llama 4): in every n-th layer there is no position encoding, in the
//! others the encodings in brackets: `interleaved{every=4}(rope)`.
//!
//! `rope/rope/rope/nope` says the same without a wrapper. This file shows how one is written: it has no formula of its own and
//! passes every hook on to the encodings that its setting `inner` holds, which are those of the program's registry.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use pe_zoo::card::{self, Card, Composition};
use pe_zoo::compose::{Combined, Inner};
use pe_zoo::encoding::{
    Constant, EmbedContext, LayerContext, PositionRequest, ScoreContext, StateContext, Update,
};
use pe_zoo::reference::{Heads, ScalarInput, ScalarLayer, ScalarReference, Tokens, attention};
use pe_zoo::{
    Combination, Cost, Dims, Hooks, PeError, PositionEncoding, Positions, ScoreMod, TokenState,
};
use rand_chacha::ChaCha8Rng;

pe_zoo::settings! {
    /// Settings: `interleaved{every=4}(cope+rope)`.
    pub(crate) struct InterleavedConfig {
        /// Distance between two layers without an encoding, at least 2.
        every: usize = 4,
        /// Encodings of the other layers.
        inner: Inner = Inner::from(Combination::parse("rope").expect("an encoding of pe-zoo")),
    }
}

impl InterleavedConfig {
    /// Sizes for which the inner encodings are built: they see the layers that they act in only.
    fn inner_dims(&self, dims: &Dims) -> Dims {
        Dims { layers: dims.layers - dims.layers / self.every, ..*dims }
    }
}

/// Encodings that act in some of the layers.
#[derive(Module, Debug)]
pub(crate) struct Interleaved {
    inner: Combined,
    #[module(skip)]
    every: usize,
}

impl Interleaved {
    /// Index of a layer among those with an encoding; `None` if it has none.
    fn inner_layer(&self, layer: usize) -> Option<usize> {
        (!(layer + 1).is_multiple_of(self.every)).then(|| layer - layer / self.every)
    }

    /// Calls a hook of the inner encodings with the index of the layer among theirs; `None` in a layer without an encoding.
    fn in_layer<T>(
        &self,
        ctx: &LayerContext<'_>,
        hook: impl FnOnce(&Combined, &LayerContext<'_>) -> T,
    ) -> Option<T> {
        let layer = self.inner_layer(ctx.layer)?;
        Some(hook(&self.inner, &LayerContext { layer, ..*ctx }))
    }
}

impl PositionEncoding for Interleaved {
    type Settings = InterleavedConfig;

    const CARD: Card = Card {
        id: "interleaved",
        label: "Interleaved",
        summary: "Leaves the position encoding out of every n-th layer.",
        parameters: "0",
        paper: "Yang et al. 2025",
        url: "https://arxiv.org/abs/2501.18795",
    };

    fn card(settings: &InterleavedConfig) -> Card {
        let inner = settings.inner.combination().card();
        let parameters = match inner.parameters.as_str() {
            "0" => "0",
            of_inner => card::text(format!("{of_inner}, L - floor(L / {}) for L", settings.every)),
        };
        let summary = format!("{} In every layer but each {}th.", inner.summary, settings.every);
        Card { parameters, summary: card::text(summary), ..Self::CARD }
    }

    fn composition(_: &InterleavedConfig) -> Composition {
        Composition::Inner { field: "inner" }
    }

    fn dims_beside(settings: &InterleavedConfig, dims: &Dims) -> Dims {
        settings.inner.combination().dims_beside(dims)
    }

    fn check(settings: &InterleavedConfig, dims: &Dims) -> Result<(), PeError> {
        let every = settings.every;
        PeError::require(every >= 2, Self::CARD.id, "every", every, "at least 2")?;
        settings.inner.combination().check(&settings.inner_dims(dims))
    }

    fn build(
        settings: &InterleavedConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let inner = settings.inner.combination().init(&settings.inner_dims(dims), rng, device)?;
        Ok(Self { inner, every: settings.every })
    }

    fn param_count(settings: &InterleavedConfig, dims: &Dims) -> Option<usize> {
        settings.inner.combination().param_count(&settings.inner_dims(dims))
    }

    fn cost(settings: &InterleavedConfig, dims: &Dims, len: usize) -> Option<Cost> {
        settings.inner.combination().cost(&settings.inner_dims(dims), len)
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        self.inner.reference().map(|_| self as &dyn ScalarReference)
    }

    fn positions(&self, request: PositionRequest<'_>) -> Result<Positions, PeError> {
        self.inner.positions(request)
    }

    fn max_len(&self) -> Option<usize> {
        self.inner.max_len()
    }

    fn embed(&self, x: Tensor<3>, ctx: &EmbedContext<'_>) -> Tensor<3> {
        self.inner.embed(x, ctx)
    }

    /// State is passed through a layer without an encoding as it is.
    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        match self.inner_layer(ctx.layer) {
            Some(layer) => self.inner.state(&StateContext { layer, ..*ctx }),
            None => ctx.carried.clone(),
        }
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        let plain = (q.clone(), k.clone());
        self.in_layer(ctx, |inner, ctx| inner.transform_qk(q, k, ctx)).unwrap_or(plain)
    }

    fn fixed_keys(&self) -> bool {
        self.inner.fixed_keys()
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let score = |inner: &Combined, layer: &LayerContext<'_>| {
            inner.score(&ScoreContext { layer, q: ctx.q, k: ctx.k })
        };
        self.in_layer(ctx.layer, score).unwrap_or(ScoreMod::None)
    }

    fn constants(&self) -> Vec<Constant> {
        self.inner.constants().into_iter().map(|constant| constant.within("inner")).collect()
    }

    fn mixed_values(&self, ctx: &LayerContext<'_>) -> Option<Tensor<4>> {
        self.in_layer(ctx, pe_zoo::Hooks::mixed_values)?
    }

    fn update(&self, rows: TokenState, layer: usize, update: Update<'_>) -> TokenState {
        match self.inner_layer(layer) {
            Some(layer) => self.inner.update(rows, layer, update),
            None => rows,
        }
    }
}

impl Interleaved {
    fn inner_reference(&self) -> &dyn ScalarReference {
        self.inner.reference().expect("checked before this reference is given")
    }

    /// The problem of a layer for the inner encodings; `None` in a layer without an encoding.
    fn inner_input(&self, input: &ScalarInput) -> Option<ScalarInput> {
        let layer = self.inner_layer(input.layer)?;
        Some(ScalarInput { layer, ..input.clone() })
    }

    /// Results of the layers with an encoding, computed together, and of the others.
    fn in_stack(
        &self,
        layers: &[ScalarLayer],
        with: impl FnOnce(&[ScalarLayer]) -> Vec<Heads>,
        without: impl Fn(&ScalarInput) -> Heads,
    ) -> Vec<Heads> {
        let inner = layers.iter().filter_map(|layer| {
            let input = self.inner_input(&layer.input)?;
            Some(ScalarLayer { input, feed_forward: layer.feed_forward.clone() })
        });
        let mut with = with(&inner.collect::<Vec<_>>()).into_iter();
        let weights = layers.iter().map(|layer| match self.inner_layer(layer.input.layer) {
            Some(_) => with.next().expect("one result per layer"),
            None => without(&layer.input),
        });
        weights.collect()
    }
}

impl ScalarReference for Interleaved {
    fn scalar_embed(&self, x: &Tokens, ids: &[usize], positions: &[usize]) -> Tokens {
        self.inner_reference().scalar_embed(x, ids, positions)
    }

    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        match self.inner_input(input) {
            Some(inner) => {
                let layer = input.layer;
                ScalarInput { layer, ..self.inner_reference().scalar_transformed(&inner) }
            }
            None => input.clone(),
        }
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let inner = self.inner_input(input);
        inner.map_or_else(|| input.plain(), |inner| self.inner_reference().scalar_logits(&inner))
    }

    fn scalar_weights_of(&self, layer: usize, logits: &Heads) -> Heads {
        match self.inner_layer(layer) {
            Some(inner) => self.inner_reference().scalar_weights_of(inner, logits),
            None => attention::softmax(logits),
        }
    }

    fn scalar_stack(&self, layers: &[ScalarLayer]) -> Vec<Heads> {
        let without = |input: &ScalarInput| attention::softmax(&input.plain());
        self.in_stack(layers, |inner| self.inner_reference().scalar_stack(inner), without)
    }

    fn scalar_stack_beside(
        &self,
        layers: &[ScalarLayer],
        weigh: &dyn Fn(&ScalarInput, Heads) -> Heads,
    ) -> Vec<Heads> {
        let outer = |layer: usize| {
            layers
                .iter()
                .map(|other| other.input.layer)
                .find(|other| self.inner_layer(*other) == Some(layer))
        };
        // The encodings beside this one see the layers of the model.
        let weigh_inner = |input: &ScalarInput, logits: Heads| {
            let layer = outer(input.layer).expect("a layer with an encoding");
            weigh(&ScalarInput { layer, ..input.clone() }, logits)
        };
        let with =
            |inner: &[ScalarLayer]| self.inner_reference().scalar_stack_beside(inner, &weigh_inner);
        self.in_stack(layers, with, |input| weigh(input, input.plain()))
    }

    fn differentiable_at(&self, parameter: usize, value: f64) -> bool {
        self.inner_reference().differentiable_at(parameter, value)
    }
}
