use serde_json::json;

use super::*;
use crate::zoo::tests::Examples;
use crate::{Dims, PositionEncoding};

pub(crate) const EXAMPLES: &[Examples] = &[Examples {
    facts: "acts on query, key, state; content dependent, ignores positions, shift invariant",
    texts: &[
        "selective-rope",
        "selective-rope{map={kind=full-rank},bias=true,filter={kind=convolution,kernel=3,activation=silu}}",
        "selective-rope{filter={kind=difference},gate={kind=per-head}}",
        "selective-rope{map={kind=low-rank,rank=2},filter={kind=convolution,kernel=1},gate={kind=per-head-low-rank,rank=3},temperature={kind=rfa,theta=0.4,largest=0.5}}",
        "selective-rope{bias=true,gate={kind=per-channel},temperature={kind=rope,base=10.0,largest=0.3}}",
    ],
}];

const DIMS: Dims = Dims { layers: 1, width: 128, heads: 2, head_dim: 64, train_len: 8, max_len: 8 };

fn config(settings: serde_json::Value) -> SelectiveRopeConfig {
    serde_json::from_value(settings).unwrap()
}

/// Expected values for D 64.
#[test]
fn temperatures_are_those_of_the_specification() {
    let rope = SelectiveRopeConfig::default().temperature.values(64);
    for (m, expected) in [(0, 1.0), (1, 0.663_601), (31, 3.0139e-6)] {
        assert!((rope[m] / expected - 1.0).abs() < 2e-5, "{m}: {}", rope[m]);
    }
    let rfa = Temperature::Rfa { theta: 0.5, largest: 2.0 }.values(10);
    // Tangents of 0, pi/16, …, pi/4, times 2.
    let tangents = (0..5).map(|m| 2.0 * (std::f64::consts::PI * f64::from(m) / 16.0).tan());
    for (temperature, expected) in rfa.iter().zip(tangents) {
        assert!((temperature - expected).abs() < 1e-12, "{rfa:?}");
    }
    // `1 + cos` of an angle so near to pi is 0.
    let steep = Temperature::Rfa { theta: 1.0 - 1e-9, largest: 2.0 }.values(64);
    assert!(steep.iter().all(|temperature| temperature.is_finite()), "{steep:?}");
    assert!((steep[31] - 2.0).abs() < 1e-3, "{steep:?}");
}

#[test]
fn settings_that_cannot_work_are_refused_by_name() {
    for (settings, expected) in [
        (json!({ "map": { "kind": "low-rank", "rank": 0 } }), "map.rank is 0"),
        (json!({ "filter": { "kind": "convolution", "kernel": 0 } }), "filter.kernel is 0"),
        (json!({ "gate": { "kind": "per-channel", "rank": 0 } }), "gate.rank is 0"),
        (json!({ "temperature": { "kind": "rfa", "theta": 1.5 } }), "temperature.theta is 1.5"),
        (json!({ "temperature": { "kind": "rope", "base": 0.5 } }), "temperature.base is 0.5"),
    ] {
        let error = SelectiveRope::check(&config(settings), &DIMS).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn settings_of_another_kind_are_refused_by_name() {
    for settings in [
        json!({ "map": { "kind": "full-rank", "rank": 3 } }),
        json!({ "gate": { "kind": "per-head", "rank": 3 } }),
        json!({ "gate": { "kind": "none", "rank": 3 } }),
    ] {
        let error =
            serde_json::from_value::<SelectiveRopeConfig>(settings).unwrap_err().to_string();
        assert!(error.contains("unknown field `rank`"), "{error}");
    }
}

#[test]
fn the_formula_in_the_table_is_the_count_of_the_default() {
    let (width, rank) = (DIMS.width, 32);
    // Four taps per pair of channels are two per channel.
    let formula = DIMS.layers * (rank * (width + width / 2) + 2 * width);
    assert_eq!(SelectiveRope::param_count(&SelectiveRopeConfig::default(), &DIMS), Some(formula));
}
