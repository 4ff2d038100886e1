use std::collections::BTreeSet;
use std::path::Path;

use super::*;

fn parsed(text: &str) -> Result<Suite, SuiteError> {
    parse("test", text, &Overrides::default())
}

const SMALL: &str = r#"
name = "small"
title = "t"
about = "a"
seeds = [3, 4]
encodings = ["nope", { kind = "rope", base = 500.0 }]
[train]
steps = 7
optimizer = { warmup_steps = 2 }
[[workload]]
name = "w"
task = "flip-flop"
train = { batch_size = 5, optimizer = { learning_rate = 0.5 } }
"#;

#[test]
fn the_built_in_suites_are_the_files_of_the_folder_and_all_parse() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("suites");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect::<BTreeSet<_>>();
    let names = BUILT_IN.iter().map(|(name, _)| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(files, names);
    for (name, text) in BUILT_IN {
        assert_eq!(parse(name, text, &Overrides::default()).unwrap().name, *name);
    }
}

#[test]
fn a_star_stands_for_every_encoding() {
    let suite = parsed(&SMALL.replace("\"nope\", { kind", "\"*\", { kind")).unwrap();
    let ids = crate::encodings::ids();
    for id in ids {
        let of = |cell: &&Experiment| cell.encoding.parts().iter().any(|p| p.card().id == id);
        assert!(suite.cells.iter().any(|cell| of(&cell)), "{id}");
    }
}

#[test]
fn a_file_changes_the_suite_that_it_extends() {
    let text = r#"
extends = "paper-counting"
name = "mine"
title = "t"
about = "a"
[train]
steps = 9
optimizer = { warmup_steps = 3 }
"#;
    let suite = parsed(text).unwrap();
    let base = parse("b", super::text("paper-counting").unwrap().1.as_str(), &Overrides::default());
    let base = base.unwrap();
    assert_eq!((suite.name.as_str(), suite.cells.len()), ("mine", base.cells.len()));
    let (own, its) = (&suite.cells[0].train, &base.cells[0].train);
    assert_eq!((own.steps, own.optimizer.warmup_steps), (9, 3));
    assert_eq!(own.batch_size, its.batch_size);
    assert_eq!(own.optimizer.decay, its.optimizer.decay);
    assert_ne!((&suite.sha256, &suite.title), (&base.sha256, &base.title));
    // Encodings and workloads are replaced as a whole.
    let ablation =
        text.replace("[train]", "[ablation]\nbase = \"cope\"\nchanges = [\"nope\"]\n[train]");
    let names: BTreeSet<String> =
        parsed(&ablation).unwrap().cells.into_iter().map(|cell| cell.name).collect();
    assert_eq!(names, ["cope", "nope"].map(str::to_owned).into());
    let other = format!("{text}[[workload]]\nname = \"w\"\ntask = \"flip-flop\"\n");
    assert!(parsed(&other).unwrap().cells.iter().all(|cell| cell.workload == "w"));
    for (from, to, told) in [
        ("paper-counting", "paper-countin", "did you mean `paper-counting`?"),
        ("paper-counting", "cope-table-3", "itself extends another suite"),
        ("\"paper-counting\"", "3", "3, expected the name of a built-in suite"),
        ("title = \"t\"", "", "missing field `title`"),
    ] {
        let said = parsed(&text.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(said.contains(told), "{said}");
    }
}

#[test]
fn the_example_suite_parses_with_the_name_put_in() {
    let text = example("mine");
    let suite = parsed(&text).unwrap();
    assert_eq!((suite.name.as_str(), suite.cells.len()), ("mine", 3 * 4 * 3));
}

#[test]
fn every_commented_section_of_the_example_suite_can_be_uncommented() {
    fn setting<'a>(line: &&'a str) -> Option<&'a str> {
        let line = line.strip_prefix("# ")?;
        let key = line.split(" = ").next()?;
        let is_key = key != line && key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        (is_key || line.starts_with('[')).then_some(line)
    }
    let text = example("mine");
    let lines = text.lines().collect::<Vec<_>>();
    let encodings = text.split_once("encodings = [").unwrap().1.split_once("]\n").unwrap().0;
    let encodings = format!("encodings = [{encodings}]\n");
    let mut sections = 0;
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| setting(line).is_some()) {
        if at > 0 && setting(&lines[at - 1]).is_some() {
            continue;
        }
        let end = at + lines[at..].iter().take_while(|line| setting(line).is_some()).count();
        let shown = lines.iter().enumerate().map(|(index, line)| match setting(line) {
            Some(setting) if (at..end).contains(&index) => setting,
            _ => line,
        });
        let mut whole = shown.collect::<Vec<_>>().join("\n");
        if lines[at] == "# [ablation]" {
            whole = whole.replacen(&encodings, "", 1);
        }
        let suite = parsed(&whole).unwrap_or_else(|error| panic!("{}: {error}", lines[at]));
        for cell in suite.cells.iter().chain(&suite.fresh) {
            let task = cell.task.build().unwrap();
            cell.check(&*task).unwrap_or_else(|error| panic!("{}: {error}", lines[at]));
        }
        sections += 1;
    }
    assert_eq!(sections, 10);
}

