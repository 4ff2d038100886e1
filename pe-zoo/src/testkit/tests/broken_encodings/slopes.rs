//! Broken biases: a slope per head times the distance, divided by a normaliser of the row.

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;

use super::super::{BROKEN, Choice};
use crate::card::Card;
use crate::encoding::{LayerContext, ScoreContext};
use crate::reference::{Heads, ScalarInput, ScalarReference};
use crate::testkit::Check;
use crate::{Dims, PeError, PositionEncoding, ScoreMod};

#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) enum Fault {
    #[default]
    None,
    SignFlipped,
    OffByOne,
    SlopeOrder,
    NormaliserMissing,
    NotANumberAtZero,
    OffsetIgnoredInDecode,
    SeesLaterKeys,
    BatchMixed,
    MiscountedParameters,
    /// Columns that rows see are dropped from the cache.
    HorizonTooNear,
}

pub(super) const FAULTS: &[(Fault, Check)] = &[
    (Fault::SignFlipped, Check::EqualsReference),
    (Fault::OffByOne, Check::EqualsReference),
    (Fault::SlopeOrder, Check::EqualsReference),
    (Fault::NormaliserMissing, Check::EqualsReference),
    (Fault::NotANumberAtZero, Check::EqualsReference),
    (Fault::OffsetIgnoredInDecode, Check::DecodesAsFullPass),
    (Fault::SeesLaterKeys, Check::Causal),
    (Fault::BatchMixed, Check::BatchIndependent),
    (Fault::MiscountedParameters, Check::ParameterFormula),
    (Fault::HorizonTooNear, Check::DecodesAsFullPass),
];

/// Rows before this position share its normaliser.
const THRESHOLD: usize = 6;

#[derive(Module, Debug)]
pub(super) struct Slopes {
    #[module(skip)]
    fault: Fault,
    #[module(skip)]
    slopes: Vec<f32>,
}

fn normaliser(position: usize) -> f64 {
    position.max(THRESHOLD) as f64
}

impl PositionEncoding for Slopes {
    type Settings = Choice<Fault>;

    const CARD: Card = BROKEN;

    fn build(
        settings: &Choice<Fault>,
        dims: &Dims,
        _: &mut ChaCha8Rng,
        _: &Device,
    ) -> Result<Self, PeError> {
        let slopes = (0..dims.heads).map(|h| 4.0 / (h + 1) as f32).collect();
        Ok(Slopes { fault: settings.fault, slopes })
    }

    fn param_count(settings: &Choice<Fault>, _dims: &Dims) -> Option<usize> {
        Some(usize::from(settings.fault == Fault::MiscountedParameters))
    }

    fn horizon(settings: &Choice<Fault>, _layers: usize, _layer: usize) -> Option<usize> {
        (settings.fault == Fault::HorizonTooNear).then_some(1)
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        _ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        match self.fault {
            Fault::SeesLaterKeys => (q, k.clone() + k.mean_dim(2)),
            Fault::BatchMixed => (q, k.clone() + k.mean_dim(0)),
            _ => (q, k),
        }
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let device = ctx.q.device();
        let at = ctx.layer.at;
        let distances = at.distances(&device).float();
        let penalty = match self.fault {
            Fault::SignFlipped => distances.neg(),
            Fault::OffByOne => (distances - 1.0).clamp_min(0.0),
            Fault::NotANumberAtZero => distances.clone() * (distances.clone() / distances),
            Fault::OffsetIgnoredInDecode => {
                let count = |len: usize| Tensor::<1, Int>::arange(0..len as i64, &device).float();
                let rows = count(at.rows().len()).unsqueeze_dim::<2>(1);
                (rows - count(at.cols().len()).unsqueeze::<2>()).clamp_min(0.0)
            }
            _ => distances,
        };
        let norms = match self.fault {
            Fault::NormaliserMissing => vec![THRESHOLD as f32; at.rows().len()],
            _ => at.rows().iter().map(|i| normaliser(*i) as f32).collect(),
        };
        let mut slopes = self.slopes.clone();
        if self.fault == Fault::SlopeOrder {
            slopes.reverse();
        }
        let (heads, rows) = (slopes.len(), norms.len());
        let norms = Tensor::<2>::from_data(TensorData::new(norms, [rows, 1]), &device);
        let slopes = Tensor::<4>::from_data(TensorData::new(slopes, [1, heads, 1, 1]), &device);
        ScoreMod::Dense(slopes * (penalty / norms).neg().unsqueeze::<4>())
    }
}

impl ScalarReference for Slopes {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let scale = 1.0 / (input.head_dim() as f64).sqrt();
        input.map(|h, row, i, j| {
            let penalty = input.distance(i, j) as f64 / normaliser(input.positions[i]);
            input.content(h, row, j) * scale - f64::from(self.slopes[h]) * penalty
        })
    }
}
