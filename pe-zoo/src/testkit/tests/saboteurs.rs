//! Encodings that are wrong on purpose, each with the check that must reject it.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use crate::encoding::{EmbedContext, LayerContext, ScoreContext};
use crate::meta::{Claims, PeMeta};
use crate::reference::{Heads, ScalarInput, ScalarReference};
use crate::testkit::{Check, conforms};
use crate::{Dims, EncodingConfig, PeError, PositionEncoding, ScoreMod};

const HONEST: Claims = Claims {
    shift_invariant: true,
    content_dependent: false,
    limited_length: false,
    depends_on_length: false,
};

/// ALiBi with slope 0.5, broken in one way.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
enum Fault {
    None,
    SignFlipped,
    OffByOne,
    OffsetIgnoredInDecode,
    Acausal,
    NotANumber,
    ClaimsNoShift,
    ClaimsALimit,
    FadesWithLength,
    ClaimsLengthDependence,
    BatchMixed,
    EmbedsLaterTokens,
    EmbedsOtherSequences,
    MiscountedParameters,
}

const fn meta(claims: Claims) -> PeMeta {
    PeMeta {
        id: "saboteur",
        label: "Saboteur",
        summary: "Wrong on purpose.",
        sites: &[],
        claims,
        parameters: "0",
        paper: "",
        url: "",
    }
}

static PLAIN: PeMeta = meta(HONEST);
static NO_SHIFT: PeMeta = meta(Claims { shift_invariant: false, ..HONEST });
static BY_LENGTH: PeMeta = meta(Claims { depends_on_length: true, ..HONEST });
static LIMIT: PeMeta = meta(Claims { limited_length: true, ..HONEST });

#[derive(Module, Debug)]
struct Saboteur {
    #[module(skip)]
    fault: Fault,
}

impl EncodingConfig for Fault {
    type Encoding = Saboteur;

    fn meta(&self) -> &'static PeMeta {
        match self {
            Self::ClaimsNoShift => &NO_SHIFT,
            Self::ClaimsALimit => &LIMIT,
            Self::ClaimsLengthDependence => &BY_LENGTH,
            _ => &PLAIN,
        }
    }

    fn init(&self, _: &Dims, _: &mut ChaCha8Rng, _: &Device) -> Result<Saboteur, PeError> {
        Ok(Saboteur { fault: *self })
    }

    fn param_count(&self, _dims: &Dims) -> usize {
        usize::from(*self == Self::MiscountedParameters)
    }
}

impl PositionEncoding for Saboteur {
    fn embed(&self, x: Tensor<3>, ctx: &EmbedContext<'_>) -> Tensor<3> {
        let ids = ctx.tokens.clone().float().unsqueeze_dim::<3>(2);
        match self.fault {
            Fault::EmbedsLaterTokens => x + ids.mean_dim(1),
            Fault::EmbedsOtherSequences => x + ids.mean_dim(0).mean_dim(1),
            _ => x,
        }
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        _ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        match self.fault {
            Fault::Acausal => (q, k.clone() + k.mean_dim(2)),
            Fault::BatchMixed => (q, k.clone() + k.mean_dim(0)),
            _ => (q, k),
        }
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let device = ctx.q.device();
        let at = ctx.layer.at;
        let distances = at.distances(&device).float();
        let bias = match self.fault {
            Fault::SignFlipped => distances * 0.5,
            Fault::OffByOne => (distances - 1.0).clamp_min(0.0) * -0.5,
            Fault::NotANumber => distances.clone() / distances * -0.5,
            Fault::FadesWithLength => distances * (-4.0 / at.cols().len() as f64),
            Fault::OffsetIgnoredInDecode => {
                let rows =
                    Tensor::<1, burn::tensor::Int>::arange(0..at.rows().len() as i64, &device);
                let cols =
                    Tensor::<1, burn::tensor::Int>::arange(0..at.cols().len() as i64, &device);
                (rows.unsqueeze_dim::<2>(1) - cols.unsqueeze::<2>()).float().clamp_min(0.0) * -0.5
            }
            _ => distances * -0.5,
        };
        ScoreMod::Dense(bias.unsqueeze::<4>())
    }
}

impl ScalarReference for Saboteur {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let scale = 1.0 / (input.head_dim() as f64).sqrt();
        input.map(|h, row, i, j| {
            input.content(h, row, j) * scale - 0.5 * input.distance(i, j) as f64
        })
    }
}

#[test]
fn the_honest_one_passes() {
    let failures = conforms(&Fault::None);
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn every_saboteur_is_rejected_by_the_check_it_was_made_for() {
    for (fault, check) in [
        (Fault::SignFlipped, Check::EqualsReference),
        (Fault::OffByOne, Check::EqualsReference),
        (Fault::NotANumber, Check::EqualsReference),
        (Fault::OffsetIgnoredInDecode, Check::DecodesAsFullPass),
        (Fault::Acausal, Check::Causal),
        (Fault::ClaimsNoShift, Check::ShiftClaim),
        (Fault::ClaimsALimit, Check::LengthClaim),
        (Fault::FadesWithLength, Check::LengthDependence),
        (Fault::ClaimsLengthDependence, Check::LengthDependence),
        (Fault::BatchMixed, Check::BatchIndependent),
        (Fault::EmbedsLaterTokens, Check::Causal),
        (Fault::EmbedsOtherSequences, Check::BatchIndependent),
        (Fault::MiscountedParameters, Check::ParameterFormula),
    ] {
        let failures = conforms(&fault);
        assert!(failures.iter().any(|f| f.check == check), "{fault:?}: {failures:?}");
    }
}
