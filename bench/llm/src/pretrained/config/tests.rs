mod scaling;

use super::*;
use pe_zoo::model::{ActivationKind, NormPlace, QkNormKind};
use serde_json::json;

fn config(change: Value) -> Value {
    let mut config = json!({
        "model_type": "llama", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 20,
        "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "torch_dtype": "bfloat16",
    });
    let (Value::Object(config_map), Value::Object(change)) = (&mut config, change) else {
        unreachable!()
    };
    config_map.extend(change);
    config
}

fn parse(change: Value) -> Result<LlamaSettings> {
    parse_text(&config(change).to_string())
}

fn parse_text(text: &str) -> Result<LlamaSettings> {
    let path = Path::new("config.json");
    let fields = fields(path, text)?;
    let written_by = WrittenBy::of(path, &fields, &Map::new())?;
    read(path, fields, &written_by)
}

#[test]
fn a_window_that_no_layer_has_is_ignored() {
    for change in [
        json!({ "sliding_window": 16 }),
        json!({ "model_type": "qwen2", "sliding_window": 16 }),
        // By default the first 28 layers have none.
        json!({ "model_type": "qwen2", "sliding_window": 16, "use_sliding_window": true }),
        json!({ "model_type": "qwen2", "sliding_window": 16, "use_sliding_window": true,
            "max_window_layers": 2 }),
        json!({ "model_type": "qwen2", "sliding_window": 16, "use_sliding_window": true,
            "max_window_layers": 0, "layer_types": ["full_attention", "full_attention"] }),
        json!({ "model_type": "mistral", "sliding_window": null }),
    ] {
        assert_eq!(parse(change.clone()).unwrap().window, None, "{change}");
    }
    for window in [64, 100] {
        let read = parse(json!({ "model_type": "mistral", "sliding_window": window })).unwrap();
        assert_eq!((read.window, read.layers), (Some(window), None));
    }
}

#[test]
fn layers_have_a_window_and_a_rotation_as_in_transformers() {
    let layers = |kind: &str, more: Value| {
        let mut change = json!({
            "model_type": kind, "num_hidden_layers": 4, "head_dim": 8, "sliding_window": 16,
            "use_sliding_window": true, "rope_theta": 1e4,
        });
        change.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let read = parse(change)?;
        assert_eq!(read.window, None);
        Ok::<_, anyhow::Error>(read.layers.map(|own| own.to_string()))
    };
    let canonical = |text: &str| Combination::parse(text).unwrap().to_string();
    let (full, sliding) = ("full_attention", "sliding_attention");
    let types = json!({ "layer_types": [full, sliding, full, sliding] });
    for (kind, more, expected) in [
        ("llama", json!({}), None),
        ("mistral", json!({}), Some("rope+window{size=16}")),
        ("qwen2", json!({}), None),
        ("qwen2", types.clone(), Some("rope/rope+window{size=16}")),
        (
            "qwen3",
            json!({ "max_window_layers": 2 }),
            Some("rope/rope/rope+window{size=16}/rope+window{size=16}"),
        ),
        ("qwen3", json!({ "max_window_layers": 0, "use_sliding_window": false }), None),
        ("smollm3", json!({}), Some("rope/rope/rope/window{size=16}")),
        ("smollm3", types.clone(), Some("rope/rope+window{size=16}/rope/window{size=16}")),
        (
            "olmo3",
            json!({}),
            Some("rope+window{size=16}/rope+window{size=16}/rope+window{size=16}/rope"),
        ),
        ("olmo3", types.clone(), Some("rope/rope+window{size=16}")),
    ] {
        let expected = expected.map(canonical);
        assert_eq!(layers(kind, more.clone()).unwrap(), expected, "{kind} {more}");
    }
    for (more, expected) in [
        (
            json!({ "layer_types": [full] }),
            "`layer_types` is a list of 1 value, expected a kind for each of the 4 layers",
        ),
        (
            json!({ "layer_types": [full, full, full, "linear_attention"] }),
            "`layer_types` is \"linear_attention\"",
        ),
        (json!({ "rope_theta": null }), "`rope_scaling.rope_theta` is absent, expected a number"),
        (
            json!({ "rope_scaling": { "rope_type": "linear", "factor": 2 }, "rope_parameters": { "rope_theta": 1e4 } }),
            "`rope_parameters` is given together with `rope_scaling`, expected one of",
        ),
    ] {
        let said = layers("olmo3", more.clone()).unwrap_err().to_string();
        assert!(said.contains(expected), "{more}: {said}");
    }
    // Of old files the scaling is that of full attention, of new ones each kind has its own.
    let scaled = json!({ "rope_type": "linear", "factor": 2.0 });
    let old = json!({ "rope_scaling": scaled, "layer_types": [sliding, sliding, full, full] });
    let new = json!({
        "rope_theta": null, "layer_types": [sliding, sliding, full, full],
        "rope_parameters": {
            full: { "rope_type": "linear", "factor": 2.0, "rope_theta": 1e4 },
            sliding: { "rope_type": "default", "rope_theta": 1e4 },
        },
    });
    let linear = "rope{scaling={type=linear,factor=2}}";
    let expected = format!("rope+window{{size=16}}/rope+window{{size=16}}/{linear}/{linear}");
    for more in [old, new] {
        assert_eq!(layers("olmo3", more).unwrap(), Some(canonical(&expected)));
    }
}

