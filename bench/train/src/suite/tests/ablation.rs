use super::*;

fn ablation(section: &str) -> Result<Suite, SuiteError> {
    let text = SMALL.replace("encodings = [\"nope\", { kind = \"rope\", base = 500.0 }]\n", "");
    parsed(&text.replace("[train]", &format!("[ablation]\n{section}\n[train]")))
}

fn names(suite: &Suite) -> Vec<&str> {
    suite.cells.iter().filter(|c| c.seed == 3).map(|c| c.name.as_str()).collect()
}

#[test]
fn settings_of_the_base_vary_one_at_a_time_and_the_base_leads() {
    let suite = ablation(
        "base = \"cope\"\naxes = { max_positions = [16, 64], gates = [\"query-value\"], layers = [{ type = \"first\" }] }\nchanges = [\"alibi\"]",
    )
    .unwrap();
    let expected = [
        "cope",
        "cope{gates=query-value}",
        "cope{layers={type=first}}",
        "cope{max_positions=16}",
        "alibi",
    ];
    assert_eq!(names(&suite), expected, "64 is the base's own");
    assert_eq!(suite.report.ablation_base.as_deref(), Some("cope"));
}

#[test]
fn changes_keep_what_the_base_has_set_and_a_named_base_is_compared_by_its_name() {
    let suite = ablation(
        "base = { kind = \"rope\", base = 500.0, name = \"mine\" }\naxes = { rotary_fraction = [0.5], \"scaling.rope_type\" = [\"default\"] }\nchanges = [\"nope\"]",
    )
    .unwrap();
    assert_eq!(names(&suite), ["mine", "rope{base=500.0,rotary_fraction=0.5}", "nope"]);
    assert_eq!(suite.report.ablation_base.as_deref(), Some("mine"));
}

#[test]
fn mistakes_in_an_ablation_are_told() {
    for (section, expected) in [
        ("base = \"cpe\"\nchanges = [\"nope\"]", "ablation.base`: unknown"),
        ("base = \"cope\"", "no change"),
        ("base = \"cope\"\naxes = { max_positions = [64] }", "no change"),
        ("base = \"cope\"\naxes = { max_position = [8] }", "did you mean `max_positions`?"),
        ("base = \"cope\"\naxes = { max_positions = 8 }", "expected a list"),
        ("base = \"cope+rope\"\naxes = { max_positions = [8] }", "has several parts"),
        ("base = \"cope\"\nchange = [\"nope\"]", "did you mean `changes`?"),
        ("changes = [\"nope\"]", "missing field `base`"),
        ("base = \"cope\"\nchanges = [\"nope\"]\n[report]\nablation_base = \"nope\"", "keep one"),
    ] {
        let error = ablation(section).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(expected), "{section}: {error}");
    }
    let both =
        SMALL.replace("[train]", "[ablation]\nbase = \"cope\"\nchanges = [\"nope\"]\n[train]");
    assert!(parsed(&both).unwrap_err().to_string().contains("and `[ablation]` are given"));
    let none = SMALL.replace("encodings = [\"nope\", { kind = \"rope\", base = 500.0 }]\n", "");
    assert!(parsed(&none).unwrap_err().to_string().contains("`encodings`: missing"));
}
