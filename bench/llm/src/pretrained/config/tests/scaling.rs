use super::super::super::kinds::THETA;
use super::*;
use pe_zoo::rotary::{ORIGINAL_LENGTH, Scaling};
use pe_zoo::zoo::rope::RopeConfig;

#[test]
fn every_rope_scaling_of_huggingface_becomes_ours() {
    let list = vec![1.0; 4];
    let cases = [
        (json!({}), "default"),
        (json!({ "rope_scaling": null }), "default"),
        (json!({ "rope_scaling": { "rope_type": "default" } }), "default"),
        (json!({ "rope_scaling": { "type": "linear", "factor": 2.0 } }), "linear"),
        (json!({ "rope_scaling": { "type": "dynamic", "factor": 2.0 } }), "dynamic"),
        (
            json!({ "rope_scaling": {
                "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16
            } }),
            "yarn",
        ),
        (
            json!({
                "rope_scaling": { "type": "longrope", "short_factor": list, "long_factor": list },
                "original_max_position_embeddings": 16,
            }),
            "longrope",
        ),
        (
            json!({ "rope_scaling": {
                "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "original_max_position_embeddings": 16
            } }),
            "llama3",
        ),
    ];
    for (change, kind) in cases {
        assert_eq!(parse(change.clone()).unwrap().rope.scaling.id(), kind, "{change}");
    }
}

#[test]
fn theta_stands_beside_the_object_or_within_it() {
    assert!((parse(json!({ "rope_theta": 5e5 })).unwrap().rope.base - 5e5).abs() < 1e-9);
    let within = json!({ "rope_parameters": { "rope_theta": 7e4, "rope_type": "default" } });
    assert!((parse(within).unwrap().rope.base - 7e4).abs() < 1e-9);
    assert!((parse(json!({})).unwrap().rope.base - THETA).abs() < 1e-9);
}

#[test]
fn a_share_of_channels_counts_in_proportional_scaling_alone() {
    let proportional =
        |share: f64| Scaling::Proportional { partial_rotary_factor: share, factor: 1.0 };
    for (change, scaling) in [
        (
            json!({ "rope_parameters": {
                "rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25
            } }),
            proportional(0.25),
        ),
        (
            json!({
                "rope_parameters": { "rope_type": "proportional", "rope_theta": 1e6 },
                "partial_rotary_factor": 0.5,
            }),
            proportional(0.5),
        ),
        (
            json!({ "rope_parameters": {
                "rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 0.25
            } }),
            Scaling::None,
        ),
        (json!({ "rope_theta": 1e6, "partial_rotary_factor": 0.5 }), Scaling::None),
        (
            json!({ "rope_theta": 1e6, "partial_rotary_factor": 1.0,
                "rope_scaling": { "type": "linear", "factor": 2.0 } }),
            Scaling::Linear { factor: 2.0 },
        ),
    ] {
        // Types whose class in transformers has no share of its own; OLMo 2 and SmolLM3 as Llama.
        for kind in ["llama", "olmo2", "smollm3"] {
            let mut change = change.clone();
            change["model_type"] = kind.into();
            change["no_rope_layers"] = json!([1, 1]);
            let rope = parse(change.clone()).unwrap().rope;
            let expected =
                RopeConfig { base: 1e6, scaling: scaling.clone(), ..RopeConfig::default() };
            assert_eq!(rope, expected, "{change}");
        }
    }
}

#[test]
fn longropes_factor_is_the_quotient_of_the_two_lengths() {
    let list = vec![1.0; 4];
    let settings = parse(json!({
        "rope_scaling": { "type": "longrope", "short_factor": list, "long_factor": list },
        "original_max_position_embeddings": 16,
    }));
    let Scaling::LongRope(longrope) = settings.unwrap().rope.scaling else { unreachable!() };
    assert_eq!(longrope.factor, Some(4.0));
    assert_eq!(longrope.original_max_position_embeddings, Some(16));
}

