//! Encodings that state something false about themselves, each with the check that must find out.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::count::CountedMatmul;
use crate::encoding::{EmbedContext, LayerContext, PositionRequest, ScoreContext, StateContext};
use crate::meta::{Claims, Conduct, PeMeta, Site};
use crate::reference::{Heads, ScalarInput, ScalarReference};
use crate::score::{
    Contextual, ContextualFunction, Current, GateSource, LogitScaling, Remainder, StickBreaking,
};
use crate::testkit::close::numbers;
use crate::testkit::{Check, conforms, examine_settings, failures};
use crate::{
    Cost, Dims, EncodingConfig, PeError, PositionEncoding, Positions, ScoreMod, TokenState, init,
};

/// A learned slope per head times the distance, with one thing about it wrong.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
enum Lie {
    None,
    StateOfNoToken,
    NotFiniteAlone,
    NotFiniteUnseen,
    HeadsMixed,
    SaysHeadsMix,
    LooksAtTokens,
    SaysItLooksAtTokens,
    LooksAtTokenIds,
    LastPositionBroken,
    OneTooManyPositions,
    ChoosesPositions,
    SaysItChooses,
    ForgetsItsPositions,
    MixesColumns,
    SaysItMixesColumns,
    WidensQueries,
    StretchesQueries,
    SaysItStretchesQueries,
    SaysItIgnoresPositions,
    ReadsQueries,
    SaysItReadsQueries,
    BreaksSticks,
    SaysItReplacesSoftmax,
    ReplacesProducts,
    SaysItReplacesProducts,
    LeavesDivisionOut,
    SaysItLeavesDivisionOut,
    ProductNotStated,
    ProductStatedTwice,
    GradientDoubled,
    GradientToQueriesCut,
    Panics,
}

const HONEST: PeMeta = PeMeta {
    id: "liar",
    label: "Liar",
    summary: "Says what is not so.",
    sites: &[Site::Logits],
    claims: Claims {
        shift_invariant: true,
        content_dependent: false,
        limited_length: false,
        depends_on_length: false,
    },
    parameters: "H",
    paper: "",
    url: "",
};
static PLAIN: PeMeta = HONEST;
static CHOOSES: PeMeta = PeMeta { sites: &[Site::Logits, Site::Positions], ..HONEST };
static TRANSFORMS: PeMeta = PeMeta { sites: &[Site::Logits, Site::QueryKey], ..HONEST };
static LOOKS: PeMeta =
    PeMeta { claims: Claims { content_dependent: true, ..HONEST.claims }, ..HONEST };
static LIMITED: PeMeta =
    PeMeta { claims: Claims { limited_length: true, ..HONEST.claims }, ..HONEST };

#[derive(Module, Debug)]
struct Liar {
    slopes: Param<Tensor<1>>,
    #[module(skip)]
    lie: Lie,
}

impl EncodingConfig for Lie {
    type Encoding = Liar;

    fn meta(&self) -> &'static PeMeta {
        match self {
            Self::SaysItLooksAtTokens => &LOOKS,
            Self::LastPositionBroken => &LIMITED,
            Self::SaysItChooses | Self::ForgetsItsPositions => &CHOOSES,
            Self::WidensQueries | Self::StretchesQueries | Self::GradientToQueriesCut => {
                &TRANSFORMS
            }
            _ => &PLAIN,
        }
    }

    fn conduct(&self) -> Vec<Conduct> {
        match self {
            Self::SaysHeadsMix => vec![Conduct::MixesHeads],
            Self::SaysItMixesColumns => vec![Conduct::MixesValues],
            Self::SaysItReplacesSoftmax => vec![Conduct::ReplacesSoftmax],
            Self::SaysItReplacesProducts => vec![Conduct::ReplacesProducts],
            Self::SaysItLeavesDivisionOut => vec![Conduct::Undivided],
            Self::SaysItStretchesQueries => vec![Conduct::StretchesQueries],
            Self::SaysItIgnoresPositions => vec![Conduct::IgnoresPositions],
            Self::SaysItReadsQueries => vec![Conduct::ReadsQueries],
            _ => Vec::new(),
        }
    }

    fn init(&self, dims: &Dims, _: &mut ChaCha8Rng, device: &Device) -> Result<Liar, PeError> {
        Ok(Liar { slopes: init::constant(0.5, [dims.heads], device), lie: *self })
    }

    fn param_count(&self, dims: &Dims) -> usize {
        dims.heads
    }

    fn cost(&self, dims: &Dims, len: usize) -> Cost {
        let cost = Cost::none().pair_elementwise("slopes", 2 * len * len * dims.heads);
        match self {
            Self::ProductStatedTwice => cost.product("nothing", 1),
            _ => cost,
        }
    }
}