#[test]
fn a_question_about_an_encoding_with_settings_names_it_by_its_expression() {
    let text = SMALL.replace("[3, 4]", "[3]") + "\n[question]\nencodings = ['rope', 'nope']\n";
    let said = parsed(&text).unwrap_err().to_string();
    assert!(said.ends_with("`rope` (did you mean `rope{base=500.0}`?)"), "{said}");
    let said = parsed(&text.replace("'rope'", "'zzz'")).unwrap_err().to_string();
    assert!(said.ends_with("`zzz`, expected one of `nope`, `rope{base=500.0}`"), "{said}");
    assert!(parsed(&text.replace("'rope'", "'rope{base=500.0}'")).is_ok());
}

#[test]
fn cells_are_seeds_times_encodings_with_sections_merged() {
    let suite = parsed(SMALL).unwrap();
    let names = suite.cells.iter().map(|c| (c.seed, c.name.as_str())).collect::<Vec<_>>();
    let rope = "rope{base=500.0}";
    assert_eq!(names, [(3, "nope"), (3, rope), (4, "nope"), (4, rope)]);
    let train = &suite.cells[0].train;
    assert_eq!((train.steps, train.batch_size), (7, 5));
    assert_eq!(train.optimizer.warmup_steps, 2);
    assert!((train.optimizer.learning_rate - 0.5).abs() < 1e-12);
}

#[test]
fn the_command_line_overrides_seeds_backend_and_encodings() {
    let overrides = Overrides {
        seeds: vec![9],
        backend: Some("tch".to_owned()),
        encodings: vec!["nope".to_owned()],
        ..Overrides::default()
    };
    let suite = parse("test", SMALL, &overrides).unwrap();
    assert_eq!(suite.cells.len(), 1);
    assert_eq!((suite.cells[0].seed, suite.cells[0].backend.as_str()), (9, "tch"));
    let overrides = Overrides { encodings: vec!["nop".to_owned()], ..Overrides::default() };
    let error = parse("test", SMALL, &overrides).unwrap_err().to_string();
    assert!(error.contains("did you mean `nope`?"), "{error}");
}

