use super::*;
use crate::zoo::tests::Examples;
use proptest::prelude::*;
use rand_chacha::rand_core::SeedableRng;
use serde_json::json;

pub(crate) const EXAMPLES: &[Examples] = &[
    Examples {
        facts: "acts on query, key; shift invariant",
        texts: &[
            "rope",
            "rope{layout=interleaved}",
            "rope{scaling={type=linear,factor=2.0}}",
            "rope{scaling={type=ntk,factor=4.0},base=500.0}",
            "rope{rotary_fraction=0.67,base=50.0}",
            "rope{rotary_fraction=0.67,layout=interleaved}",
            "rope{scaling={rope_type=ntk,factor=4.0},base=500.0}",
            "rope{base=50.0,scaling={rope_type=yarn,factor=4.0,beta_fast=2.0,beta_slow=0.5}}",
            "rope{scaling={rope_type=yarn,factor=4.0,truncate=false,mscale=1.0,mscale_all_dim=0.5}}",
            "rope{scaling={rope_type=yarn,factor=4.0,extrapolation_factor=0.5}}",
            "rope{base=50.0,scaling={rope_type=part-ntk,factor=4.0,ntk_factor=0.5,original_max_position_embeddings=16}}",
            "rope{scaling={rope_type=longrope,attention_factor=1.2,short_factor=[1.0,1.5,2.0],long_factor=[1.0,1.5,2.0]}}",
            "rope{base=50.0,scaling={rope_type=llama3,factor=8.0,low_freq_factor=0.5,high_freq_factor=2.0,original_max_position_embeddings=16}}",
            "rope{scaling={rope_type=proportional,factor=2.0,partial_rotary_factor=0.7}}",
            "rope{scaling={rope_type=clipped}}",
            "rope{scaling={rope_type=clipped,pairs=2}}",
            "rope{base=50.0,scaling={rope_type=clipped,pairs=1,hard=true}}",
            "rope{base=50.0,scaling={rope_type=high-frequency,original_max_position_embeddings=23}}",
            "rope{learning=all-layers}",
            "rope{learning=per-layer,layout=interleaved,base=50.0}",
            "rope{learning=per-layer,rotary_fraction=0.67,base=50.0,scaling={rope_type=yarn,factor=4.0}}",
        ],
    },
    Examples {
        facts: "acts on query, key; mixes heads, shift invariant",
        texts: &[
            "rope{imaginary=true}",
            "rope{imaginary=true,layout=interleaved,learning=all-layers}",
            "rope{imaginary=true,rotary_fraction=0.67,base=50.0}",
        ],
    },
    Examples {
        facts: "acts on query, key, logits; reads vectors, replaces products, shift invariant; dense on GPUs in f32",
        texts: &[
            "rope{far={type=constant,window=5}}",
            "rope{far={type=constant,window=9},learning=all-layers,base=50.0}",
        ],
    },
    Examples {
        facts: "acts on query, key, logits; reads vectors, replaces products; dense on GPUs in f32",
        texts: &[
            "rope{far={type=grouped,window=6,group=3}}",
            "rope{far={type=chunks,chunk=5,window=2}}",
            "rope{far={type=chunks,chunk=3,window=3},learning=per-layer,base=50.0}",
            "rope{far={type=grouped,window=8,group=5},layout=interleaved,rotary_fraction=0.67,scaling={rope_type=yarn,factor=4.0}}",
        ],
    },
    Examples {
        facts: "acts on query, key; depends on length",
        texts: &[
            "rope{scaling={rope_type=dynamic,factor=2.0}}",
            "rope{base=50.0,scaling={rope_type=dynamic,factor=1.0,original_max_position_embeddings=6}}",
            "rope{base=50.0,scaling={rope_type=composed,parts=[{rope_type=llama3,factor=8.0,low_freq_factor=0.5,high_freq_factor=2.0,original_max_position_embeddings=16},{rope_type=dynamic,factor=1.0,original_max_position_embeddings=6}]}}",
            "rope{scaling={rope_type=longrope,factor=2.0,short_factor=[1.0,1.5,2.0],long_factor=[1.0,3.0,9.0]}}",
        ],
    },
];

const DIMS: Dims = Dims { layers: 1, width: 8, heads: 1, head_dim: 8, train_len: 8, max_len: 8 };

