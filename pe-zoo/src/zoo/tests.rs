#[allow(unreachable_pub, reason = "a file of the zoo, where its items are public")]
mod new_encoding;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::attention::Support;
use crate::testkit::CheckResult;
use crate::{Combination, Dims, Registry};

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/zoo")
}

/// Names, without extension, of the files in the folder.
fn files() -> BTreeSet<String> {
    std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|stem| stem != "tests")
        .collect()
}

#[test]
fn every_file_of_the_folder_is_registered_under_its_name() {
    let ids = Registry::builtin().cards().map(|card| card.id.replace('-', "_")).collect();
    assert_eq!(files(), ids);
}

/// Checks that a file documents its encoding under the headings that all have.
fn check_headings(module: &str, text: &str) {
    let headings = ["What it does", "Formula", "Shapes", "Settings", "Deviations", "References"];
    let mut of_learned = headings.to_vec();
    of_learned.insert(4, "Initial values");
    let found = text.lines().filter_map(|line| line.strip_prefix("//! ## ")).collect::<Vec<_>>();
    assert!(found == headings || found == of_learned, "{module}: {found:?}");
}

#[test]
fn every_file_documents_itself_under_the_same_headings() {
    for module in files() {
        let text = std::fs::read_to_string(folder().join(format!("{module}.rs"))).unwrap();
        check_headings(&module, &text);
    }
}

/// Collects every file below `folder` that may contain products of an encoding or of the reference
/// engine.
fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    // Kernels count their own products, and the decoder and tests contain no products of an encoding.
    let others = ["count.rs", "fused", "kernels", "model", "ops", "testkit", "tests", "tests.rs"];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if others.contains(&name) {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn no_setting_has_a_name_that_suites_need_for_themselves() {
    let registry = Registry::builtin();
    for card in registry.cards() {
        let config = registry.encoding(card.id).unwrap();
        for taken in ["kind", "name"] {
            assert!(config.fields().get(taken).is_none(), "{} has a setting `{taken}`", card.id);
        }
    }
}

/// Uncounted products would not be seen by the check of cost formulas.
#[test]
fn every_product_is_counted() {
    let mut files = Vec::new();
    sources(&folder().join(".."), &mut files);
    assert!(files.len() > 40, "{}", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for uncounted in [".matmul(", "::product(", "nn::Linear", "module::linear(", "einsum("] {
            assert!(
                !text.contains(uncounted),
                "{} has `{uncounted}`: multiply with crate::count::CountedMatmul, so that the \
                 testkit can hold `cost` against what is multiplied",
                file.display()
            );
        }
    }
}

#[test]
fn an_unknown_setting_within_a_choice_is_refused_by_name() {
    let Value::Object(fields) =
        json!({ "scaling": { "type": "linear", "factor": 2.0, "facter": 1 } })
    else {
        unreachable!()
    };
    let error = Registry::builtin().configured("rope", fields).unwrap_err().to_string();
    assert!(error.contains("facter"), "{error}");
}

/// Settings that came after records were written are not serialized at their defaults, so that keys of cells stay the same.
#[test]
fn settings_that_are_left_out_at_their_defaults_may_be_given() {
    for (text, plain) in [
        ("kerple{weight=none}", "kerple"),
        ("t5-bias{buckets=causal}", "t5-bias"),
        ("xpos{centre=middle}", "xpos"),
        ("pope{rotary_fraction=1.0}", "pope"),
        ("rope{learning=fixed,imaginary=false,far={type=none}}", "rope"),
        ("kerple{mean=zero}", "kerple"),
        ("randomized{positions={type=whole}}(rope)", "randomized(rope)"),
    ] {
        let given = Combination::parse(text).unwrap();
        assert_eq!(given.to_string(), plain);
        assert_eq!(given, Combination::parse(plain).unwrap());
    }
}

#[test]
fn an_unknown_id_suggests_the_nearest() {
    let error = Registry::builtin().encoding("relativ").unwrap_err().to_string();
    assert_eq!(error, "unknown encoding `relativ` (did you mean `relative`?)");
    let error = Registry::builtin().encoding("zzz").unwrap_err().to_string();
    assert!(error.starts_with("unknown encoding `zzz`; known: abacus, alibi, "), "{error}");
}

/// Encodings with facts in common; one list of them is in each file of the zoo.
pub(crate) struct Examples {
    /// Facts that probing finds, in the words of [`facts`].
    pub(crate) facts: &'static str,
    /// Expressions of the encoding at settings that the conformance kit examines.
    pub(crate) texts: &'static [&'static str],
}