#[test]
fn null_is_the_default_and_a_negative_id_none() {
    let plain = parse(json!({})).unwrap();
    for field in ["tie_word_embeddings", "attention_bias", "hidden_act", "rope_theta", "head_dim"] {
        assert_eq!(parse(json!({ field: null })).unwrap(), plain, "{field}");
    }
    let yarn = |beta: Value| {
        parse(json!({ "rope_scaling": {
            "rope_type": "yarn", "factor": 4.0, "beta_fast": beta, "attention_factor": null,
        } }))
    };
    assert_eq!(yarn(Value::Null).unwrap(), yarn(json!(32.0)).unwrap());
    for (given, expected) in
        [(json!(-1), &[][..]), (Value::Null, &[]), (json!(2), &[2]), (json!([3, -1, 19]), &[3, 19])]
    {
        assert_eq!(parse(json!({ "eos_token_id": given })).unwrap().end, expected);
    }
    let generation = |text: &str| generation_end(Path::new("generation_config.json"), text);
    assert_eq!(generation(r#"{ "eos_token_id": [1, 2] }"#).unwrap(), [1, 2]);
    assert!(generation(r#"{ "temperature": 0.5 }"#).unwrap().is_empty());
}

#[test]
fn values_of_a_wrong_type_are_unsupported_and_a_missing_field_is_damage() {
    for field in ["hidden_size", "attention_bias", "sliding_window", "eos_token_id", "rope_scaling"]
    {
        let error = parse(json!({ field: "wide" })).unwrap_err();
        let is_named = error.to_string().contains(&format!("`{field}` is "));
        assert!(is_named && !error.to_string().contains("untagged"), "{field}: {error}");
    }
    let mut without = config(json!({}));
    without.as_object_mut().unwrap().remove("hidden_size");
    let error = parse_text(&without.to_string()).unwrap_err();
    assert!(error.to_string().contains("is damaged"), "{error}");
    assert!(error.to_string().contains("hidden_size"), "{error}");
}

#[test]
fn an_end_of_a_text_outside_the_vocabulary_is_refused() {
    for end in [json!(20), json!([2, 1000])] {
        let said = parse(json!({ "eos_token_id": end })).unwrap_err().to_string();
        assert!(said.contains("`eos_token_id` is") && said.contains("less than 20"), "{said}");
    }
    let settings = parse(json!({ "eos_token_id": 2 })).unwrap();
    let path = Path::new("generation_config.json");
    assert_eq!(settings.clone().with_end(path, &[3, 2]).unwrap().end, [2, 3]);
    let said = settings.with_end(path, &[20]).unwrap_err().to_string();
    assert!(said.contains("generation_config.json: `eos_token_id` is 20"), "{said}");
}

#[test]
fn the_class_of_the_tokenizer_is_stated_or_that_of_the_type() {
    let class = |change: Value| parse(change).unwrap().tokenizer_class;
    let llama = Some("LlamaTokenizer".to_owned());
    assert_eq!(class(json!({})), llama);
    assert_eq!(class(json!({ "model_type": "mistral", "tokenizer_class": null })), llama);
    let qwen = class(json!({ "model_type": "qwen2" }));
    assert_eq!(qwen.as_deref(), Some("Qwen2Tokenizer"));
    let stated = class(json!({ "tokenizer_class": "PreTrainedTokenizerFast" }));
    assert_eq!(stated.as_deref(), Some("PreTrainedTokenizerFast"));
}

#[test]
fn mistral_and_qwen2_are_read_with_their_own_defaults() {
    let mistral = parse(json!({ "model_type": "mistral" })).unwrap();
    assert!(!mistral.model.qkv_bias);
    let long = json!({ "model_type": "mistral", "max_position_embeddings": 8192 });
    let long = parse(long).unwrap();
    let own = Combination::parse("rope+window{size=4096}").unwrap();
    assert_eq!((long.window, long.layers), (None, Some(own)));
    let whole = json!({ "model_type": "mistral", "max_position_embeddings": 8192,
        "sliding_window": null });
    let whole = parse(whole).unwrap();
    assert_eq!((whole.context, whole.window), (8192, None));
    assert_eq!(mistral.window, Some(4096));
    let qwen2 = json!({ "model_type": "qwen2", "sliding_window": 16 });
    let qwen2 = parse(qwen2).unwrap();
    assert!(qwen2.model.qkv_bias && !qwen2.model.bias);
    assert_eq!(qwen2.window, None);
    let absent =
        json!({ "model_type": "qwen2", "use_sliding_window": true, "max_window_layers": 0 });
    assert_eq!(parse(absent).unwrap().window, Some(4096));
}

#[test]
fn qwen3_and_smollm3_are_read_with_their_own_defaults() {
    let qwen3 = parse(json!({ "model_type": "qwen3" })).unwrap();
    assert_eq!((qwen3.model.qk_norm, qwen3.model.head_dim()), (QkNormKind::Head, 128));
    let narrow = parse(json!({ "model_type": "qwen3", "head_dim": 8 })).unwrap();
    assert_eq!((narrow.model.head_dim, narrow.layers), (None, None));
    let layers =
        |change: Value| parse(change).map(|read| read.layers.map(|own| own.id().to_owned()));
    let smollm3 = |layers: usize, more: Value| {
        let mut change = json!({ "model_type": "smollm3", "num_hidden_layers": layers });
        change.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        change
    };
    let pattern = layers(smollm3(6, json!({ "rope_theta": 10000.0 }))).unwrap();
    assert_eq!(pattern.as_deref(), Some("rope/rope/rope/nope"));
    let given = json!({ "rope_theta": 10000.0, "no_rope_layers": [1, 0, 1] });
    assert_eq!(layers(smollm3(3, given.clone())).unwrap().as_deref(), Some("rope/nope"));
    let said = layers(smollm3(4, given.clone())).unwrap_err().to_string();
    assert!(
        said.contains(
            "`no_rope_layers` is a list of 3 values, expected a number for each of the 4"
        ),
        "{said}"
    );
    // A longer list counts up to the number of layers.
    assert_eq!(layers(smollm3(2, given)).unwrap().as_deref(), Some("rope/nope"));
}

/// Values of the configuration classes of transformers 5.24 for a file that states neither.
#[test]
fn a_base_and_a_tied_head_that_no_file_states_are_those_of_the_type() {
    for (kind, base, is_tied) in [
        ("llama", 1e4, false),
        ("mistral", 1e4, false),
        ("qwen2", 1e4, false),
        ("qwen3", 1e4, false),
        ("smollm3", 2e6, true),
        ("olmo2", 1e4, false),
        ("gemma2", 1e4, true),
        ("gemma3_text", 1e6, true),
    ] {
        let read = parse(json!({ "model_type": kind })).unwrap();
        assert_eq!((read.rope.base, read.model.tied_head), (base, is_tied), "{kind}");
    }
    // Its versions differ.
    assert!(parse(json!({ "model_type": "olmo3" })).is_err());
}

/// Defaults of transformers, of files of version 4 and 5.
#[test]
fn gemmas_are_read_with_their_own_defaults() {
    let gemma = |kind: &str, layers: usize, more: Value| {
        let mut change = json!({ "model_type": kind, "num_hidden_layers": layers,
            "max_position_embeddings": 8192, "sliding_window": 16 });
        change.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        parse(change).unwrap()
    };
    let layers = |read: &LlamaSettings| read.layers.clone().unwrap();
    let expected = |text: &str| Combination::parse(text).unwrap();
    let second = gemma("gemma2", 4, json!({}));
    let model = &second.model;
    assert_eq!((model.head_dim(), model.norm_place), (256, NormPlace::Both));
    assert_eq!((model.activation, model.head_cap), (ActivationKind::GeGlu, Some(30.0)));
    assert!(model.tied_head && model.scaled_embedding);
    assert_eq!(second.stored, StoredForm { gain_offset: 1.0, query_scale: 1.0 });
    assert_eq!(layers(&second), expected("rope+window{size=16}+logit-cap/rope+logit-cap"));
    let uncapped = json!({ "final_logit_softcapping": null, "attn_logit_softcapping": null,
        "query_pre_attn_scalar": 64, "head_dim": 16 });
    let uncapped = gemma("gemma2", 2, uncapped);
    assert_eq!(uncapped.model.head_cap, None);
    assert_eq!(uncapped.stored, StoredForm { gain_offset: 1.0, query_scale: 0.5 });
    assert_eq!(layers(&uncapped), expected("rope+window{size=16}/rope"));
    let (local, global) = ("rope+window{size=16}", "rope{base=1000000.0}");
    let third = gemma("gemma3_text", 6, json!({}));
    let pattern = [local; 5].join("/");
    assert_eq!(layers(&third), expected(&format!("{pattern}/{global}")));
    assert_eq!((third.model.qk_norm, third.model.head_cap), (QkNormKind::Head, None));
    // The scaling of a file of version 4 is that of layers without a window; a cap of attention counts for nothing.
    let old = json!({ "sliding_window_pattern": 2, "rope_theta": 5e5, "rope_local_base_freq": 2e4,
        "rope_scaling": { "rope_type": "linear", "factor": 8.0 }, "attn_logit_softcapping": 50.0 });
    let (local, global) = (
        "rope{base=20000.0}+window{size=16}",
        "rope{base=500000.0,scaling={type=linear,factor=8.0}}",
    );
    assert_eq!(layers(&gemma("gemma3_text", 2, old)), expected(&format!("{local}/{global}")));
    let new = json!({ "layer_types": ["full_attention", "sliding_attention"], "rope_parameters": {
        "full_attention": { "rope_type": "linear", "factor": 8.0, "rope_theta": 5e5 },
        "sliding_attention": { "rope_type": "default", "rope_theta": 2e4 } } });
    assert_eq!(layers(&gemma("gemma3_text", 2, new)), expected(&format!("{global}/{local}")));
}

#[test]
fn other_kinds_of_models_are_refused_with_the_setting_named() {
    for (change, expected) in [
        (json!({ "model_type": "gpt2" }), "`model_type` is \"gpt2\", expected one of \"llama\""),
        (json!({ "hidden_act": "gelu" }), "hidden_act"),
        (json!({ "attention_bias": true }), "attention_bias"),
        (json!({ "mlp_bias": true }), "mlp_bias"),
        (json!({ "quantization_config": { "bits": 4 } }), "quantization_config"),
        (json!({ "head_dim": 0 }), "`head_dim` is 0, expected 1 to"),
        (
            json!({ "model_type": "gemma2", "hidden_activation": "gelu" }),
            "expected \"gelu_pytorch_tanh\"",
        ),
        (
            json!({ "model_type": "gemma2", "query_pre_attn_scalar": 0 }),
            "`query_pre_attn_scalar` is 0",
        ),
        (
            json!({ "model_type": "gemma3_text", "use_bidirectional_attention": true }),
            "`use_bidirectional_attention` is true, expected false",
        ),
        (
            json!({ "model_type": "gemma3_text", "sliding_window_pattern": 0 }),
            "`sliding_window_pattern` is 0, expected a number above 0",
        ),
        (
            json!({ "model_type": "smollm3", "no_rope_layer_interval": 0 }),
            "`no_rope_layer_interval` is 0, expected a number above 0",
        ),
        (
            json!({ "model_type": "gemma3_text", "rope_local_base_freq": -1.0 }),
            "`rope_local_base_freq` is -1",
        ),
        (json!({ "num_attention_heads": 0 }), "`num_attention_heads` is 0, expected 1 to"),
        (json!({ "num_attention_heads": 3 }), "`num_attention_heads` is 3, expected a divisor"),
        (json!({ "num_key_value_heads": 3 }), "`num_key_value_heads` is 3, expected a divisor"),
        (json!({ "num_hidden_layers": 0 }), "`num_hidden_layers` is 0"),
        (json!({ "hidden_size": 1_u64 << 40 }), "`hidden_size` is 1099511627776"),
        (json!({ "intermediate_size": 0 }), "`intermediate_size` is 0"),
        (json!({ "vocab_size": 0 }), "`vocab_size` is 0"),
        (json!({ "max_position_embeddings": 0 }), "`max_position_embeddings` is 0"),
        (
            json!({ "rms_norm_eps": 0.0 }),
            "`rms_norm_eps` is 0, expected a number above 0; use another model",
        ),
        (json!({ "rope_scaling": { "type": "spiral", "factor": 2.0 } }), "spiral"),
        (json!({ "rope_scaling": { "type": "linear" } }), "factor"),
        (
            json!({ "rope_scaling": { "type": "linear", "factor": 0.5 } }),
            "`rope_scaling.factor` is 0.5",
        ),
        (json!({ "rope_parameters": { "rope_theta": "big" } }), "rope_theta"),
        (json!({ "hidden_size": "wide" }), "`hidden_size`"),
    ] {
        let said = parse(change.clone()).unwrap_err().to_string();
        assert!(said.contains("config.json") && said.contains(expected), "{change}: {said}");
    }
}
