//! A wrong reference planted in an encoding, which the kit must not accept.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use super::{Check, conforms};
use crate::card::{ActsOn, Card, Composition};
use crate::encoding::{
    Constant, EmbedContext, LayerContext, PositionRequest, ScoreContext, StateContext, Update,
};
use crate::reference::{Heads, NoEffect, ScalarInput, ScalarReference};
use crate::{
    Combination, Cost, Dims, EncodingConfig, PeError, PositionEncoding, Positions, Registry,
    ScoreMod, TokenState, probe,
};

/// An encoding with the reference of another one.
#[derive(Module, Debug)]
struct Misread<E: PositionEncoding> {
    encoding: E,
    #[module(skip)]
    is_without_effect: bool,
}

/// Reference with a bias that no encoding has.
struct Biased;

impl ScalarReference for Biased {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        input.biased(&input.map(|_, _, i, j| 0.1 * input.distance(i, j) as f64))
    }
}

impl<E: PositionEncoding> PositionEncoding for Misread<E> {
    type Settings = E::Settings;

    const CARD: Card = E::CARD;

    fn build(
        settings: &E::Settings,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let acts_on = &probe::properties(&EncodingConfig::of::<E>(settings.clone())?)?.acts_on;
        let is_without_effect = acts_on.iter().all(|part| *part == ActsOn::Positions);
        Ok(Self { encoding: E::build(settings, dims, rng, device)?, is_without_effect })
    }

    fn check(settings: &E::Settings, dims: &Dims) -> Result<(), PeError> {
        E::check(settings, dims)
    }

    fn composition(settings: &E::Settings) -> Composition {
        E::composition(settings)
    }

    fn dims_beside(settings: &E::Settings, dims: &Dims) -> Dims {
        E::dims_beside(settings, dims)
    }

    fn param_count(settings: &E::Settings, dims: &Dims) -> Option<usize> {
        E::param_count(settings, dims)
    }

    fn cost(settings: &E::Settings, dims: &Dims, len: usize) -> Option<Cost> {
        E::cost(settings, dims, len)
    }

    /// Where no reference is right but the one without effect, another one is planted.
    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(if self.is_without_effect { &Biased } else { &NoEffect })
    }

    fn positions(&self, request: PositionRequest<'_>) -> Result<Positions, PeError> {
        self.encoding.positions(request)
    }

    fn embed(&self, x: Tensor<3>, ctx: &EmbedContext<'_>) -> Tensor<3> {
        self.encoding.embed(x, ctx)
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        self.encoding.state(ctx)
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        self.encoding.transform_qk(q, k, ctx)
    }

    fn fixed_keys(&self) -> bool {
        self.encoding.fixed_keys()
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        self.encoding.score(ctx)
    }

    fn mixed_values(&self, ctx: &LayerContext<'_>) -> Option<Tensor<4>> {
        self.encoding.mixed_values(ctx)
    }

    fn update(&self, rows: TokenState, layer: usize, update: Update<'_>) -> TokenState {
        self.encoding.update(rows, layer, update)
    }

    fn max_len(&self) -> Option<usize> {
        self.encoding.max_len()
    }

    fn constants(&self) -> Vec<Constant> {
        self.encoding.constants()
    }
}

/// Whether the kit rejects the encoding `E` at these settings with a wrong reference in place of its own: the one of attention
/// without a position encoding or, where that is right, one with a bias. A test of an encoding that it has no reference to
/// compare with, or none that the kit can tell from a wrong one, at the settings that it is checked at.
///
/// # Errors
/// [`PeError`] if the settings are refused.
pub fn rejects_wrong_reference<E: PositionEncoding>(
    settings: E::Settings,
) -> Result<bool, PeError> {
    let mut parts = vec![EncodingConfig::of::<Misread<E>>(settings)?];
    if let Composition::Over { default } = parts[0].composition() {
        parts.push(Registry::builtin().encoding(default)?);
    }
    let failures = conforms(&Combination::new(parts)?);
    Ok(failures.iter().any(|failure| failure.check == Check::EqualsReference))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected<E: PositionEncoding>() {
        let rejects = rejects_wrong_reference::<E>(E::Settings::default()).unwrap();
        assert!(rejects, "{}: a wrong reference passes", E::CARD.id);
    }

    /// One test per encoding.
    mod of {
        include!(concat!(env!("OUT_DIR"), "/planted.rs"));
    }
}