impl PositionEncoding for Liar {
    fn positions(&self, request: PositionRequest<'_>) -> Result<Positions, PeError> {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let at = Positions::contiguous(request.cached_tokens, request.new_tokens);
        Ok(match self.lie {
            Lie::OneTooManyPositions => {
                Positions::contiguous(request.cached_tokens, request.new_tokens + 1)
            }
            Lie::ChoosesPositions => at.shifted(1),
            Lie::ForgetsItsPositions => at.shifted(ASKED.fetch_add(1, Ordering::SeqCst) % 2),
            _ => at,
        })
    }

    fn embed(&self, x: Tensor<3>, ctx: &EmbedContext<'_>) -> Tensor<3> {
        match self.lie {
            Lie::LooksAtTokenIds => x + ctx.tokens.clone().float().unsqueeze_dim::<3>(2),
            _ => x,
        }
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        let [batch, _tokens, _width] = ctx.x.dims();
        match self.lie {
            Lie::StateOfNoToken => {
                TokenState { tensors: vec![Tensor::zeros([batch, 1, 1, 1], &ctx.x.device())] }
            }
            _ => ctx.carried.clone(),
        }
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        _ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        match self.lie {
            Lie::HeadsMixed => (q, k.clone() + k.mean_dim(1)),
            Lie::LooksAtTokens => (q.clone().abs() + q, k),
            Lie::WidensQueries => {
                (Tensor::cat(vec![q.clone(), q], 3), Tensor::cat(vec![k.clone(), k * 0.0], 3))
            }
            Lie::StretchesQueries => (q * 2.0, k * 0.5),
            Lie::GradientToQueriesCut => (q.clone().detach() * 0.5 + q * 0.5, k),
            Lie::ProductNotStated => {
                let product = q.clone().counted_matmul(k.clone().swap_dims(2, 3));
                (q + product.mean_dim(3) * 0.0, k)
            }
            _ => (q, k),
        }
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let at = ctx.layer.at;
        assert!(self.lie != Lie::Panics, "on purpose");
        if self.lie == Lie::BreaksSticks {
            return ScoreMod::StickBreaking(StickBreaking {
                current: Current::Excluded,
                remainder: Remainder::Dropped,
            });
        }
        if self.lie == Lie::ReplacesProducts {
            return ScoreMod::Products(ctx.q.clone().matmul(ctx.k.clone().swap_dims(2, 3)));
        }
        if self.lie == Lie::LeavesDivisionOut {
            return ScoreMod::Contextual(Contextual {
                gates: GateSource::QueryKey,
                max_position: 4.0,
                function: ContextualFunction::Slope(self.slopes.val()),
                convention: LogitScaling::Equation,
            });
        }
        let distances = at.distances(&ctx.q.device()).float().unsqueeze::<4>();
        let slopes = match self.lie {
            Lie::GradientDoubled => self.slopes.val() * 2.0 - self.slopes.val().detach(),
            _ => self.slopes.val(),
        };
        let [heads] = slopes.dims();
        let bias = distances.clone() * slopes.reshape([1, heads, 1, 1]).neg();
        let last = at.cols().last().copied().unwrap_or(0);
        ScoreMod::Dense(match self.lie {
            Lie::NotFiniteAlone if at.cols().len() == 1 => bias / distances,
            // The engine that makes all logits and hides some multiplies these with 0.
            Lie::NotFiniteUnseen => {
                let unseen = at.visible(&ctx.q.device()).unsqueeze::<4>().equal_elem(0);
                bias.mask_fill(
                    unseen.expand([1, heads, at.rows().len(), at.cols().len()]),
                    f32::NAN,
                )
            }
            Lie::LastPositionBroken if last == LIMIT - 1 => bias * f32::NAN,
            Lie::ReadsQueries => bias + ctx.q.clone().sum_dim(3),
            _ => bias,
        })
    }

    fn mixed_values(&self, ctx: &LayerContext<'_>) -> Option<Tensor<4>> {
        let columns = ctx.at.cols().len();
        (self.lie == Lie::MixesColumns).then(|| Tensor::ones([1, 3, columns, 2], &Device::flex()))
    }

    fn max_len(&self) -> Option<usize> {
        (self.lie == Lie::LastPositionBroken).then_some(LIMIT)
    }
}

