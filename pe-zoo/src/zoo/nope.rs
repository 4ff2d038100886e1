//! # NoPE: no position encoding at all
//!
//! ## What it does
//! Nothing. A causal decoder can still count, because each token sees a different number of others.
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
use serde::{Deserialize, Serialize};

use crate::meta::{Claims, Conduct, PeMeta};
use crate::reference::ScalarReference;
use crate::{Dims, EncodingConfig, PeError, PositionEncoding};

/// The facts.
pub const META: PeMeta = PeMeta {
    id: "nope",
    label: "NoPE",
    summary: "Adds nothing: order is felt only through the causal mask.",
    sites: &[],
    claims: Claims {
        shift_invariant: true,
        content_dependent: false,
        limited_length: false,
        depends_on_length: false,
    },
    parameters: "0",
    paper: "Kazemnejad et al. 2023",
    url: "https://arxiv.org/abs/2305.19466",
};

/// No settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {}

/// No position encoding.
#[derive(Module, Debug)]
pub struct Nope {}

impl EncodingConfig for Config {
    type Encoding = Nope;

    fn meta(&self) -> &'static PeMeta {
        &META
    }

    fn conduct(&self) -> Vec<Conduct> {
        vec![Conduct::IgnoresPositions]
    }

    fn init(&self, _dims: &Dims, _rng: &mut ChaCha8Rng, _device: &Device) -> Result<Nope, PeError> {
        Ok(Nope {})
    }
}

impl PositionEncoding for Nope {}

impl ScalarReference for Nope {}
