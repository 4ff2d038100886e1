//! Properties found by probing, and faults found by single checks.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{BROKEN, Choice, combination};
use crate::card::{ActsOn, Card, Properties};
use crate::count::CountedMatmul;
use crate::encoding::{EmbedContext, LayerContext, PositionRequest, ScoreContext, StateContext};
use crate::reference::{Heads, ScalarInput, ScalarReference};
use crate::score::{
    Contextual, ContextualFunction, Current, GateSource, LogitScaling, Remainder, StickBreakingRule,
};
use crate::testkit::close::numbers;
use crate::testkit::{Check, conforms};
use crate::{
    Combination, Cost, Dims, EncodingConfig, PeError, PositionEncoding, Positions, ScoreMod,
    TokenState, init,
};

/// Variants, most of them faulty, of an encoding whose bias is a learned slope per head times the
/// distance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) enum Variant {
    #[default]
    None,
    StateOfNoToken,
    NotFiniteAlone,
    NotFiniteUnseen,
    HeadsMixed,
    LooksAtTokens,
    LooksAtTokenIds,
    LastPositionBroken,
    OneTooManyPositions,
    ChoosesPositions,
    ForgetsItsPositions,
    MixesColumns,
    WidensQueries,
    StretchesQueries,
    ReadsQueries,
    BreaksSticks,
    ReplacesProducts,
    LeavesDivisionOut,
    ProductNotStated,
    ProductStatedTwice,
    GradientDoubled,
    GradientToQueriesCut,
    Panics,
}

pub(super) const FAULTS: &[(Variant, Check)] = &[
    (Variant::StateOfNoToken, Check::Shapes),
    (Variant::NotFiniteAlone, Check::Finite),
    (Variant::NotFiniteUnseen, Check::EqualsReference),
    (Variant::NotFiniteUnseen, Check::EnginesAgree),
    (Variant::LastPositionBroken, Check::Length),
    (Variant::OneTooManyPositions, Check::Positions),
    (Variant::ForgetsItsPositions, Check::Positions),
    (Variant::StretchesQueries, Check::Transform),
    (Variant::ProductNotStated, Check::MacFormula),
    (Variant::ProductStatedTwice, Check::MacFormula),
    (Variant::GradientDoubled, Check::GradientValues),
    (Variant::GradientToQueriesCut, Check::GradientValues),
    (Variant::Panics, Check::EqualsReference),
    (Variant::Panics, Check::Probe),
];

#[derive(Module, Debug)]
struct Penalty {
    slopes: Param<Tensor<1>>,
    #[module(skip)]
    variant: Variant,
}

impl PositionEncoding for Penalty {
    type Settings = Choice<Variant>;

    const CARD: Card = BROKEN;

    fn build(
        settings: &Choice<Variant>,
        dims: &Dims,
        _: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        Ok(Penalty { slopes: init::constant(0.5, [dims.heads], device), variant: settings.fault })
    }

    fn param_count(_settings: &Choice<Variant>, dims: &Dims) -> Option<usize> {
        Some(dims.heads)
    }

