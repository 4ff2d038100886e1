//! Tests identities of the rotary encodings: settings at which one equals RoPE, or RoPE has no
//! effect.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::json;

use super::{EXACT, assert_same, input, logits, pe};
use crate::encoding::{LayerContext, StateContext};
use crate::reference::ScalarReference;
use crate::testkit::close::{self, Tolerance};
use crate::testkit::problem::{Problem, tensor3, tensor4};
use crate::zoo::fope::Fope;
use crate::{AnyEncoding, Dims, Hooks, PositionEncoding, Positions, TokenState};

fn rope(scaling: &serde_json::Value) -> AnyEncoding {
    pe("rope", json!({ "scaling": scaling }))
}

fn differs(a: &AnyEncoding, b: &AnyEncoding) -> bool {
    close::compare(&logits(a), &logits(b), Tolerance { absolute: 1e-6, relative: 1e-6 }).is_err()
}

/// Head dimension 6: three pairs. The sequence has 11 tokens, the training length.
#[test]
fn rope_scaled_by_one_is_rope() {
    let plain = rope(&json!({ "rope_type": "default" }));
    let ones = [1.0; 3];
    let twos = [2.0; 3];
    for scaling in [
        json!({ "rope_type": "linear", "factor": 1.0 }),
        json!({ "rope_type": "ntk", "factor": 1.0 }),
        json!({ "rope_type": "dynamic", "factor": 3.0 }),
        json!({ "rope_type": "yarn", "factor": 1.0 }),
        json!({ "rope_type": "llama3", "factor": 1.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 8 }),
        json!({ "rope_type": "longrope", "factor": 1.0, "short_factor": ones, "long_factor": ones }),
        json!({ "rope_type": "longrope", "factor": 1.0, "short_factor": ones, "long_factor": twos }),
        json!({ "rope_type": "proportional" }),
    ] {
        assert_same(&rope(&scaling), &plain);
    }
}

/// At other factors than 1, the scalings of these identities do change the logits.
#[test]
fn rope_scaled_by_more_than_one_is_not_rope() {
    let plain = rope(&json!({ "rope_type": "default" }));
    for scaling in [
        json!({ "rope_type": "linear", "factor": 2.0 }),
        json!({ "rope_type": "ntk", "factor": 2.0 }),
        json!({ "rope_type": "dynamic", "factor": 1.0, "original_max_position_embeddings": 10 }),
        json!({ "rope_type": "yarn", "factor": 2.0, "attention_factor": 1.0 }),
        json!({ "rope_type": "yarn", "factor": 1.0, "attention_factor": 1.1 }),
        json!({ "rope_type": "llama3", "factor": 2.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 8 }),
        json!({ "rope_type": "longrope", "factor": 1.0, "short_factor": [1.0, 1.0, 1.0],
            "long_factor": [2.0, 2.0, 2.0], "original_max_position_embeddings": 10 }),
        json!({ "rope_type": "longrope", "factor": 2.0, "short_factor": [1.0, 1.0, 1.0],
            "long_factor": [1.0, 1.0, 1.0] }),
        json!({ "rope_type": "proportional", "partial_rotary_factor": 0.5 }),
    ] {
        assert!(differs(&rope(&scaling), &plain), "{scaling}");
    }
}

#[test]
fn rope_that_turns_nothing_is_nope() {
    let nope = pe("nope", json!({}));
    assert_same(&pe("rope", json!({ "rotary_fraction": 0.0 })), &nope);
    assert_same(
        &rope(&json!({ "rope_type": "proportional", "partial_rotary_factor": 0.0 })),
        &nope,
    );
    assert!(differs(&pe("rope", json!({ "rotary_fraction": 0.34 })), &nope));
}

/// Exponents of a partial rotation run over the rotated channels, those of a proportional one over
/// all channels.
#[test]
fn partial_and_proportional_rotations_agree_in_one_pair_and_differ_in_two() {
    let partial =
        |share: f64| pe("rope", json!({ "layout": "interleaved", "rotary_fraction": share }));
    let proportional = |share: f64| {
        let scaling = json!({ "rope_type": "proportional", "partial_rotary_factor": share });
        pe("rope", json!({ "layout": "interleaved", "scaling": scaling }))
    };
    assert_same(&partial(0.34), &proportional(0.34));
    assert!(differs(&partial(0.67), &proportional(0.67)));
}

#[test]
fn xpos_with_an_endless_scale_base_is_rope() {
    for layout in ["half-split", "interleaved"] {
        let plain = pe("rope", json!({ "layout": layout }));
        let xpos =
            |scale_base: f64| pe("xpos", json!({ "layout": layout, "scale_base": scale_base }));
        let endless = Tolerance { absolute: 1e-9, relative: 1e-9 };
        close::compare(&logits(&xpos(1e12)), &logits(&plain), endless).unwrap();
        assert!(differs(&xpos(512.0), &plain));
    }
}

