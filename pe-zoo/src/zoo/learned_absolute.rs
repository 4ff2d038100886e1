//! # Learned absolute: one learned vector per position
//!
//! ## What it does
//! Adds to each token's embedding a learned vector for its position. Positions past the end of the
//! table are errors.
//!
//! ## Formula
//! `x[n] += table[n]`
//!
//! ## Shapes
//! `embed: [B, T, C] -> [B, T, C]`; table `[max_len, C]`.
//!
//! ## Settings
//! `max_len` (positions; default: the longest sequence of the run, so that evaluation beyond the training length uses rows that training never updated).
//! `std` (default `C^(-1/2)`, as in CoPE's code): standard deviation of the initial table.
//!
//! ## Initial values
//! Table: normal with deviation `C^(-1/2)`, as in CoPE's code.
//!
//! ## Deviations
//! None.
//!
//! ## References
//! Gehring et al. 2017, arXiv 1705.03122; initial values as in `facebookresearch/RAM`
//! `projects/cope` at e6f051fbcf.

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::card::Card;
use crate::encoding::EmbedContext;
use crate::reference::{ScalarReference, Tokens, absolute, table_f64};
use crate::settings::check_not_below_zero;
use crate::{Cost, Dims, PeError, PositionEncoding, init};

/// Settings of learned absolute positions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LearnedAbsoluteConfig {
    /// Number of rows of the table; `None`: the longest sequence of the run.
    pub max_len: Option<usize>,
    /// Standard deviation of the initial table; `None`: `C^(-1/2)`.
    pub std: Option<f64>,
}

/// Table of learned vectors, one per absolute position.
#[derive(Module, Debug)]
pub struct LearnedAbsolute {
    /// Learned vectors of the positions, `[max_len, C]`.
    pub table: Param<Tensor<2>>,
}

impl LearnedAbsoluteConfig {
    fn rows(&self, dims: &Dims) -> usize {
        self.max_len.unwrap_or(dims.max_len)
    }
}

impl PositionEncoding for LearnedAbsolute {
    type Settings = LearnedAbsoluteConfig;

    const CARD: Card = Card {
        id: "learned-absolute",
        label: "Learned absolute",
        summary: "Adds a learned vector per position to the token embeddings.",
        parameters: "max_len C",
        paper: "Gehring et al. 2017",
        url: "https://arxiv.org/abs/1705.03122",
    };

    fn check(settings: &LearnedAbsoluteConfig, dims: &Dims) -> Result<(), PeError> {
        let (pe, rows) = (Self::CARD.id, settings.rows(dims));
        let expected = format!("at least {}, the longest sequence of the run", dims.max_len);
        PeError::require(rows >= dims.max_len, pe, "max_len", rows, expected)?;
        check_not_below_zero(pe, "std", settings.std)
    }

    fn build(
        settings: &LearnedAbsoluteConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let std = settings.std.unwrap_or((dims.width as f64).powf(-0.5));
        let table = init::normal(std, [settings.rows(dims), dims.width], rng, device);
        Ok(LearnedAbsolute { table })
    }

    fn param_count(settings: &LearnedAbsoluteConfig, dims: &Dims) -> Option<usize> {
        Some(settings.rows(dims) * dims.width)
    }

    fn cost(_settings: &LearnedAbsoluteConfig, dims: &Dims, len: usize) -> Option<Cost> {
        Some(Cost::none().elementwise("sum with the embeddings", len * dims.width))
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn embed(&self, x: Tensor<3>, ctx: &EmbedContext<'_>) -> Tensor<3> {
        let device = x.device();
        let rows = ctx.at.memo("rows-int", &device, || {
            let rows = ctx.at.rows().iter().map(|p| *p as i64).collect::<Vec<_>>();
            let len = rows.len();
            Tensor::<1, Int>::from_data(TensorData::new(rows, [len]), &device)
        });
        x + self.table.val().select(0, rows).unsqueeze::<3>()
    }

    fn max_len(&self) -> Option<usize> {
        let [rows, _width] = self.table.val().dims();
        Some(rows)
    }
}

impl ScalarReference for LearnedAbsolute {
    fn scalar_embed(&self, x: &Tokens, _ids: &[usize], positions: &[usize]) -> Tokens {
        absolute::learned(x, positions, &table_f64(&self.table))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on embedding; limited length",
        texts: &["learned-absolute", "learned-absolute{max_len=70,std=1.0}"],
    }];
}