#[test]
fn original_lengths_and_factors_are_where_transformers_takes_them() {
    let scaling = |scaling: Value, beside: Option<usize>| {
        let change = json!({ "rope_scaling": scaling, "original_max_position_embeddings": beside });
        serde_json::to_value(&parse(change).unwrap().rope.scaling).unwrap()
    };
    let dynamic =
        json!({ "type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 16 });
    assert_eq!(scaling(dynamic, Some(8)).get(ORIGINAL_LENGTH), None, "the trained length");
    let yarn = |original: Option<usize>| json!({ "type": "yarn", "factor": 3.0, ORIGINAL_LENGTH: original });
    assert_eq!(scaling(yarn(None), Some(8))[ORIGINAL_LENGTH], 8);
    assert_eq!(scaling(yarn(Some(16)), Some(8))[ORIGINAL_LENGTH], 16);
    let llama3 = json!({
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    });
    assert_eq!(scaling(llama3, Some(8))[ORIGINAL_LENGTH], 8);
    let list = vec![1.0; 4];
    let longrope = json!({
        "type": "longrope", "short_factor": list, "long_factor": list, "factor": 3.0, ORIGINAL_LENGTH: 16,
    });
    let read = scaling(longrope, Some(8));
    assert_eq!((&read[ORIGINAL_LENGTH], &read["factor"]), (&json!(8), &json!(3.0)));
    // A factor that is absent is the quotient, as for 64 tokens and 16 before.
    let quotient = scaling(json!({ "type": "yarn", "factor": null, ORIGINAL_LENGTH: 16 }), None);
    assert_eq!(quotient["factor"], 4.0);
    let neither = parse(json!({ "rope_scaling": { "type": "yarn" } })).unwrap_err().to_string();
    assert!(neither.contains("`rope_scaling.factor` is absent"), "{neither}");
}

/// As transformers 4.57.1 and 5.24.0 compute the frequencies of such files for `llama`.
#[test]
fn original_lengths_follow_the_version_that_wrote_the_file() {
    let list = vec![1.0; 4];
    let longrope = json!({ "type": "longrope", "short_factor": list, "long_factor": list });
    let yarn = json!({ "type": "yarn", "factor": 4.0 });
    let llama3 = json!({
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    });
    let read = |version: &str, scaling: &Value, more: Value, beside: Option<usize>| {
        let mut scaling = scaling.clone();
        scaling.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let change = json!({
            "transformers_version": version, "rope_scaling": scaling,
            "original_max_position_embeddings": beside,
        });
        let read = serde_json::to_value(&parse(change).unwrap().rope.scaling).unwrap();
        (read[ORIGINAL_LENGTH].as_u64(), read["factor"].as_f64())
    };
    let (four, five) = ("4.57.1", "5.24.0");
    let within = json!({ ORIGINAL_LENGTH: 32 });
    let with_factor = json!({ ORIGINAL_LENGTH: 32, "factor": 3.0 });
    for (version, scaling, more, beside, expected) in [
        (four, &longrope, &json!({}), Some(16), (Some(16), Some(4.0))),
        (five, &longrope, &json!({}), Some(16), (Some(16), Some(4.0))),
        (four, &longrope, &within, Some(16), (Some(16), Some(4.0))),
        (five, &longrope, &within, Some(16), (Some(16), Some(4.0))),
        (five, &longrope, &within, None, (Some(32), Some(2.0))),
        (four, &longrope, &with_factor, None, (None, Some(3.0))),
        (five, &longrope, &with_factor, None, (Some(32), Some(3.0))),
        (four, &longrope, &with_factor, Some(16), (Some(16), Some(4.0))),
        (five, &longrope, &with_factor, Some(16), (Some(16), Some(3.0))),
        (four, &yarn, &json!({}), Some(16), (None, Some(4.0))),
        (five, &yarn, &json!({}), Some(16), (Some(16), Some(4.0))),
        (four, &yarn, &within, Some(16), (Some(32), Some(4.0))),
        (five, &yarn, &within, Some(16), (Some(16), Some(4.0))),
        (four, &llama3, &within, Some(16), (Some(32), Some(8.0))),
        (five, &llama3, &within, Some(16), (Some(16), Some(8.0))),
    ] {
        let found = read(version, scaling, more.clone(), beside);
        assert_eq!(found, expected, "{version} {scaling} {more} {beside:?}");
    }
}

#[test]
fn several_objects_describe_one_rotation_or_are_refused_by_their_names() {
    let linear =
        |factor: Value| json!({ "rope_type": "linear", "factor": factor, "rope_theta": 700.0 });
    let base = |theta: f64| json!({ "rope_type": "default", "rope_theta": theta });
    let both = parse(json!({
        "rope_theta": 700.0, "rope_scaling": { "type": "linear", "factor": 2 },
        "rope_parameters": linear(json!(2.0)),
    }));
    assert_eq!(
        both.unwrap().rope,
        parse(json!({ "rope_parameters": linear(json!(2.0)) })).unwrap().rope
    );
    let by_layer = |full: Value, sliding: Value, types: Value| {
        parse(json!({
            "layer_types": types,
            "rope_parameters": { "full_attention": full, "sliding_attention": sliding, "rope_theta": 1e4 },
        }))
    };
    let full = json!(["full_attention", "full_attention"]);
    for (sliding, types) in
        [(base(1e6), Value::Null), (base(1e4), full.clone()), (Value::Null, full)]
    {
        let read = by_layer(base(1e6), sliding, types).unwrap();
        assert!((read.rope.base - 1e6).abs() < 1e-9);
    }
    for (change, expected) in [
        (
            json!({ "rope_scaling": linear(json!(2)), "rope_parameters": linear(json!(4)) }),
            "`rope_parameters` is another rotation than `rope_scaling`, expected the same rotation in both, \
             or only one of `rope_scaling` and `rope_parameters`; remove the wrong one",
        ),
        (
            json!({ "rope_parameters": { "full_attention": base(1e6), "sliding_attention": base(1e4) } }),
            "`rope_parameters.sliding_attention` is another rotation than `rope_parameters.full_attention`, expected one \
             rotation for all kinds of layers; use another model",
        ),
        (
            json!({ "rope_parameters": { "full_attention": base(1e6), "linear_attention": null } }),
            "`rope_parameters.linear_attention` is null, expected a rotation for all kinds of layers",
        ),
        (
            json!({ "layer_types": ["other"], "rope_parameters": { "full_attention": base(1e6) } }),
            "`rope_parameters` is full_attention, expected a rotation for the kinds in `layer_types`",
        ),
        (json!({ "rope_parameters": { "rope_type": "spiral" } }), "`rope_parameters` is {"),
        (
            json!({ "rope_parameters": { "rope_type": "yarn" } }),
            "`rope_parameters.factor` is absent",
        ),
        (
            json!({ "rope_parameters": { "rope_theta": "big" } }),
            "`rope_parameters.rope_theta` is \"big\"",
        ),
        (
            json!({ "rope_scaling": { "type": "linear", "factor": 0.5 } }),
            "`rope_scaling.factor` is 0.5, expected at least 1; use another model",
        ),
        (
            json!({ "rope_parameters": { "type": "linear", "factor": 0.5 } }),
            "`rope_parameters.factor` is 0.5",
        ),
        (
            json!({ "rope_parameters": { "full_attention": { "rope_type": "linear", "factor": 1e300 } } }),
            "`rope_parameters.full_attention.factor` is 1e+300, expected 0, or a number",
        ),
        (json!({ "rope_theta": 0 }), "`rope_theta` is 0, expected a number above 1"),
        (json!({ "rope_theta": "big" }), "(invalid type: string \"big\", expected a number)"),
        (json!({ "rope_parameters": { "rope_theta": 1 } }), "`rope_parameters.rope_theta` is 1"),
        (
            json!({ "partial_rotary_factor": 0.5, "rope_scaling": { "type": "linear", "factor": 2.0 } }),
            "`partial_rotary_factor` is 0.5, expected 1 with this scaling",
        ),
        (
            json!({ "rope_parameters": { "type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5 } }),
            "`rope_parameters.partial_rotary_factor` is 0.5",
        ),
    ] {
        let said = parse(change.clone()).unwrap_err().to_string();
        assert!(said.contains(expected), "{change}: {said}");
    }
}
