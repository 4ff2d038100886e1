//! Learned tables: one vector per position up to a maximum, and a bias per distance.

use std::sync::atomic::{AtomicU64, Ordering};

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::super::{BROKEN, Choice};
use crate::card::Card;
use crate::encoding::{EmbedContext, ScoreContext};
use crate::reference::{Heads, ScalarInput, ScalarReference, Tokens, table_f64};
use crate::score::Beyond;
use crate::testkit::Check;
use crate::{Dims, PeError, PositionEncoding, ScoreMod, init};

#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) enum Fault {
    #[default]
    None,
    /// Positions past the end of the table use its last row without an error.
    ClampInsteadOfError,
    /// The table is built, counted and optimised, but never read; the reference leaves it out as
    /// well.
    TableNeverUsed,
    /// A parameter is left out of the formula.
    TableNotCounted,
    /// Initial values come from a generator that is not seeded.
    SeedIgnored,
    /// Head `h` uses the row of another head.
    HeadsMixedUp,
    /// Each token's embedding gets the mean id of its sequence, later tokens included.
    EmbedsLaterTokens,
    /// Each token's embedding says whether the next token is a digit.
    EmbedsNextDigit,
    /// Each token's embedding gets the mean id of the batch.
    EmbedsOtherSequences,
    /// Positions are counted on from the first one, without gaps.
    GapsIgnored,
    /// Initial values overflow.
    StartsInfinite,
}

pub(super) const FAULTS: &[(Fault, Check)] = &[
    (Fault::ClampInsteadOfError, Check::Length),
    (Fault::TableNeverUsed, Check::Gradients),
    (Fault::TableNotCounted, Check::ParameterFormula),
    (Fault::SeedIgnored, Check::Reproducible),
    (Fault::HeadsMixedUp, Check::EqualsReference),
    (Fault::EmbedsLaterTokens, Check::Causal),
    (Fault::EmbedsNextDigit, Check::Causal),
    (Fault::EmbedsOtherSequences, Check::BatchIndependent),
    (Fault::GapsIgnored, Check::EqualsReference),
    (Fault::StartsInfinite, Check::Finite),
];

#[derive(Module, Debug)]
pub(super) struct Learned {
    /// Table of positions, `[N, C]`.
    positions: Param<Tensor<2>>,
    /// Table of distances, `[H, N]`.
    distances: Param<Tensor<2>>,
    #[module(skip)]
    fault: Fault,
}

/// Counter in place of a process-wide generator: every model gets different initial values.
static MODELS: AtomicU64 = AtomicU64::new(0);

impl PositionEncoding for Learned {
    type Settings = Choice<Fault>;

    const CARD: Card = BROKEN;

    fn build(
        settings: &Choice<Fault>,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let mut unseeded = ChaCha8Rng::seed_from_u64(MODELS.fetch_add(1, Ordering::Relaxed));
        let rng = if settings.fault == Fault::SeedIgnored { &mut unseeded } else { rng };
        let std = if settings.fault == Fault::StartsInfinite { 1e39 } else { 1.0 };
        Ok(Learned {
            positions: init::normal(std, [dims.max_len, dims.width], rng, device),
            distances: init::normal(1.0, [dims.heads, dims.max_len], rng, device),
            fault: settings.fault,
        })
    }

    fn param_count(settings: &Choice<Fault>, dims: &Dims) -> Option<usize> {
        let positions = dims.max_len * dims.width;
        Some(match settings.fault {
            Fault::TableNotCounted => positions,
            _ => positions + dims.heads * dims.max_len,
        })
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn embed(&self, x: Tensor<3>, ctx: &EmbedContext<'_>) -> Tensor<3> {
        let table = self.positions.val();
        let [len, _width] = table.dims();
        let place = |(index, row): (usize, &usize)| match self.fault {
            Fault::GapsIgnored => (ctx.at.rows()[0] + index) as i64,
            _ => (*row).min(len - 1) as i64,
        };
        let rows = ctx.at.rows().iter().enumerate().map(place).collect::<Vec<_>>();
        let rows = Tensor::<1, Int>::from_data(rows.as_slice(), &x.device());
        let ids = ctx.tokens.clone().float().unsqueeze_dim::<3>(2);
        let x = match self.fault {
            Fault::EmbedsLaterTokens => x + ids.mean_dim(1),
            Fault::EmbedsNextDigit => x + ids.clone().roll(&[-1], &[1]).lower_elem(10).float(),
            Fault::EmbedsOtherSequences => x + ids.mean_dim(0).mean_dim(1),
            _ => x,
        };
        x + table.select(0, rows).unsqueeze::<3>()
    }

    fn score(&self, _ctx: &ScoreContext<'_>) -> ScoreMod {
        let table = self.distances.val();
        let table = match self.fault {
            Fault::TableNeverUsed => return ScoreMod::None,
            Fault::HeadsMixedUp => table.flip([0]),
            _ => table,
        };
        ScoreMod::Distance { table, beyond: Beyond::Last }
    }

    fn max_len(&self) -> Option<usize> {
        let [len, _width] = self.positions.val().dims();
        (self.fault != Fault::ClampInsteadOfError).then_some(len)
    }
}

impl ScalarReference for Learned {
    fn scalar_embed(&self, x: &Tokens, _ids: &[usize], positions: &[usize]) -> Tokens {
        let table = table_f64(&self.positions);
        let sum =
            |(x, n): (&Vec<f64>, &usize)| x.iter().zip(&table[*n]).map(|(a, b)| a + b).collect();
        x.iter().zip(positions).map(sum).collect()
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let scale = 1.0 / (input.head_dim() as f64).sqrt();
        let table = table_f64(&self.distances);
        let used = if self.fault == Fault::TableNeverUsed { 0.0 } else { 1.0 };
        input.map(|h, row, i, j| {
            input.content(h, row, j) * scale + used * table[h][input.distance(i, j)]
        })
    }
}