const LIMIT: usize = 70;

impl ScalarReference for Liar {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let slopes = numbers(self.slopes.val());
        let scale = 1.0 / (input.head_dim() as f64).sqrt();
        let looks = |q: f64| if self.lie == Lie::LooksAtTokens { q.abs() + q } else { q };
        input.map(|h, row, i, j| {
            let query = input.q[h][row].iter().map(|q| looks(*q)).collect::<Vec<_>>();
            let mut logit = crate::reference::dot(&query, &input.k[h][j]) * scale;
            if self.lie == Lie::ReadsQueries {
                // Other by column, so that the softmax does not cancel it.
                logit += query.iter().sum::<f64>() * j as f64;
            }
            logit - slopes[h] * input.distance(i, j) as f64
        })
    }
}

#[test]
fn the_honest_one_passes() {
    let failures = conforms(&Lie::None);
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn every_false_statement_is_found_by_the_check_that_is_about_it() {
    for (lie, check) in [
        (Lie::StateOfNoToken, Check::Shapes),
        (Lie::NotFiniteAlone, Check::Finite),
        (Lie::NotFiniteUnseen, Check::EqualsReference),
        (Lie::NotFiniteUnseen, Check::EnginesAgree),
        (Lie::HeadsMixed, Check::HeadClaim),
        (Lie::SaysHeadsMix, Check::HeadClaim),
        (Lie::LooksAtTokens, Check::ContentClaim),
        (Lie::SaysItLooksAtTokens, Check::ContentClaim),
        (Lie::LooksAtTokenIds, Check::ContentClaim),
        (Lie::LastPositionBroken, Check::LengthClaim),
        (Lie::OneTooManyPositions, Check::PositionsClaim),
        (Lie::ChoosesPositions, Check::PositionsClaim),
        (Lie::SaysItChooses, Check::PositionsClaim),
        (Lie::ForgetsItsPositions, Check::PositionsClaim),
        (Lie::MixesColumns, Check::ConductClaim),
        (Lie::SaysItMixesColumns, Check::ConductClaim),
        (Lie::WidensQueries, Check::ConductClaim),
        (Lie::StretchesQueries, Check::ConductClaim),
        (Lie::SaysItStretchesQueries, Check::ConductClaim),
        (Lie::SaysItIgnoresPositions, Check::ConductClaim),
        (Lie::ReadsQueries, Check::ConductClaim),
        (Lie::SaysItReadsQueries, Check::ConductClaim),
        (Lie::BreaksSticks, Check::ConductClaim),
        (Lie::SaysItReplacesSoftmax, Check::ConductClaim),
        (Lie::ReplacesProducts, Check::ConductClaim),
        (Lie::SaysItReplacesProducts, Check::ConductClaim),
        (Lie::LeavesDivisionOut, Check::ConductClaim),
        (Lie::SaysItLeavesDivisionOut, Check::ConductClaim),
        (Lie::ProductNotStated, Check::MacFormula),
        (Lie::ProductStatedTwice, Check::MacFormula),
        (Lie::GradientDoubled, Check::GradientValues),
        (Lie::GradientToQueriesCut, Check::GradientValues),
        (Lie::Panics, Check::EqualsReference),
    ] {
        let failures = conforms(&lie);
        assert!(failures.iter().any(|f| f.check == check), "{lie:?}: {failures:?}");
    }
}

#[test]
fn a_panic_is_a_failure_among_others() {
    let failures = conforms(&Lie::Panics);
    assert!(failures.len() > 5, "{failures:?}");
    assert!(failures.iter().any(|f| f.found.contains("panicked: on purpose")), "{failures:?}");
}

/// Settings that are read and written in a wrong way.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Forgetful {
    #[serde(skip_serializing)]
    forgotten: usize,
}

impl EncodingConfig for Forgetful {
    type Encoding = Liar;

    fn meta(&self) -> &'static PeMeta {
        &PLAIN
    }

    fn init(&self, dims: &Dims, rng: &mut ChaCha8Rng, device: &Device) -> Result<Liar, PeError> {
        Lie::None.init(dims, rng, device)
    }
}

#[test]
fn settings_that_are_lost_or_made_up_are_found() {
    let failures = failures(examine_settings(&Forgetful { forgotten: 3 }));
    let checks = failures.iter().map(|f| f.check).collect::<Vec<_>>();
    assert_eq!(checks, [Check::SettingsRoundTrip, Check::UnknownSettingRefused]);
}
