//! # NoPE: no position encoding at all
//!
//! ## What it does
//! Adds nothing. A causal decoder can still infer positions, because each token sees a different
//! number of earlier ones.
//!
//! ## Formula
//! `logit[i, j] = q_i . k_j / sqrt(D)`
//!
//! ## Shapes
//! No hook is used.
//!
//! ## Settings
//! None.
//!
//! ## Deviations
//! None.
//!
//! ## References
//! Kazemnejad et al. 2023, "The Impact of Positional Encoding on Length Generalization in
//! Transformers", arXiv 2305.19466.

use burn::module::Module;
use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;

use crate::card::Card;
use crate::reference::ScalarReference;
use crate::settings::NoSettings;
use crate::{Cost, Dims, PeError, PositionEncoding};

/// The absence of a position encoding: every hook keeps its default.
#[derive(Module, Debug)]
pub struct Nope {}

impl PositionEncoding for Nope {
    type Settings = NoSettings;

    const CARD: Card = Card {
        id: "nope",
        label: "NoPE",
        summary: "Adds nothing: order is visible only through the causal mask.",
        parameters: "0",
        paper: "Kazemnejad et al. 2023",
        url: "https://arxiv.org/abs/2305.19466",
    };

    fn build(_: &NoSettings, _: &Dims, _: &mut ChaCha8Rng, _: &Device) -> Result<Self, PeError> {
        Ok(Self {})
    }

    fn cost(_: &NoSettings, _: &Dims, _: usize) -> Option<Cost> {
        Some(Cost::none())
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }
}

impl ScalarReference for Nope {}

#[cfg(test)]
pub(crate) mod tests {
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on nothing; ignores positions, shift invariant",
        texts: &["nope"],
    }];
}
