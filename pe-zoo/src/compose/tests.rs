use proptest::prelude::*;

use rand_chacha::rand_core::SeedableRng;
use serde_json::Value;

use super::*;
use crate::Hooks;
use crate::encoding::PositionRequest;

fn canonical(text: &str) -> String {
    Combination::parse(text).unwrap_or_else(|error| panic!("{error}")).to_string()
}

fn refusal(text: &str) -> String {
    Combination::parse(text).unwrap_err().to_string()
}

#[test]
fn the_canonical_text_is_sorted_and_holds_what_differs_from_the_defaults() {
    for (text, expected) in [
        ("rope", "rope"),
        (" rope { } ", "rope"),
        ("rope{base=10000}", "rope"),
        ("rope{base=500}", "rope{base=500.0}"),
        ("rope+cope", "cope+rope"),
        ("rope + cope { max_positions = 16 , }", "cope{max_positions=16}+rope"),
        ("rope{scaling={type=\"linear\",factor=2}}", "rope{scaling={factor=2.0,rope_type=linear}}"),
        ("learned-absolute{std=1e-3}", "learned-absolute{std=0.001}"),
        ("randomized", "randomized(rope)"),
        ("rope+randomized", "randomized(rope)"),
        ("alibi+randomized{longest=99}(rope)", "randomized{longest=99}(alibi+rope)"),
        ("tape(yarn)", "tape(yarn)"),
        ("tape{scaling={type=yarn,factor=2}}", "tape(yarn{factor=2.0})"),
        ("tape{form=vector}(linear{factor=2})", "tape{form=vector}(linear{factor=2.0})"),
        ("tape(default)", "tape"),
        ("dape(fire)", "dape(fire)"),
        ("rope + dape{width=4}(alibi{slopes=paper})", "dape{width=4}(alibi{slopes=paper})+rope"),
        ("dape(kerple)", "dape"),
        ("randomized(fire)", "randomized(fire)"),
        ("relative-capped{max_distance=4}+alibi", "alibi+relative-capped{max_distance=4}"),
        ("layers", "rope/nope"),
        (" rope / nope ", "rope/nope"),
        ("(rope)/((nope))", "rope/nope"),
        ("(rope/nope)", "rope/nope"),
        ("(rope+alibi)+cope", "alibi+cope+rope"),
        ("rope{base=1e4}+alibi/nope", "alibi+rope/nope"),
        ("(rope/nope)+alibi", "alibi+(rope/nope)"),
        ("randomized( rope/nope )", "randomized(rope/nope)"),
        ("randomized(alibi+(rope/nope))", "randomized(alibi+(rope/nope))"),
        ("dape(fire)/dape(alibi)/nope", "dape(fire)/dape(alibi)/nope"),
        ("rope{base=1e4}/rope{base=1e6}", "rope/rope{base=1000000.0}"),
    ] {
        assert_eq!(canonical(text), expected);
        assert_eq!(canonical(expected), expected);
    }
}

