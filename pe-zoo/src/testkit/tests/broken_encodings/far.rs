//! Broken factors of the logits that act beyond the sizes of the kit: from a later position on, or in larger models alone.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use super::super::BROKEN;
use crate::card::Card;
use crate::encoding::ScoreContext;
use crate::reference::{Heads, ScalarInput, ScalarReference};
use crate::score::{Number, Pair, PairTerm, Term};
use crate::settings::check_size;
use crate::{Dims, PeError, PositionEncoding, ScoreMod};

#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) enum Fault {
    #[default]
    None,
    /// The reference does without the factor.
    ReferenceIgnoresFactor,
    /// The reference does without the factor, which acts from a position on that is not a setting.
    FloorIsNoSetting,
    /// As before, and the factor acts in the fifth layer.
    LayerIsNoSetting,
    /// As before, and the factor acts in models of four heads.
    HeadsAreNoSetting,
    /// As before, and the factor acts on heads of eight channels.
    WidthIsNoSetting,
    /// As before, and the factor acts in sequences of 200 tokens.
    TokensAreNoSetting,
}

/// Faults that no setting makes visible at the sizes of the kit.
pub(super) const UNSEEN: [Fault; 5] = [
    Fault::FloorIsNoSetting,
    Fault::LayerIsNoSetting,
    Fault::HeadsAreNoSetting,
    Fault::WidthIsNoSetting,
    Fault::TokensAreNoSetting,
];

#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FarConfig {
    /// Number of positions with the same factor.
    pub(super) floor: usize,
    /// Position from which on the factor acts.
    pub(super) start: f64,
    /// Distance between layers with the factor.
    pub(super) every: usize,
    pub(super) fault: Fault,
}

impl Default for FarConfig {
    fn default() -> Self {
        Self { floor: 8192, start: 0.0, every: 1, fault: Fault::None }
    }
}

#[derive(Module, Debug)]
pub(super) struct Far {
    #[module(skip)]
    floor: usize,
    #[module(skip)]
    start: f64,
    #[module(skip)]
    every: usize,
    #[module(skip)]
    fault: Fault,
}

impl Far {
    fn factor(&self, position: usize) -> f64 {
        if (position as f64) < self.start {
            return 1.0;
        }
        1.0 + 0.5 * (((position + 1) / self.floor) as f64).ln_1p()
    }
}

impl PositionEncoding for Far {
    type Settings = FarConfig;

    const CARD: Card = BROKEN;

    fn check(settings: &FarConfig, _: &Dims) -> Result<(), PeError> {
        check_size(BROKEN.id, "floor", settings.floor)?;
        check_size(BROKEN.id, "every", settings.every)
    }

    fn build(
        settings: &FarConfig,
        _: &Dims,
        _: &mut ChaCha8Rng,
        _: &Device,
    ) -> Result<Self, PeError> {
        let FarConfig { floor, start, every, fault } = *settings;
        let (floor, every) = match fault {
            Fault::None | Fault::ReferenceIgnoresFactor => (floor, every),
            Fault::FloorIsNoSetting => (8192, 1),
            _ => (1, 1),
        };
        Ok(Far { floor, start, every, fault })
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let [batch, heads, _rows, width] = ctx.q.dims();
        let acts = match self.fault {
            Fault::LayerIsNoSetting => ctx.layer.layer == 4,
            Fault::HeadsAreNoSetting => heads >= 4,
            Fault::WidthIsNoSetting => width >= 8,
            Fault::TokensAreNoSetting => ctx.layer.at.cols().len() >= 200,
            _ => (ctx.layer.layer + 1).is_multiple_of(self.every),
        };
        if !acts {
            return ScoreMod::None;
        }
        let factors = ctx.layer.at.cols().iter().map(|at| self.factor(*at) as f32);
        let factors = factors.collect::<Vec<_>>();
        let columns = factors.len();
        let factors = Tensor::<1>::from_data(factors.as_slice(), &ctx.q.device());
        let factors = factors.reshape([1, 1, columns, 1]).expand([batch, heads, columns, 1]);
        ScoreMod::Term(Term::new(RowFactor).token_state(factors))
    }
}

#[derive(Debug, Clone)]
struct RowFactor;

impl PairTerm<0, 1> for RowFactor {
    fn value<N: Number>(&self, pair: Pair<N, 0, 1>) -> N {
        pair.row[0] * pair.content
    }
}

impl ScalarReference for Far {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let scale = 1.0 / (input.head_dim() as f64).sqrt();
        let acts = self.fault == Fault::None && (input.layer + 1).is_multiple_of(self.every);
        input.map(|h, row, i, j| {
            let factor = if acts { self.factor(input.positions[i]) } else { 1.0 };
            factor * input.content(h, row, j) * scale
        })
    }
}