/// At a base of 1.2 all three waves complete a turn within 11 tokens, but only one of six channels'
/// pairs (a quarter) is mixed.
#[test]
fn fope_without_gain_is_rope_in_its_own_pairs() {
    let fope = pe("fope", json!({ "gain": 0.0, "base": 1.2, "padding": "zero" }));
    let one_pair = json!({ "rope_type": "proportional", "partial_rotary_factor": 0.34 });
    assert_same(&fope, &pe("rope", json!({ "base": 1.2, "scaling": one_pair })));
}

struct Zeros;

impl ModuleMapper for Zeros {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| tensor.zeros_like())
    }
}

/// With all learned numbers zero each step is `exp(0) = 1`, so that angles begin at 1 instead of 0,
/// which does not change any logit.
#[test]
fn selective_rope_with_steps_of_one_is_rope_at_its_temperatures() {
    for map in [json!({ "kind": "low-rank", "rank": 3 }), json!({ "kind": "full-rank" })] {
        let selective = pe("selective-rope", json!({ "bias": true, "map": map }));
        let selective = selective.map(&mut Zeros);
        let expected = logits(&pe("rope", json!({ "base": 500_000.0 })));
        // Lengths of 0 are clamped in the tensors; the equations would divide by them.
        if map["kind"] == "low-rank" {
            close::compare(&logits(&selective), &expected, EXACT).unwrap();
        }
        assert_engine_is(selective.hooks(), &super::DIMS, &expected);
    }
}

/// Compares logits of the tensor code where the equations divide 0 by 0 or the testkit's heads are
/// too small.
#[track_caller]
fn assert_engine_is(pe: &dyn Hooks, dims: &Dims, expected: &[f64]) {
    let device = Device::flex();
    let problem = Problem::random(1, 11, dims, 5);
    let at = Positions::contiguous(0, 11);
    let carried = TokenState::default();
    let x = tensor3(&problem.x, &device);
    let state = pe.state(&StateContext { layer: 0, at: &at, x: &x, carried: &carried });
    let ctx = LayerContext { layer: 0, at: &at, rows: &state, cols: &state };
    let (q, k) = (tensor4(&problem.q, &device), tensor4(&problem.k, &device));
    let (q, k) = pe.transform_qk(q, k, &ctx);
    let all = close::numbers(q.matmul(k.swap_dims(2, 3)) / (dims.head_dim as f64).sqrt());
    let seen = all
        .chunks(11)
        .enumerate()
        .flat_map(|(row, logits)| logits[..=row % 11].to_vec())
        .collect::<Vec<_>>();
    close::compare(&seen, expected, close::F32).unwrap();
}

/// The testkit's heads of six channels have only one mixed pair.
#[test]
fn fope_mixes_several_waves_into_several_pairs_as_its_equation_says() {
    let dims = Dims { width: 32, head_dim: 16, train_len: 40, ..super::DIMS };
    for padding in ["code", "zero"] {
        let serde_json::Value::Object(fields) = json!({ "base": 20.0, "padding": padding }) else {
            unreachable!()
        };
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let settings = serde_json::from_value(serde_json::Value::Object(fields)).unwrap();
        let fope = Fope::build(&settings, &dims, &mut rng, &Device::flex()).unwrap();
        // Five frequencies complete a turn, a quarter of the channels is mixed.
        assert_eq!(fope.mixtures(0)[0].dims(), [2, 5, 4]);
        let input = Problem::random(1, 11, &dims, 5).scalar(0, 0, &Positions::contiguous(0, 11));
        let expected =
            fope.scalar_logits(&input).into_iter().flatten().flatten().collect::<Vec<_>>();
        assert_engine_is(&fope, &dims, &expected);
    }
}

/// Doubles vectors: of a map of full rank alone, its multipliers.
struct Doubled;

impl ModuleMapper for Doubled {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if D == 1 { param.map(|tensor| tensor * 2.0) } else { param }
    }
}

#[test]
fn selective_rope_by_differences_turns_by_the_steps_themselves() {
    // Without a filter's memory, doubling the largest temperature doubles every angle.
    let of = |largest: f64| {
        let temperature = json!({ "kind": "rope", "base": 10.0, "largest": largest });
        pe(
            "selective-rope",
            json!({
                "filter": { "kind": "difference" }, "map": { "kind": "full-rank" },
                "temperature": temperature,
            }),
        )
    };
    let (one, two) = (of(1.0), of(2.0));
    assert_same(&two, &of(1.0).map(&mut Doubled));
    assert!(differs(&one, &two));
    let mut input = input();
    let last = input.x.last().unwrap().clone();
    // Equal tokens at both ends have equal sums, whatever the tokens in between.
    input.x[0] = last;
    let plain = pe("nope", json!({})).scalar().scalar_logits(&input);
    let rotated = one.scalar().scalar_logits(&input);
    assert!((plain[0][10][0] - rotated[0][10][0]).abs() < 1e-12);
    assert!((plain[0][10][5] - rotated[0][10][5]).abs() > 1e-6);
}