#[test]
fn every_mistake_is_named_with_its_place() {
    for (text, place, expected) in [
        ("", 1, "found the end, expected the id"),
        ("cope+", 6, "found the end, expected the id"),
        ("cope++rope", 6, "found `+`, expected the id"),
        ("cope rope", 6, "found `r`, expected `+`"),
        ("cope+rop", 6, "did you mean `rope`?"),
        ("cope{max_positions}", 19, "found `}`, expected `=`"),
        ("cope{max_positions=}", 20, "expected a value"),
        ("cope{max_positions=16", 22, "found the end, expected `}` or `,`"),
        ("cope{max_positions=16,max_positions=17}", 23, "set twice"),
        ("rope + cope{max_position=16}", 13, "did you mean `max_positions`?"),
        ("cope{max_positions=1.5}+rope", 1, "invalid type"),
        ("rope{base=1e999}", 11, "a finite number"),
        ("rope{layout=\"x}", 13, "text without an end"),
        ("rope{layout=\"\\q\"}", 13, "text in quotes"),
        ("tape(yarn{factr=2})", 5, "unknown field `factr`"),
        ("dape(rope)", 5, "unknown variant `rope`"),
        ("dape(fire+alibi)", 5, "expected one part for `base`"),
        ("dape{base={type=none}}(fire)", 23, "both in {…} and in (…)"),
        ("rope(alibi)", 5, "`rope` does not take an encoding in brackets"),
        ("rope)", 5, "found `)`"),
        ("ä+rope", 1, "found `ä`, expected the id"),
        ("rope/", 6, "found the end, expected the id"),
        ("rope//nope", 6, "found `/`, expected the id"),
        ("(rope/nope", 11, "found the end, expected `)`, `+` or `/`"),
        ("nope+(rope/abc)", 12, "unknown encoding `abc`"),
        ("layers(rope/nope)", 7, "`layers` does not take an encoding in brackets"),
        ("dape(fire/alibi)", 5, "expected one part for `base`"),
    ] {
        let said = refusal(text);
        assert!(said.contains(&format!("at character {place}: ")), "{said}");
        assert!(said.contains(expected), "{said}");
    }
    let deep = refusal(&"rope(".repeat(10_000));
    assert!(deep.contains("brackets are nested"), "{deep}");
    let deep = refusal(&format!("rope{{base={}", "[".repeat(10_000)));
    assert!(deep.contains("brackets are nested"), "{deep}");
}