/// Every combination of a list.
fn combinations(examples: &[Examples]) -> impl Iterator<Item = Combination> {
    let texts = examples.iter().flat_map(|group| group.texts);
    texts.map(|text| Combination::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// Examples of every encoding.
pub(crate) fn examples() -> impl Iterator<Item = Combination> {
    conformance::EXAMPLES.iter().flat_map(|examples| combinations(examples))
}

/// Facts that probing finds: the parts of the attention that an encoding changes, its properties, its biases and slopes, and whether
/// the kernels of GPUs get its logits as a dense bias, in every precision or in f32 alone.
pub(crate) fn facts(encoding: &Combination) -> String {
    let properties = encoding.properties().unwrap();
    let acts_on = properties.acts_on.iter().map(|part| part.label()).collect::<Vec<_>>().join(", ");
    let acts_on = if acts_on.is_empty() { "nothing" } else { &acts_on };
    let mut names = properties.names();
    names.sort_unstable();
    let biases = encoding.biases().unwrap();
    let biases = biases.iter().flat_map(|part| part.iter().cloned()).collect::<Vec<_>>();
    let supports = encoding.parts().iter().map(|part| crate::probe::support(part).unwrap());
    let supports = supports.collect::<Vec<_>>();
    let is_dense = |support: Support| support == Support::Dense;
    let dense = if supports.iter().any(|support| is_dense(support.tensor_cores)) {
        Some("dense on GPUs".to_owned())
    } else if supports.iter().any(|support| is_dense(support.gpu)) {
        Some("dense on GPUs in f32".to_owned())
    } else {
        None
    };
    let listed = |before: &str, words: &[String]| {
        (!words.is_empty()).then(|| format!("{before}{}", words.join(", ")))
    };
    let facts =
        [Some(format!("acts on {acts_on}")), listed("", &names), listed("biases ", &biases), dense];
    facts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Checks an encoding at its examples. No check may be left out.
fn conforms(examples: &[Examples]) {
    for config in combinations(examples) {
        let mut findings = crate::testkit::examine(&config).unwrap();
        findings.retain(|finding| finding.verdict != CheckResult::Holds);
        assert!(findings.is_empty(), "{config}: {findings:#?}");
    }
}

/// One conformance test per encoding, so that a failure names the encoding.
mod conformance {
    include!(concat!(env!("OUT_DIR"), "/conformance.rs"));
}

#[test]
fn examples_begin_with_the_defaults_and_are_of_their_encoding() {
    for examples in conformance::EXAMPLES {
        let id = examples[0].texts[0];
        for config in combinations(examples) {
            assert!(config.parts().iter().any(|part| part.card().id == id), "{id}: {config}");
        }
    }
    let mut first = conformance::EXAMPLES.iter().map(|all| all[0].texts[0]).collect::<Vec<_>>();
    first.sort_unstable();
    assert_eq!(first, Registry::builtin().cards().map(|card| card.id).collect::<Vec<_>>());
}

/// Facts stated by the papers, for every encoding at all its examples.
#[test]
fn facts_found_by_probing_are_those_of_the_examples() {
    let mut wrong = Vec::new();
    for group in conformance::EXAMPLES.iter().flat_map(|examples| examples.iter()) {
        for text in group.texts {
            let found = facts(&Combination::parse(text).unwrap());
            if found != group.facts {
                wrong.push(format!("{text}: found `{found}`, expected `{}`", group.facts));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// `pe-bench new encoding` prints this file under another name.
#[test]
fn the_encoding_to_start_from_passes_what_others_pass() {
    use new_encoding::{NewEncoding, tests::EXAMPLES};
    check_headings("new_encoding", crate::zoo::NEW_ENCODING);
    let registry = Registry::builtin().with::<NewEncoding>().unwrap();
    let mut examined = 0;
    for group in EXAMPLES {
        for text in group.texts {
            let config = registry.parse(text).unwrap();
            let findings = crate::testkit::examine(&config).unwrap();
            let holds = findings.iter().all(|finding| finding.verdict == CheckResult::Holds);
            assert!(holds, "{text}: {findings:#?}");
            assert_eq!(facts(&config), group.facts, "{text}");
            examined += 1;
        }
    }
    assert!(examined > 1, "the defaults and other settings");
}

#[test]
fn no_encoding_is_dense_in_the_kernels_of_the_cpu() {
    for entry in Registry::builtin().entries() {
        let config = Registry::builtin().encoding(entry.card.id).unwrap();
        let support = crate::probe::support(&config).unwrap();
        assert_eq!(support.cpu, Support::Fused, "{}", entry.card.id);
    }
}

/// Encodings that learn say where their parameters start, and by whose example.
#[test]
fn initial_values_are_documented() {
    let registry = Registry::builtin();
    for examples in conformance::EXAMPLES {
        let entry = registry.entry(examples[0].texts[0]).unwrap();
        let text = entry.source.unwrap().split("//! ## Initial values\n").nth(1);
        let stated =
            text.is_some_and(|text| !text.trim_start_matches("//!").trim().starts_with("##"));
        let learns = combinations(examples).any(|config| config.card().parameters != "0");
        assert_eq!(stated, learns, "{}", entry.card.id);
    }
}

/// Formulas at settings that change them, beside the same as arithmetic.
#[test]
fn formulas_of_parameters_are_those_of_the_settings() {
    let dims = Dims { layers: 6, width: 32, heads: 4, head_dim: 8, train_len: 16, max_len: 32 };
    let (l, c, h, d) = (6, 32, 4, 8);
    for (text, formula, count) in [
        ("cope", "L D max_positions", l * d * 64),
        ("cope{sharing=all-layers}", "D max_positions", d * 64),
        ("cope{layers={type=first}}", "D max_positions", d * 64),
        ("cope{layers={type=every,n=3}}", "L / n D max_positions", l / 3 * d * 64),
        ("cope{gates=separate-keys}", "L (D max_positions + C^2)", l * (d * 64 + c * c)),
        (
            "cope{gates=separate-keys,layers={type=every,n=3},sharing=all-layers}",
            "D max_positions + L / n C^2",
            d * 64 + l / 3 * c * c,
        ),
        ("cope-mlp{layers={type=first},width=5}", "2 width + D width + D", 2 * 5 + d * 5 + d),
        ("cope-alibi{slopes=learned}", "L H", l * h),
        (
            "dape{base={type=none},width=5}",
            "L ((H + 1) width + (width + 1) H)",
            l * ((h + 1) * 5 + (5 + 1) * h),
        ),
        (
            "dape{base={type=alibi},mixer=convolution,width=5}",
            "L ((6 H + 1) width + (3 width + 1) H) + base",
            l * ((6 * h + 1) * 5 + (3 * 5 + 1) * h),
        ),
        (
            "path{forget={type=gate}}",
            "L (C rank + H D (rank + kernel) + 2 C H + 2 H)",
            l * (2 * c * 32 + c * 3 + 2 * c * h + 2 * h),
        ),
        ("tape{form=vector}", "L (2 I D + I C + D^2)", l * (2 * 16 * d + 16 * c + d * d)),
        (
            "tape{form=tensor-not-equivariant}",
            "L (4 I H + I C + 2 H^2)",
            l * (4 * 16 * h + 16 * c + 2 * h * h),
        ),
        ("tape{attention_update=none,form=vector-not-equivariant}", "3 L I C", 3 * l * 16 * c),
        ("tape{feed_forward_update={type=off}}", "L H^2", l * h * h),
        (
            "selective-rope{bias=true,gate={kind=per-channel}}",
            "L (map + filter + bias + gate)",
            l * (32 * (c + c / 2) + 4 * c / 2 + c / 2 + 16 * (c + c / 2) + c / 2),
        ),
        ("grape{variant={type=multiplicative,spectrum=per-head}}", "L C / 2", l * c / 2),
        (
            "grape{variant={type=contextual,phase=per-head}}",
            "L (H (C + 1) + 5 D / 2)",
            l * (h * (c + 1) + 5 * d / 2),
        ),
    ] {
        let encoding = Combination::parse(text).unwrap();
        assert_eq!(encoding.card().parameters, formula, "{text}");
        assert_eq!(encoding.param_count(&dims), Some(count), "{text}");
    }
}