fn config(settings: serde_json::Value) -> RopeConfig {
    serde_json::from_value(settings).unwrap()
}

#[test]
fn an_odd_head_dimension_is_refused_by_name() {
    let dims = Dims { width: 15, head_dim: 15, ..DIMS };
    let error = Rope::check(&RopeConfig::default(), &dims).unwrap_err().to_string();
    assert!(error.contains("model.head_dim is 15") && error.contains("even"), "{error}");
}

#[test]
fn shares_that_cannot_turn_pairs_are_refused() {
    for (share, expected) in [(0.4, "even number of the 8"), (1.5, "0 to 1"), (-0.1, "0 to 1")] {
        let error = Rope::check(&config(json!({ "rotary_fraction": share })), &DIMS).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("rotary_fraction") && error.contains(expected), "{error}");
    }
    Rope::check(&config(json!({ "rotary_fraction": 0.5 })), &DIMS).unwrap();
}

#[test]
fn a_factor_below_one_is_refused() {
    let error =
        Rope::check(&config(json!({ "scaling": { "type": "linear", "factor": 0.5 } })), &DIMS);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("rope: scaling.factor is 0.5"), "{error}");
}

fn rope(settings: serde_json::Value, dims: &Dims) -> Rope {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    Rope::build(&config(settings), dims, &mut rng, &Device::flex()).unwrap()
}

proptest! {
    /// Compares the tensors' frequencies with the equations for the settings of all kinds.
    #[test]
    fn frequencies_are_those_of_the_equations(
        half in 2usize..40, base in 2.0f64..1e6, factor in 1.0f64..64.0,
        original in 2usize..5000, len in 1usize..20_000, slow in 0.5f64..8.0,
        more in 0.1f64..60.0, share in 0.0f64..1.0, truncate: bool,
    ) {
        let dims = Dims { width: 2 * half, head_dim: 2 * half, train_len: original, ..DIMS };
        let divisors = |step: f64| (0..half).map(|m| 1.0 + step * m as f64).collect::<Vec<_>>();
        let all = [
            json!({ "rope_type": "default" }),
            json!({ "rope_type": "linear", "factor": factor }),
            json!({ "rope_type": "ntk", "factor": factor }),
            json!({ "rope_type": "dynamic", "factor": factor }),
            json!({ "rope_type": "yarn", "factor": factor, "beta_slow": slow,
                "beta_fast": slow + more, "truncate": truncate }),
            json!({ "rope_type": "yarn", "factor": factor, "mscale": share + 0.1,
                "mscale_all_dim": 0.5 }),
            json!({ "rope_type": "yarn", "factor": factor, "extrapolation_factor": share }),
            json!({ "rope_type": "part-ntk", "factor": factor, "ntk_factor": share,
                "extrapolation_factor": 1.0 - share }),
            json!({ "rope_type": "longrope", "factor": factor, "short_factor": divisors(0.1),
                "long_factor": divisors(0.7) }),
            json!({ "rope_type": "llama3", "factor": factor, "low_freq_factor": slow,
                "high_freq_factor": slow + more, "original_max_position_embeddings": original }),
            json!({ "rope_type": "proportional", "partial_rotary_factor": share,
                "factor": factor }),
            json!({ "rope_type": "clipped", "pairs": 1 + half / 3, "hard": truncate }),
            json!({ "rope_type": "clipped", "pairs": half }),
            json!({ "rope_type": "high-frequency" }),
        ];
        for scaling in all {
            let rope = rope(json!({ "base": base, "scaling": scaling }), &dims);
            let (frequencies, attention) = rope.equations(len);
            let spectrum = rope.config.scaling.spectrum(base, 2 * half, original, len);
            prop_assert!((spectrum.attention_factor - attention).abs() < 1e-12, "{scaling}");
            for (a, b) in spectrum.frequencies.iter().zip(&frequencies) {
                prop_assert!((a - b).abs() <= 1e-9 * b + 1e-30, "{scaling}: {a} {b}");
            }
            prop_assert_eq!(spectrum.frequencies.len(), frequencies.len());
            prop_assert!(frequencies.iter().all(|f| (0.0..=1.0).contains(f)), "{}", scaling);
        }
    }
}