#[test]
fn parts_that_claim_the_same_place_are_refused_with_the_reason() {
    for (text, expected) in [
        ("rope+rope{base=5.0}", "`rope` is given twice"),
        ("nope+rope", "`nope` has no effect together with other encodings"),
        ("randomized(cope)", "`cope` does not depend on them"),
        ("randomized(nope)", "`nope` has no effect together with other encodings"),
        ("randomized(randomized(rope))", "`randomized` is given twice"),
        ("randomized(tape)", "both choose the positions"),
        ("abacus+tape", "both choose the positions"),
        ("rope+xpos", "both transform queries and keys, and the order"),
        ("sinks+stick-breaking", "but `sinks` adds to its denominator"),
        ("cope+xpos", "`xpos` stretches queries"),
        ("cope{convention=equation}+path", "give `cope` another `convention`"),
        ("cope+pope", "`pope` widens queries and keys"),
        (
            "kerple{weight=power}+path",
            "`kerple` scales the products of queries and keys, which `path`",
        ),
        ("cope{convention=equation}+kerple{weight=power}", "which `cope` also changes"),
        ("rope/rope", "the pattern repeats itself; write `rope`"),
        ("rope/nope/rope/nope", "the pattern repeats itself; write `rope/nope`"),
        ("(rope/nope)/alibi", "a pattern of layers within a pattern"),
        ("(rope/nope)+(alibi/nope)", "`layers` is given twice"),
        ("sinusoidal/nope", "write it next to the layers, as `sinusoidal+(rope/nope)`"),
        ("randomized(rope)/nope", "as `randomized(rope/nope)`"),
        ("tape/nope", "write it next to the layers"),
        ("sinks+(stick-breaking/rope)", "but `sinks` adds to its denominator"),
        ("fope+pope", "both transform queries and keys, and the order"),
    ] {
        let said = refusal(text);
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_combination_is_built_of_the_facts_of_its_parts() {
    let both = Combination::parse("rope+cope{max_positions=8}").unwrap();
    let properties = both.properties().unwrap();
    assert_eq!(properties.acts_on, [ActsOn::QueryKey, ActsOn::Logits]);
    assert!(properties.content_dependent && !properties.shift_invariant);
    assert!(properties.reads_vectors && !properties.ignores_positions, "RoPE reads positions");
    assert_eq!(both.card().parameters, "L D max_positions");
    assert_eq!(both.card().paper, "Golovneva et al. 2024; Su et al. 2021");
    let again = Combination::parse("cope{max_positions=8}+rope").unwrap();
    assert_eq!(both.card(), again.card());
}

/// Facts of single encodings are beside their settings, in `EXAMPLES` of their files.
#[test]
fn facts_of_combinations_are_those_of_their_parts_together() {
    let mut wrong = Vec::new();
    for (text, expected) in [
        ("cope+rope", "acts on query, key, logits; content dependent, reads vectors"),
        ("cope+relative", "acts on logits; content dependent, reads vectors, shift invariant"),
        (
            "alibi+cope{convention=code}+relative-capped{max_distance=4}+rope",
            "acts on query, key, logits; content dependent, reads vectors",
        ),
        ("learned-absolute+rope", "acts on embedding, query, key; limited length"),
        ("alibi+sinusoidal", "acts on embedding, logits"),
        (
            "randomized(fire)",
            "acts on logits, positions; biases networks.b1, networks.c, networks.multiplier, networks.w1, networks.w2; dense on GPUs in f32",
        ),
        (
            "cope+tape",
            "acts on query, key, logits, positions, state; content dependent, mixes values, reads vectors",
        ),
        ("alibi+fox+rope", "acts on query, key, logits, state; content dependent, shift invariant"),
        (
            "dape(none)+pope",
            "acts on query, key, logits; content dependent, mixes heads, shift invariant, widens queries; dense on GPUs",
        ),
        (
            "cope{layers={type=first}}+path",
            "acts on logits, state; content dependent, ignores positions, reads vectors, replaces products, shift invariant; dense on GPUs in f32",
        ),
        ("learned-absolute+(alibi/rope)", "acts on embedding, query, key, logits; limited length"),
        (
            "randomized{evaluation={type=spread}}(cope+relative)",
            "acts on logits, positions; content dependent, reads vectors, shift invariant",
        ),
    ] {
        let found = crate::zoo::tests::facts(&Combination::parse(text).unwrap());
        if found != expected {
            wrong.push(format!("{text}: found `{found}`, expected `{expected}`"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The window is longer than the sequences of the probe.
#[test]
fn properties_behind_a_long_window_are_found() {
    let ignores = |text| Combination::parse(text).unwrap().properties().unwrap().ignores_positions;
    assert!(ignores("fox") && !ignores("window{size=1000}"));
}

#[test]
fn a_single_encoding_at_its_defaults_keeps_its_own_facts_and_identity() {
    for known in Registry::builtin().cards() {
        let part = Registry::builtin().encoding(known.id).unwrap();
        // The text of layers is their pattern.
        if is_over(&part) || known.id == "layers" {
            continue;
        }
        let single = Combination::parse(known.id).unwrap();
        assert_eq!(
            (single.card().id.as_str(), single.card().label.as_str()),
            (known.id, known.label)
        );
        assert_eq!(single.identity(), part.identity());
    }
    // With settings, the id contains them; the identity in a cell's key does not change.
    let set = Combination::parse("rope{base=500}").unwrap();
    assert_eq!(
        (set.card().id.as_str(), set.card().label.as_str()),
        ("rope{base=500.0}", "RoPE{base=500.0}")
    );
    assert_eq!(set.identity()["id"], "rope");
}

#[test]
fn options_from_outside_are_for_the_only_part() {
    let options = |text: &str| match serde_json::from_str(text).unwrap() {
        Value::Object(options) => options,
        _ => unreachable!(),
    };
    let set = Registry::builtin().parse_with_settings("rope", options("{\"base\":7}")).unwrap();
    assert_eq!(set, Combination::parse("rope{base=7}").unwrap());
    let said =
        Registry::builtin().parse_with_settings("rope+cope", options("{\"base\":7}")).unwrap_err();
    assert!(said.to_string().contains("which has several parts"), "{said}");
    let said = Registry::builtin()
        .parse_with_settings("rope{base=7}", options("{\"base\":7}"))
        .unwrap_err();
    assert!(said.to_string().contains("both in the expression and outside it"), "{said}");
}

#[test]
fn a_list_splits_at_commas_outside_of_brackets() {
    let list = "rope, cope{max_positions=8,gates=query-value}+rope,,alibi{slopes=\"a,b\"}";
    let items = Combination::split_list(list);
    assert_eq!(
        items,
        ["rope", "cope{max_positions=8,gates=query-value}+rope", "alibi{slopes=\"a,b\"}"]
    );
}

#[test]
fn combinations_conform() {
    for text in [
        "cope+rope",
        "cope+relative",
        "cope{convention=equation,max_positions=5}+rope{layout=interleaved}",
        "alibi+cope{convention=code}+relative-capped{max_distance=4}+rope",
        "learned-absolute+rope",
        "alibi+sinusoidal",
        "randomized(rope)",
        "randomized(fire)",
        "tape(yarn)",
        "cope+tape",
        "cope{gates=separate-keys,layers={type=every,n=2}}+fox+tape{attention_update=full-mix}",
        "alibi+fox+rope",
        "dape(fire)",
        "dape(none)+pope",
        "cope{convention=code}+kerple{weight=power}+rope",
        "cope{layers={type=first}}+path",
        "randomized{evaluation={type=contiguous},longest=70}(learned-absolute)",
        "randomized{evaluation={type=spread}}(cope+relative)",
        "pope+temperature",
        "grape+temperature{growth={type=log,slope=0.3,offset=0.8}}",
        "pope{rotary_fraction=0.67}+(temperature/nope)",
        "tape+temperature",
        "rope{far={type=grouped,window=4,group=2}}+temperature",
        "rope{far={type=grouped,window=4,group=2}}+selective-rope",
        "stick-breaking+window{size=5}",
        "stick-breaking{current=included,remainder=own-token}+window{size=1}",
        "alibi+(rope/stick-breaking)",
    ] {
        crate::testkit::assert_conforms(&Combination::parse(text).unwrap());
    }
}

#[test]
fn an_encoding_that_needs_another_is_refused_alone() {
    let alone = Registry::builtin().encoding("randomized").unwrap();
    let said = Combination::try_from(alone).unwrap_err().to_string();
    assert!(said.contains("as `randomized(rope)`"), "{said}");
}

/// Phi-3's heads have 96 channels; a list with a number per pair fits no other size.
#[test]
fn lists_of_factors_for_any_size_of_a_head_are_probed() {
    for (pairs, rotary_fraction) in [(48, 1.0), (20, 1.0), (7, 1.0), (24, 0.5)] {
        let list = |factor: f64| format!("{:?}", vec![factor; pairs]);
        let text = format!(
            "rope{{rotary_fraction={rotary_fraction:?},scaling={{type=longrope,factor=2.0,short_factor={},long_factor={}}}}}",
            list(1.0),
            list(4.0)
        );
        let found = Combination::parse(&text).unwrap().properties().unwrap();
        assert!(found.depends_on_length, "{pairs} pairs have the properties of the defaults");
    }
}

#[test]
fn every_pair_that_may_stand_together_conforms_and_every_other_has_a_reason() {
    let registry = Registry::builtin();
    let parts = registry.cards().map(|card| registry.encoding(card.id).unwrap());
    let parts = parts.collect::<Vec<_>>();
    let acts_on = |part: &EncodingConfig, site| probe::properties(part).unwrap().acts_on(site);
    let (mut failed, mut transforming) = (Vec::new(), Vec::new());
    for (at, first) in parts.iter().enumerate() {
        for second in &parts[at + 1..] {
            let both = |site| acts_on(first, site) && acts_on(second, site);
            match Combination::new(vec![first.clone(), second.clone()]) {
                Ok(pair) => {
                    assert!(!both(ActsOn::Positions), "{pair}");
                    if both(ActsOn::QueryKey) {
                        transforming.push(pair.to_string());
                    }
                    failed.extend(
                        crate::testkit::conforms(&pair).into_iter().map(|f| format!("{pair}: {f}")),
                    );
                }
                Err(PeError::Combination { text, reason }) => {
                    let ids = [first.card().id, second.card().id];
                    assert!(ids.iter().any(|id| reason.contains(id)), "{text}: {reason}");
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    // Rotations and mixtures of rotations of the same pairs of channels, in any order, and factors of queries beside all.
    let expected = "fope+(rope/nope) fope+repo fope+rope fope+selective-rope fope+temperature grape+temperature \
                    (rope/nope)+repo (rope/nope)+rope (rope/nope)+selective-rope (rope/nope)+temperature \
                    pope+temperature repo+rope repo+selective-rope repo+temperature rope+selective-rope \
                    rope+temperature selective-rope+temperature tape+temperature temperature+xpos";
    assert_eq!(transforming, expected.split_whitespace().collect::<Vec<_>>());
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Strategy for any setting of any encoding, at its default or at another value of the same type.
fn arbitrary_part() -> impl Strategy<Value = EncodingConfig> {
    let parts = Registry::builtin().cards().map(|card| card.id).collect::<Vec<_>>();
    (proptest::sample::select(parts), 1_usize..2000, -1e3_f64..1e9, any::<bool>()).prop_map(
        |(id, count, real, set)| {
            let default = Registry::builtin().encoding(id).unwrap();
            let mut fields = default.fields().clone();
            for value in fields.values_mut() {
                let other = match &*value {
                    Value::Number(n) if n.is_f64() && set => Value::from(real),
                    Value::Number(_) if set => Value::from(count),
                    Value::Bool(_) if set => Value::Bool(count % 2 == 0),
                    _ => continue,
                };
                *value = other;
            }
            default.reread(fields).unwrap_or(default)
        },
    )
}

proptest! {
    #[test]
    fn what_is_printed_is_read_again_as_the_same(
        parts in proptest::collection::vec(arbitrary_part(), 1..4),
    ) {
        if let Ok(combination) = Combination::new(parts) {
            let again = Combination::parse(&combination.to_string()).unwrap();
            prop_assert_eq!(&again, &combination);
            prop_assert_eq!(again.to_string(), combination.to_string());
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*") {
        let _ = Combination::parse(&text);
        let _ = Combination::split_list(&text);
    }

    #[test]
    fn no_text_of_its_own_signs_makes_the_reader_panic(
        text in "(rope|cope|max_positions|base|[+(){}\\[\\]=,.\"\\\\ä ]|[0-9]){0,24}",
    ) {
        let _ = Combination::parse(&text);
        let _ = Combination::split_list(&text);
    }
}

#[test]
fn a_pass_without_new_tokens_is_an_error() {
    let dims = Dims { layers: 2, width: 18, heads: 3, head_dim: 6, train_len: 16, max_len: 64 };
    for text in ["rope", "abacus", "tape", "randomized(rope)"] {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let encoding =
            Combination::parse(text).unwrap().init(&dims, &mut rng, &probe::device()).unwrap();
        let request = PositionRequest { cached_tokens: 3, new_tokens: 0, training_rng: None };
        let refused = encoding.positions(request);
        assert!(matches!(refused, Err(PeError::Positions { .. })), "{text}: {refused:?}");
    }
}

#[test]
fn bias_ids_are_those_of_the_parts_that_have_biases() {
    let dims = Dims { layers: 3, width: 8, heads: 2, head_dim: 4, train_len: 8, max_len: 8 };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let both = Combination::parse("cope+t5-bias{sharing=per-layer}").unwrap();
    let module = both.init(&dims, &mut rng, &probe::device()).unwrap();
    let [cope, t5] = module.parts.as_slice() else { panic!("{} parts", module.parts.len()) };
    let tables = ["tables".to_owned()].into();
    assert_eq!(module.bias_ids(), probe::bias_ids(t5, &tables));
    assert_eq!(module.bias_ids().len(), 3);
    // CoPE's tables have the same name in their part and are multiplied with queries.
    assert_eq!(probe::bias_ids(cope, &tables).len(), 3);
}