#[test]
fn the_command_line_may_ask_for_expressions_that_the_suite_does_not_have() {
    let names = |asked: &str| {
        let overrides = Overrides { encodings: vec![asked.to_owned()], ..Overrides::default() };
        let suite = parse("test", SMALL, &overrides).unwrap();
        suite.cells.iter().filter(|c| c.seed == 3).map(|c| c.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("rope+cope{max_positions=8}, nope"), ["cope{max_positions=8}+rope", "nope"]);
    assert_eq!(names("rope{base=500}"), ["rope{base=500.0}"]);
    let named = SMALL.replace("{ kind = \"rope\",", "{ name = \"r, s\", kind = \"rope\",");
    let overrides = Overrides { encodings: vec!["r, s".to_owned()], ..Overrides::default() };
    assert_eq!(parse("test", &named, &overrides).unwrap().cells.len(), 2);
    let cells = |asked: &str| {
        let overrides = Overrides { encodings: vec![asked.to_owned()], ..Overrides::default() };
        parse("test", &named, &overrides).map(|suite| suite.cells.len())
    };
    assert_eq!(cells("alibi, r, s ,nope").unwrap(), 6);
    for (asked, expected) in [
        ("nope,,alibi", "an entry of the list is empty"),
        ("nope,", "an entry of the list is empty"),
        ("nope,r, s,nope", "at `--encodings`: `nope` is listed twice; keep one"),
        ("RoPE", "did you mean `rope`?"),
        ("yarn", "did you mean `rope{scaling={rope_type=yarn,factor=2.0}}`?"),
    ] {
        let said = cells(asked).unwrap_err().to_string();
        assert!(said.contains(expected), "{asked}: {said}");
    }
    let twice = Overrides { seeds: vec![1, 2, 1], ..Overrides::default() };
    let said = parse("test", SMALL, &twice).unwrap_err().to_string();
    assert!(said.ends_with("at `--seeds`: 1 is listed twice; keep one"), "{said}");
}

#[test]
fn the_command_line_selects_workloads_by_name_with_or_without_axes() {
    let workload = "[[workload]]\nname = \"counting\"\ntask = \"counting\"\naxes = { \"task.variables\" = [1, 3] }\n";
    let text = format!("{SMALL}\n{workload}");
    let count = |asked: &str| {
        let workloads = vec![asked.to_owned()];
        parse("test", &text, &Overrides { workloads, ..Overrides::default() })
            .map(|suite| suite.cells.len())
    };
    assert_eq!(count("counting").unwrap(), 8);
    assert_eq!(count("counting variables=3").unwrap(), 4);
    assert_eq!(parsed(&text).unwrap().cells.len(), 12);
    assert_eq!(count("w,counting variables=1").unwrap(), 8);
    let error = count("countin").unwrap_err().to_string();
    assert!(error.contains("--workloads") && error.contains("did you mean `counting`?"), "{error}");
}

#[test]
fn commas_in_the_names_of_workloads_do_not_split_them() {
    let workload = "[[workload]]\nname = \"copy, 8\"\ntask = \"copy\"\naxes = { \"eval.lens\" = [[12, 24], [12]] }\n";
    let text = format!("{SMALL}\n{workload}");
    let count = |asked: &str| {
        let workloads = vec![asked.to_owned()];
        let suite = parse("test", &text, &Overrides { workloads, ..Overrides::default() });
        suite.map(|suite| suite.cells.len())
    };
    assert_eq!(count("copy, 8").unwrap(), 8);
    assert_eq!(count("copy, 8 lens=[12,24],w").unwrap(), 8);
}

#[test]
fn a_seed_of_the_command_line_that_is_a_fresh_one_is_refused_there() {
    let text = SMALL
        .replace("seeds = [3, 4]", "seeds = [3]\nfresh_seeds = [5]\nlearning_rates = [0.5, 0.25]");
    let overrides = Overrides { seeds: vec![5], ..Overrides::default() };
    let said = parse("test", &text, &overrides).unwrap_err().to_string();
    assert!(said.contains("at `--seeds`: 5 is both among"), "{said}");
}

#[test]
fn combinations_stand_in_suites_as_text_and_as_kind() {
    let text = SMALL.replace(
        "\"nope\", {",
        "\"cope{max_positions=8}+rope\", { kind = \"relative+cope\", name = \"both\" }, {",
    );
    let suite = parsed(&text).unwrap();
    let cells = suite.cells.iter().map(|c| (c.name.as_str(), c.encoding.id()));
    assert_eq!(
        cells.take(2).collect::<Vec<_>>(),
        [("cope{max_positions=8}+rope", "cope{max_positions=8}+rope"), ("both", "cope+relative")]
    );
}

#[test]
fn the_key_of_a_single_encoding_is_made_of_its_id_and_all_its_settings() {
    let suite = parsed(SMALL).unwrap();
    let task = suite.cells[0].task.build().unwrap();
    let config = |at: usize| suite.cells[at].config(&*task)["encoding"].to_string();
    assert_eq!(config(0), "{\"id\":\"nope\",\"settings\":{}}");
    let rope: Value = serde_json::from_str(&config(1)).unwrap();
    let settings = json!({
        "base": 500.0,
        "layout": "half-split",
        "rotary_fraction": 1.0,
        "scaling": { "rope_type": "default" },
    });
    assert_eq!(rope, json!({ "id": "rope", "settings": settings }));
}

#[test]
fn every_mistake_is_named_with_its_place() {
    for (from, to, expected) in [
        ("seeds", "sedes", "did you mean `seeds`?"),
        ("encodings = [", "encodings = [7, ", "7, expected an expression"),
        ("task = \"flip-flop\"", "task = 7", "7, expected the id of a task"),
        ("learning_rate = 0.5", "learning_rate = nan", "NaN, expected a finite number"),
        ("learning_rate = 0.5", "clip_norm = inf", "workload[0].train.optimizer.clip_norm"),
        ("steps = 7", "steps = 2026-01-01", "the date 2026-01-01"),
        ("steps = 7", "steps = 18446744073709551615", "18446744073709551615"),
        ("name = \"w\"", "name = \" \"", "workload[0].name"),
        ("[[workload]]", "[report]\nsolved = 1\n[[workload]]", "unknown field `solved`"),
        ("[[workload]]", "[report]\nsolved_loss = 0\n[[workload]]", "solved_loss"),
        ("[[workload]]", "[report]\nablation_base = \"nop\"\n[[workload]]", "did you mean `nope`?"),
        ("[[workload]]", "[budget]\nseconds = -1\n[[workload]]", "budget.seconds is -1"),
        ("[[workload]]", "[budget]\nsecond = 1\n[[workload]]", "did you mean `seconds`?"),
        ("steps = 7", "stepps = 7", "did you mean `steps`?"),
        ("warmup_steps", "warmup", "optimizer"),
        ("\"nope\"", "\"nop\"", "did you mean `nope`?"),
        ("base = 500.0", "bass = 500.0", "did you mean `base`?"),
        ("\"nope\"", "\"cope{max_positions=}\"", "at character 20"),
        (
            "task = \"flip-flop\"",
            "task = { kind = \"flip-flop\", ignor = 0.5 }",
            "did you mean `ignore`?",
        ),
        (
            "task = \"flip-flop\"",
            "task = { kind = \"flip-flop\", ignore = \"much\" }",
            "flip-flop: ignore: invalid type: string \"much\", expected a number",
        ),
        ("\"flip-flop\"", "\"flipflop\"", "flip-flop"),
        ("steps = 7", "steps = \"seven\"", "train.steps"),
        ("name = \"small\"", "name = \"../small\"", "lower-case"),
        ("{ kind = \"rope\", base = 500.0 }", "\"nope\"", "is listed twice"),
        ("[3, 4]", "[]", "no cell"),
        ("[3, 4]", "3", "at `seeds`: invalid type: integer `3`, expected a list"),
        ("seeds = [3, 4]", "", "suite test: missing field `seeds`; `pe-bench new suite NAME`"),
        ("[3, 4]", "[3, 3]", "is listed twice"),
    ] {
        let error = parsed(&SMALL.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
}

#[test]
fn an_unknown_suite_suggests_the_nearest() {
    let error = super::text("quik").unwrap_err().to_string();
    assert!(error.contains("did you mean `quick`?"), "{error}");
    assert!(super::text("no/such.toml").unwrap_err().to_string().contains("no/such.toml"));
}

mod ablation;
mod axes;
mod grid;
mod shipped;

#[test]
fn a_budget_bounds_cells_and_is_no_part_of_their_keys() {
    let text = SMALL.replace(
        "[[workload]]\n",
        "[budget]\nseconds = 60\nmemory_bytes = 1000\n[[workload]]\nbudget = { seconds = 5 }\n",
    );
    let (with, without) = (parsed(&text).unwrap(), parsed(SMALL).unwrap());
    let budget = with.cells[0].budget;
    assert_eq!((budget.seconds, budget.memory_bytes), (Some(5.0), Some(1000)));
    let task = with.cells[0].task.build().unwrap();
    assert_eq!(with.cells[0].key(&*task), without.cells[0].key(&*task));
}

#[test]
fn criteria_of_the_report_are_read() {
    let text = SMALL.replace(
        "[[workload]]",
        "[report]\nsolved_exact_match = 0.5\nablation_base = \"nope\"\n[[workload]]",
    );
    let report = parsed(&text).unwrap().report;
    assert!((report.solved_exact_match - 0.5).abs() < 1e-12);
    assert_eq!(report.ablation_base.as_deref(), Some("nope"));
}

#[test]
fn more_cells_than_anybody_can_run_are_refused_before_they_are_made() {
    let many = (0..400).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let text = SMALL.replace("[3, 4]", &format!("[{many}]")).replace(
        "task = \"flip-flop\"",
        &format!("task = \"flip-flop\"\naxes = {{ \"eval.seed\" = [{many}], \"eval.samples\" = [{many}], \"model.layers\" = [{many}], \"model.heads\" = [{many}], \"model.width\" = [{many}], \"train.len\" = [{many}] }}"),
    );
    let error = parsed(&text).unwrap_err().to_string();
    assert!(error.contains("expected at most 100000"), "{error}");
}

#[test]
fn claims_are_read_strictly_and_name_what_the_suite_has() {
    let small =
        SMALL.replace(r#"["nope", { kind = "rope", base = 500.0 }]"#, r#"["nope", "rope"]"#);
    let claimed = |comparison: &str| {
        parsed(&format!(
            "{small}\n[[claim]]\ntext = 'a'\nsource = 'b'\nrecipe = 'c'\ncomparisons = [{{ {comparison} }}]"
        ))
    };
    let suite = claimed("encodings = ['rope', 'nope'], tasks = ['w'], region = 'longer'").unwrap();
    assert_eq!(suite.report.claims[0].comparisons[0].tasks, ["w"]);
    for (comparison, expected) in [
        (
            "encodings = ['rope', 'npe']",
            "no encoding of the suite is named `npe` (did you mean `nope`?)",
        ),
        ("encodings = ['rope', 'rope']", "twice"),
        ("encodings = ['rope', 'nope'], tasks = ['v']", "no workload of the suite is named `v`"),
        ("encodings = ['rope', 'nope'], regions = 'longer'", "regions"),
    ] {
        let error = claimed(comparison).unwrap_err().to_string();
        assert!(error.contains(expected), "{comparison}: {error}");
    }
}

#[test]
fn uses_name_workloads_of_the_suite() {
    let used =
        |task: &str| parsed(&format!("{SMALL}\n[[use]]\nname = 'Counting'\ntasks = ['{task}']"));
    assert_eq!(used("w").unwrap().report.uses[0].tasks, ["w"]);
    let error = used("v").unwrap_err().to_string();
    assert!(error.contains("use.tasks") && error.contains("named `v`"), "{error}");
}

#[test]
fn a_question_is_read_strictly_and_names_what_the_suite_has() {
    let small =
        SMALL.replace(r#"["nope", { kind = "rope", base = 500.0 }]"#, r#"["nope", "rope"]"#);
    let asked = |question: &str| parsed(&format!("{small}\n[question]\n{question}"));
    let suite =
        asked("encodings = ['rope', 'nope']\ntasks = ['w']\nmetric = 'exact-match'").unwrap();
    let question = suite.report.question.unwrap();
    assert_eq!(
        (question.encodings, question.tasks),
        (["rope".into(), "nope".into()], vec!["w".into()])
    );
    for (question, expected) in [
        (
            "encodings = ['rope', 'npe']",
            "no encoding of the suite is named `npe` (did you mean `nope`?)",
        ),
        ("encodings = ['rope', 'rope']", "twice"),
        ("encodings = ['rope', 'nope']\ntasks = ['v']", "no workload of the suite is named `v`"),
        ("encodings = ['rope', 'nope']\nmetric = 'speed'", "speed"),
        ("encodings = ['rope', 'nope']\nregions = 'longer'", "regions"),
        ("encodings = ['rope']", "encodings`: invalid length 1, expected a list of 2 values"),
    ] {
        let error = asked(question).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("question"), "{question}: {error}");
    }
    let hash = suite.sha256.unwrap();
    assert!(hash.len() == 64 && Some(hash) != parsed(SMALL).unwrap().sha256);
}