    fn cost(settings: &Choice<Variant>, dims: &Dims, len: usize) -> Option<Cost> {
        let cost = Cost::none().pair_elementwise("slopes", 2 * len * len * dims.heads);
        Some(match settings.fault {
            Variant::ProductStatedTwice => cost.product("nothing", 1),
            _ => cost,
        })
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn positions(&self, request: PositionRequest<'_>) -> Result<Positions, PeError> {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let at = Positions::contiguous(request.cached_tokens, request.new_tokens);
        Ok(match self.variant {
            Variant::OneTooManyPositions => {
                Positions::contiguous(request.cached_tokens, request.new_tokens + 1)
            }
            Variant::ChoosesPositions => at.shifted(1),
            Variant::ForgetsItsPositions => at.shifted(ASKED.fetch_add(1, Ordering::SeqCst) % 2),
            _ => at,
        })
    }

    fn embed(&self, x: Tensor<3>, ctx: &EmbedContext<'_>) -> Tensor<3> {
        match self.variant {
            Variant::LooksAtTokenIds => x + ctx.tokens.clone().float().unsqueeze_dim::<3>(2),
            _ => x,
        }
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        let [batch, _tokens, _width] = ctx.x.dims();
        match self.variant {
            Variant::StateOfNoToken => {
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
        match self.variant {
            Variant::HeadsMixed => (q, k.clone() + k.mean_dim(1)),
            Variant::LooksAtTokens => (q.clone().abs() + q, k),
            Variant::WidensQueries => {
                (Tensor::cat(vec![q.clone(), q], 3), Tensor::cat(vec![k.clone(), k * 0.0], 3))
            }
            Variant::StretchesQueries => (q * 2.0, k * 0.5),
            Variant::GradientToQueriesCut => (q.clone().detach() * 0.5 + q * 0.5, k),
            Variant::ProductNotStated => {
                let product = q.clone().counted_matmul(k.clone().swap_dims(2, 3));
                (q + product.mean_dim(3) * 0.0, k)
            }
            _ => (q, k),
        }
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let at = ctx.layer.at;
        assert!(self.variant != Variant::Panics, "on purpose");
        if self.variant == Variant::BreaksSticks {
            return ScoreMod::StickBreaking(StickBreakingRule {
                current: Current::Excluded,
                remainder: Remainder::Dropped,
            });
        }
        if self.variant == Variant::ReplacesProducts {
            return ScoreMod::Products(ctx.q.clone().matmul(ctx.k.clone().swap_dims(2, 3)));
        }
        if self.variant == Variant::LeavesDivisionOut {
            return ScoreMod::Contextual(Contextual {
                gates: GateSource::QueryKey,
                max_position: 4.0,
                function: ContextualFunction::Slope(self.slopes.val()),
                convention: LogitScaling::Equation,
            });
        }
        let distances = at.distances(&ctx.q.device()).float().unsqueeze::<4>();
        let slopes = match self.variant {
            Variant::GradientDoubled => self.slopes.val() * 2.0 - self.slopes.val().detach(),
            _ => self.slopes.val(),
        };
        let [heads] = slopes.dims();
        let bias = distances.clone() * slopes.reshape([1, heads, 1, 1]).neg();
        let last = at.cols().last().copied().unwrap_or(0);
        ScoreMod::Dense(match self.variant {
            Variant::NotFiniteAlone if at.cols().len() == 1 => bias / distances,
            // The reference engine computes all logits and multiplies hidden ones by 0.
            Variant::NotFiniteUnseen => {
                let unseen = at.visible(&ctx.q.device()).unsqueeze::<4>().equal_elem(0);
                bias.mask_fill(
                    unseen.expand([1, heads, at.rows().len(), at.cols().len()]),
                    f32::NAN,
                )
            }
            Variant::LastPositionBroken if last == LIMIT - 1 => bias * f32::NAN,
            // Different for each column, so that the softmax does not cancel it.
            Variant::ReadsQueries => {
                let columns = at.cols().iter().map(|j| *j as f32).collect::<Vec<_>>();
                let columns = Tensor::<1>::from_data(columns.as_slice(), &ctx.q.device());
                bias + ctx.q.clone().sum_dim(3) * columns.unsqueeze::<4>()
            }
            _ => bias,
        })
    }

    fn mixed_values(&self, ctx: &LayerContext<'_>) -> Option<Tensor<4>> {
        let columns = ctx.at.cols().len();
        (self.variant == Variant::MixesColumns)
            .then(|| Tensor::ones([1, 3, columns, 2], &Device::flex()))
    }

    fn max_len(&self) -> Option<usize> {
        (self.variant == Variant::LastPositionBroken).then_some(LIMIT)
    }
}

const LIMIT: usize = 70;

impl ScalarReference for Penalty {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let slopes = numbers(self.slopes.val());
        let scale = 1.0 / (input.head_dim() as f64).sqrt();
        let looks = |q: f64| if self.variant == Variant::LooksAtTokens { q.abs() + q } else { q };
        input.map(|h, row, i, j| {
            let query = input.q[h][row].iter().map(|q| looks(*q)).collect::<Vec<_>>();
            let mut logit = crate::reference::dot(&query, &input.k[h][j]) * scale;
            if self.variant == Variant::ReadsQueries {
                // Different for each column, so that the softmax does not cancel it.
                logit += query.iter().sum::<f64>() * j as f64;
            }
            logit - slopes[h] * input.distance(i, j) as f64
        })
    }
}

/// Probes the properties of the variant.
fn properties(variant: Variant) -> Properties {
    combination::<Penalty, _>(variant).properties().unwrap()
}

#[test]
fn the_correct_variant_passes_and_is_a_bias_by_distance() {
    let failures = conforms(&combination::<Penalty, _>(Variant::None));
    assert!(failures.is_empty(), "{failures:?}");
    let expected = Properties {
        acts_on: vec![ActsOn::Logits],
        shift_invariant: true,
        ..Properties::default()
    };
    assert_eq!(properties(Variant::None), expected);
}

#[test]
fn every_fault_is_found_by_the_check_that_is_about_it() {
    for (fault, check) in FAULTS {
        let failures = conforms(&combination::<Penalty, _>(*fault));
        assert!(failures.iter().any(|f| f.check == *check), "{fault:?}: {failures:?}");
    }
}

#[test]
fn every_behaviour_is_found_by_probing() {
    let plain = properties(Variant::None);
    let also = |part: ActsOn| {
        let mut acts_on = plain.acts_on.clone();
        acts_on.push(part);
        acts_on.sort_unstable();
        acts_on
    };
    for (variant, expected) in [
        (
            Variant::HeadsMixed,
            Properties { mixes_heads: true, acts_on: also(ActsOn::QueryKey), ..plain.clone() },
        ),
        (
            Variant::LooksAtTokens,
            Properties {
                content_dependent: true,
                acts_on: also(ActsOn::QueryKey),
                ..plain.clone()
            },
        ),
        (
            Variant::LooksAtTokenIds,
            Properties {
                content_dependent: true,
                acts_on: also(ActsOn::Embedding),
                ..plain.clone()
            },
        ),
        (
            Variant::ChoosesPositions,
            Properties { acts_on: also(ActsOn::Positions), ..plain.clone() },
        ),
        (Variant::MixesColumns, Properties { mixes_values: true, ..plain.clone() }),
        (
            Variant::WidensQueries,
            Properties { widens_queries: true, acts_on: also(ActsOn::QueryKey), ..plain.clone() },
        ),
        (
            Variant::ReadsQueries,
            Properties { reads_vectors: true, content_dependent: true, ..plain.clone() },
        ),
        (
            Variant::BreaksSticks,
            Properties {
                replaces_softmax: true,
                content_dependent: true,
                ignores_positions: true,
                acts_on: vec![ActsOn::Weights],
                ..plain.clone()
            },
        ),
        (
            Variant::ReplacesProducts,
            Properties { replaces_products: true, ignores_positions: true, ..plain.clone() },
        ),
        (
            Variant::LeavesDivisionOut,
            Properties {
                undivided: true,
                content_dependent: true,
                ignores_positions: true,
                ..plain.clone()
            },
        ),
        (Variant::LastPositionBroken, Properties { limited_length: true, ..plain.clone() }),
    ] {
        assert_eq!(properties(variant), expected, "{variant:?}");
    }
}

#[test]
fn a_panic_is_a_failure_among_others() {
    let failures = conforms(&combination::<Penalty, _>(Variant::Panics));
    assert!(failures.len() > 5, "{failures:?}");
    assert!(failures.iter().any(|f| f.found.contains("panicked: on purpose")), "{failures:?}");
}

/// Checks that the settings below fail, one for each.
pub(super) const OF_SETTINGS: [Check; 2] = [Check::SettingsRoundTrip, Check::UnknownSettingRefused];

/// Settings whose serialisation does not survive a round trip.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Forgetful {
    #[serde(skip_serializing)]
    forgotten: usize,
}

/// Settings that accept any name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Indifferent {
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// An encoding without effect for each type of settings.
macro_rules! without_effect {
    ($name:ident, $settings:ty) => {
        #[derive(Module, Debug)]
        struct $name {}

        impl PositionEncoding for $name {
            type Settings = $settings;

            const CARD: Card = BROKEN;

            fn build(
                _: &$settings,
                _: &Dims,
                _: &mut ChaCha8Rng,
                _: &Device,
            ) -> Result<Self, PeError> {
                Ok(Self {})
            }
        }
    };
}

without_effect!(Forgets, Forgetful);
without_effect!(Accepts, Indifferent);

#[test]
fn settings_that_are_lost_or_accept_any_name_are_found() {
    let forgetful = EncodingConfig::of::<Forgets>(Forgetful { forgotten: 3 }).unwrap();
    let indifferent = EncodingConfig::of::<Accepts>(Indifferent::default()).unwrap();
    for (config, check) in [forgetful, indifferent].into_iter().zip(OF_SETTINGS) {
        let failures = conforms(&Combination::try_from(config).unwrap());
        assert_eq!(failures.iter().map(|f| f.check).collect::<Vec<_>>(), [check]);
    }
}

#[test]
fn unknown_settings_are_refused_without_help_of_the_author() {
    let config = EncodingConfig::of::<Forgets>(Forgetful::default()).unwrap();
    let unknown = [("forgoten".to_owned(), Value::from(1))].into_iter().collect();
    assert!(config.reread(unknown).unwrap_err().to_string().contains("forgoten"));
}
