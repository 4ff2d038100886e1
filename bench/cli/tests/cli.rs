//! Output and files of the commands, with the program as a separate process.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

mod program;

use std::fs;
use std::path::Path;

use program::{TINY, bench, bench_with, cells, text, tiny};
use serde_json::json;

#[test]
fn a_suite_leaves_records_and_a_report_and_is_kept_the_second_time() {
    let (_folder, suite, out) = tiny(TINY);
    let first = bench(&["run", &suite, "--out", &out]);
    assert!(first.status.success(), "{}", text(&first));
    assert!(text(&first).contains("index.html"), "{}", text(&first));
    for file in
        ["index.html", "report.md", "data.parquet", "tables/evaluations.csv", "tables/cells.csv"]
    {
        assert!(Path::new(&out).join(file).is_file(), "{file}");
    }
    let before = cells(&out).iter().map(|p| std::fs::read(p).unwrap()).collect::<Vec<_>>();
    assert_eq!(before.len(), 4);

    let again = bench(&["run", &suite, "--out", &out]);
    assert!(text(&again).contains("4 cells, 4 of them with a record"), "{}", text(&again));
    let after = cells(&out).iter().map(|p| std::fs::read(p).unwrap()).collect::<Vec<_>>();
    assert!(before == after, "kept records were written again");

    let (_folder, changed, _) = tiny(&TINY.replace("steps = 4", "steps = 5"));
    let changed = bench(&["run", &changed, "--out", &out]);
    assert!(text(&changed).contains("4 cells, 0 of them with a record"), "{}", text(&changed));
    assert_eq!(cells(&out).len(), 8);

    let forced = bench(&["run", &suite, "--out", &out, "--force", "--seed", "0"]);
    assert!(text(&forced).contains("2 cells, 0 of them with a record"), "{}", text(&forced));

    let report = bench(&["report", &out]);
    assert!(report.status.success(), "{}", text(&report));
}

#[test]
fn a_report_of_what_a_shell_makes_of_a_star_in_the_formats_that_were_asked_for() {
    let (folder, suite, out) = tiny(TINY);
    let nested = folder.path().join("results/contextual/machine");
    assert!(bench(&["run", &suite, "--out", nested.to_str().unwrap()]).status.success());
    assert!(bench(&["run", &suite, "--out", &out, "--seed", "7"]).status.success());
    let nested = folder.path().join("results/contextual");
    let page = folder.path().join("page");
    let arguments = [nested.to_str().unwrap(), &suite, &out, "--out", page.to_str().unwrap()];
    let report = bench(&[&["report"], &arguments[..], &["--formats", "markdown,tex"]].concat());
    assert!(report.status.success(), "{}", text(&report));
    assert!(
        text(&report).contains("tiny.toml: skipped, because it has no results"),
        "{}",
        text(&report)
    );
    let shown = std::fs::read_to_string(page.join("report.md")).unwrap();
    assert!(shown.contains("n=3"), "two seeds here, one there: {shown}");
    assert!(page.join("tables/summary.tex").is_file() && !page.join("index.html").exists());
    let wrong = bench(&["report", &out, "--formats", "pdf"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
    assert!(text(&wrong).contains("parquet"), "it says what there is: {}", text(&wrong));
}

#[test]
fn a_combination_runs_from_the_command_line_and_is_known_by_its_canonical_text() {
    let (_folder, suite, out) = tiny(TINY);
    let arguments = ["run", &suite, "--out", &out, "--seed", "0", "--encodings"];
    let run = |text: &str| bench(&[&arguments[..], &[text]].concat());
    let first = run("rope + cope{max_positions=8}, nope");
    assert!(first.status.success(), "{}", text(&first));
    let records =
        cells(&out).iter().map(|p| std::fs::read_to_string(p).unwrap()).collect::<String>();
    assert!(records.contains("\"id\": \"cope{max_positions=8}+rope\""), "{records}");
    assert!(records.contains("\"label\": \"CoPE{max_positions=8} + RoPE\""), "{records}");
    let again = run("cope{max_positions=8}+rope,nope");
    assert!(text(&again).contains("2 cells, 2 of them with a record"), "{}", text(&again));
}

#[test]
fn a_dry_run_prints_the_cells_and_trains_nothing() {
    let (_folder, suite, out) = tiny(TINY);
    let output = bench(&["run", &suite, "--out", &out, "--dry-run"]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("4 cells; training takes about"), "{}", text(&output));
    assert!(!Path::new(&out).exists());
}

#[test]
fn a_dry_run_of_many_cells_has_a_row_for_each_workload() {
    let said = text(&bench(&["run", "zoo", "--dry-run"]));
    let rows = said.lines().filter(|line| line.starts_with("flip-flop")).collect::<Vec<_>>();
    let [row] = rows[..] else { panic!("{said}") };
    assert!(row.contains("30 encodings"), "{row}");
    assert!(said.lines().count() < 30, "{said}");
}

#[test]
fn a_dry_run_of_a_shard_counts_its_own_cells_and_prints_json_lines() {
    let (_folder, suite, out) = tiny(TINY);
    let cells_of = |shard: &str| -> Vec<serde_json::Value> {
        let run = ["run", &suite, "--out", &out, "--dry-run", "--json", "--shard", shard];
        let output = bench(&run);
        assert!(output.status.success(), "{}", text(&output));
        let lines = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<serde_json::Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let total = lines.pop().unwrap();
        assert_eq!((&total["event"], &total["cells"]), (&"total".into(), &lines.len().into()));
        lines
    };
    let (first, second) = (cells_of("1/2"), cells_of("2/2"));
    assert_eq!(first.len() + second.len(), 4);
    assert!(first.iter().all(|cell| cell["event"] == "cell" && !second.contains(cell)));
    assert_eq!(cells_of("1/1").len(), 4);
    let said = text(&bench(&["run", &suite, "--out", &out, "--dry-run", "--shard", "1/2"]));
    assert!(said.contains(&format!("{} cells of 4 (shard 1/2)", first.len())), "{said}");
}

#[test]
fn a_report_keeps_the_title_and_the_criteria_of_its_suite() {
    let criteria = "[report]\nsolved_exact_match = 0.75\n";
    let (_folder, suite, out) = tiny(&TINY.replace("[model]", &format!("{criteria}[model]")));
    assert!(bench(&["run", &suite, "--out", &out]).status.success());
    let written = || std::fs::read_to_string(Path::new(&out).join("report.md")).unwrap();
    let first = written();
    assert!(first.starts_with("# Tiny\n") && first.contains("at least 75.0%"), "{first}");
    let again = bench(&["report", &out]);
    assert!(again.status.success(), "{}", text(&again));
    assert!(written().starts_with("# Tiny\n") && written().contains("at least 75.0%"));
    std::fs::write(Path::new(&out).join("report.json"), "{\"titel\": 1}").unwrap();
    let damaged = bench(&["report", &out]);
    assert!(
        !damaged.status.success() && text(&damaged).contains("report.json"),
        "{}",
        text(&damaged)
    );
}

#[test]
fn results_are_compared_and_set_as_tables_of_papers() {
    let (_folder, suite, out) = tiny(TINY);
    assert!(bench(&["run", &suite, "--out", &out]).status.success());
    let compared = bench(&["compare", "alibi", "nope", &out]);
    let said = String::from_utf8(compared.stdout).unwrap();
    let top = said.lines().take(3).collect::<Vec<_>>();
    assert!(top[0].ends_with("ALiBi better  NoPE better  neither"), "{said}");
    let counts =
        |line: &str| line.split_whitespace().rev().take(3).collect::<Vec<_>>() == ["1", "0", "0"];
    assert!(
        top[1].starts_with("in distribution") && top[1..].iter().all(|line| counts(line)),
        "{said}"
    );
    let table = |more: &[&str]| bench(&[&["table", &out], more].concat());
    for (form, expected) in [
        ("markdown", "| encoding | in-distribution: 8 |"),
        ("tex", "\\begin{tabular}{lrrrrrr}"),
        ("tex-column", "\\footnotesize"),
        ("csv", "encoding,in-distribution 8,in-distribution 8 spread"),
        ("bibtex", "@misc{press2021alibi,"),
    ] {
        let output = table(&["--format", form]);
        assert!(output.status.success() && text(&output).contains(expected), "{}", text(&output));
    }
    let one = text(&table(&["--splits", "in-distribution", "--lens", "8", "--encodings", "nope"]));
    assert!(one.contains("| encoding | in-distribution: 8 |\n") && !one.contains("ALiBi"), "{one}");
    // Step times do not belong to tables of results.
    let copy = format!("{out}-copy");
    assert!(bench(&["records", "merge", &out, "--out", &copy]).status.success());
    for folder in [&out, &copy] {
        fs::write(Path::new(folder).join("speed.jsonl"), "").unwrap();
    }
    let both = bench(&["table", &out, &copy]);
    assert!(both.status.success(), "{}", text(&both));
    let wrong = table(&["--lens", "9"]);
    assert!(!wrong.status.success());
    assert!(text(&wrong).contains("has no length `9`, expected one of 16, 8"), "{}", text(&wrong));
}

#[test]
fn any_text_file_can_be_learned() {
    let suite = TINY.replace("task = \"flip-flop\"", "task = \"text\"");
    let (folder, suite, out) = tiny(&suite);
    let data = folder.path().join("data.txt");
    std::fs::write(&data, "the quick brown fox jumps over the lazy dog. ".repeat(60)).unwrap();
    let output = bench(&["run", &suite, "--out", &out, "--data", data.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("ppl"), "{}", text(&output));

    std::fs::write(&data, [0xff, 0xfe, 0x00]).unwrap();
    let output = bench(&["run", &suite, "--out", &out, "--data", data.to_str().unwrap()]);
    assert!(text(&output).contains("UTF-8"), "{}", text(&output));
    std::fs::write(&data, "").unwrap();
    let output = bench(&["run", &suite, "--out", &out, "--data", data.to_str().unwrap()]);
    assert!(text(&output).contains("empty"), "{}", text(&output));
}

#[test]
fn corpora_are_listed_and_tokens_of_a_file_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let environment = [("PE_ZOO_CACHE", cache.to_str().unwrap())];
    let said = text(&bench_with(&["data", "list"], &environment));
    assert!(said.contains("sotu: ") && said.contains("pe-bench data fetch rust-code"), "{said}");
    let said = text(&bench_with(&["data", "verify"], &environment));
    assert!(said.contains("No corpus and no model is on this machine"), "{said}");
    // A wrong name is found before anything is fetched for the right one.
    for names in [&["other"][..], &["sotu", "other"]] {
        let said = text(&bench_with(&[&["data", "fetch"][..], names].concat(), &environment));
        assert!(said.contains("unknown corpus `other`"), "{said}");
        assert!(!cache.join("corpora/sotu.jsonl").exists());
    }
    let data = folder.path().join("rows.jsonl");
    let line = "{\"text\": \"the quick brown fox jumps over the lazy dog\"}\n";
    std::fs::write(&data, line.repeat(30)).unwrap();
    let arguments = ["data", "tokens", data.to_str().unwrap(), "--tokenizer", "gpt2", "--joined"];
    let first = text(&bench_with(&arguments, &environment));
    assert!(
        first.contains("tokenized and stored in") && first.contains("vocabulary: 50257 tokens"),
        "{first}"
    );
    assert!(first.contains("validation"), "{first}");
    let again = text(&bench_with(&arguments, &environment));
    assert!(again.contains("found in"), "{again}");
}

#[test]
fn the_example_suite_runs_dry() {
    let example = bench(&["new", "suite", "mine"]);
    let (_folder, suite, _) = tiny(&String::from_utf8(example.stdout).unwrap());
    let output = bench(&["run", &suite, "--dry-run"]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn every_list_prints() {
    for (what, expected) in [
        ("encodings", "cope"),
        ("tasks", "flip-flop"),
        ("suites", "quick"),
        ("backends", "--features cuda"),
    ] {
        let output = bench(&["list", what]);
        assert!(output.status.success() && text(&output).contains(expected), "{}", text(&output));
        let json = bench(&["list", what, "--json"]);
        let items: Vec<serde_json::Value> = serde_json::from_slice(&json.stdout).unwrap();
        let ids = items.iter().map(|item| item["id"].as_str().unwrap());
        assert!(ids.clone().count() > 1, "{}", text(&json));
        assert!(
            expected.starts_with("--") || ids.clone().any(|id| id == expected),
            "{}",
            text(&json)
        );
    }
}

#[test]
fn conform_prints_what_was_checked() {
    let output = bench(&["conform", "nope", "cope{max_positions=5}+rope"]);
    assert!(output.status.success(), "{}", text(&output));
    for expected in ["nope: all 21 checks hold", "cope{max_positions=5}+rope: all", "MacFormula"] {
        assert!(text(&output).contains(expected), "{}", text(&output));
    }
    let output = bench(&["conform", "rop"]);
    assert!(!output.status.success() && text(&output).contains("did you mean `rope`?"));
    let output = bench(&["conform", "alibi{slopes={given=[0.5]}}"]);
    let said = text(&output);
    assert!(said.contains("3 heads") && said.contains("slopes.given is [0.5]"), "{said}");
    assert!(!output.status.success() && !said.contains("FAILS"), "{said}");
}

/// Numbers beyond those of 64 bits.
#[test]
fn settings_of_any_size_are_explained() {
    for expression in ["rope{base=1e20}", "xpos{base=1e26}"] {
        let output = bench(&["explain", expression]);
        let said = text(&output);
        assert!(output.status.success() && !said.contains("panicked"), "{said}");
    }
}

#[test]
fn cards_and_costs_print() {
    for (arguments, expected) in [
        (vec!["explain", "rope"], "defaults: `{base=10000.0, layout=half-split"),
        (vec!["explain", "cope{max_positions=9}+rope"], "as written: `{convention=listing"),
        (vec!["explain", "flip-flop"], "\nDefinition\n`FFL(T, p)` has `T` tokens (even): "),
        (vec!["explain", "flip-flop"], "in tokens\n- split in-distribution: "),
        (vec!["explain", "text"], "lengths are in tokens\n- defaults: `{"),
        (vec!["flops", "--config", "tape-155m"], "321.10 160.46 154.89, the same"),
        (vec!["flops", "--honest", "--encodings", "rope,cope+rope", "--items"], "softmax"),
    ] {
        let output = bench(&arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        assert!(text(&output).contains(expected), "{arguments:?}: {}", text(&output));
    }
    for name in ["cope{max_positions=9}+rope", "flip-flop"] {
        let output = bench(&["explain", name, "--json"]);
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = if name == "flip-flop" { &found["text"] } else { &found["parts"][1]["text"] };
        assert!(text.as_str().is_some_and(|text| text.starts_with("# ")), "{found}");
        if name == "flip-flop" {
            let names = found["splits"].as_array().unwrap().iter().map(|split| &split["name"]);
            assert_eq!(names.collect::<Vec<_>>(), ["in-distribution", "sparse", "dense"]);
        }
    }
    for (arguments, expected) in [
        (vec!["explain", "flip-flap"], "did you mean the task `flip-flop`?"),
        (vec!["explain", "quik"], "did you mean the suite `quick`?"),
        (vec!["flops", "--config", "tape-155"], "did you mean `tape-155m`?"),
        (vec!["flops", "--len", "0"], "expected a whole number from 1 to "),
    ] {
        let output = bench(&arguments);
        assert!(!output.status.success(), "{arguments:?} succeeded");
        assert!(text(&output).contains(expected), "{arguments:?}: {}", text(&output));
    }
}

#[test]
fn speed_prints_one_object_per_line_with_the_stated_keys() {
    let small = ["--batch", "2", "--len", "16", "--dim", "16", "--heads", "2", "--layers", "1"];
    let mut arguments = vec!["speed", "--json", "--steps", "3", "--encodings", "nope,cope"];
    arguments.extend(small);
    let output = bench(&arguments);
    assert!(output.status.success(), "{}", text(&output));
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(lines.lines().count(), 2);
    for line in lines.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        for key in
            ["encoding", "backend", "engine", "step_seconds", "tokens_per_second", "peak_bytes"]
        {
            assert!(!row[key].is_null(), "{key}: {line}");
        }
    }
}

#[test]
fn speed_measures_the_encodings_of_a_suite_at_its_size() {
    let named =
        TINY.replace("\"nope\"]", "{ kind = \"cope\", max_positions = 8, name = \"eight\" }]");
    let further = "[[workload]]\nname = \"long\"\ntask = \"flip-flop\"\ntrain = { len = 12 }\n";
    let (_folder, file, _) = tiny(&(named + further));
    let rows = |options: &[&str]| -> Vec<serde_json::Value> {
        let output =
            bench(&[&["speed", "--json", "--steps", "1", "--suite", &file], options].concat());
        assert!(output.status.success(), "{}", text(&output));
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let first = rows(&["--rounds", "2"]);
    let names: Vec<_> = first.iter().map(|row| row["encoding"].as_str().unwrap()).collect();
    assert_eq!(names, ["alibi", "eight"]);
    let size =
        |row: &serde_json::Value| ["batch", "len", "dim", "layers"].map(|key| row[key].as_u64());
    assert_eq!(size(&first[1]), [4, 7, 16, 1].map(Some));
    assert_eq!(size(&rows(&["--workload", "long"])[0]), [4, 11, 16, 1].map(Some));
    for (options, expected) in [
        (["--suite", &*file, "--len", "8"], "cannot be used with"),
        (["--suite", &file, "--workload", "lon"], "did you mean `long`"),
    ] {
        let output = bench(&[&["speed"][..], &options].concat());
        assert!(!output.status.success() && text(&output).contains(expected), "{}", text(&output));
    }
}

#[test]
fn published_numbers_stand_beside_a_run_and_filters_choose_among_them() {
    let (_folder, file, out) =
        tiny(&TINY.replace("[\"alibi\", \"nope\"]", "[\"rope\", \"alibi\"]"));
    assert!(bench(&["run", &file, "--out", &out]).status.success());
    let found = bench(&["reproduce", &out]);
    let shown = text(&found);
    assert!(found.status.success(), "{shown}");
    // RoPE at 20.3% is of 10000 steps, ours of 4; ALiBi is in no table of flip-flop.
    let line = shown.lines().find(|line| line.contains("20.3% wrong")).unwrap();
    for part in ["rope", "out of distribution", "n=2", "other recipe", "[1]"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words.matches("train.steps 4 (published: 10000)").count(), 1, "once: {shown}");
    assert!(!shown.contains("alibi") && !shown.contains("Proof-pile"), "{shown}");
    let not_run = text(&bench(&["reproduce", &out, "--paper", "tape", "--verdict", "not-run"]));
    assert!(not_run.contains("Proof-pile") && !not_run.contains("train.steps"), "{not_run}");
    let wrong = bench(&["reproduce", "--paper", "tapee"]);
    assert!(
        !wrong.status.success() && text(&wrong).contains("did you mean `tape`"),
        "{}",
        text(&wrong)
    );
}

#[test]
fn measured_stability_stands_beside_the_published_one_of_its_encoding_and_shift() {
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str, encoding: &str, tokens: usize, share: f64| {
        let layers = (0..8)
            .map(|layer| json!({ "layer": layer, "attention": share, "products": null }))
            .collect::<Vec<_>>();
        let output = json!({
            "encoding": train::encodings::parse(encoding).unwrap().identity(),
            "prepended_tokens": tokens, "first_position": 3,
            "after_prepending": layers, "after_offset": { "refused": "too long" },
        });
        let path = folder.path().join(name);
        fs::write(&path, output.to_string()).unwrap();
        path.display().to_string()
    };
    let tape = "tape{form=tensor-not-equivariant}";
    let files = [
        written("one.json", tape, 3, 0.1),
        written("two.json", tape, 3, 0.12),
        written("other-shift.json", tape, 5, 0.5),
        written("other-encoding.json", "rope{base=50000}", 3, 0.5),
    ];
    let found = text(&bench(&["reproduce", "--stability", &files.join(",")]));
    let ours = found.lines().filter(|line| line.contains("ours")).collect::<Vec<_>>();
    // Columns (a) at layers 1, 2, 4 and 8; the mean of 10 and 12 with Student's t at one degree of freedom.
    assert_eq!(ours.len(), 4, "{found}");
    let first = "TAPE without equivariance  (a) 1  11.30 1e-2  ours 11.00 [-1.71, 23.71], n=2";
    assert!(ours[0].contains(first) && ours[3].contains("(a) 8  14.55"), "{found}");
    for file in &files[2..] {
        assert!(found.contains(&format!("{file}: no published number")), "{found}");
    }
    let all = folder.path().join("all.jsonl").display().to_string();
    let lines = files[..2].iter().map(|file| fs::read_to_string(file).unwrap() + "\n");
    fs::write(&all, lines.collect::<String>()).unwrap();
    let of_one_file = text(&bench(&["reproduce", "--stability", &all]));
    let rows = of_one_file.lines().filter(|line| line.contains("ours"));
    assert_eq!(rows.collect::<Vec<_>>(), ours);
    assert!(!found.contains(&format!("{}: no", files[0])), "{found}");
    for (content, name) in [("{}", "empty.json"), ("[", "broken.json")] {
        let path = folder.path().join(name).display().to_string();
        fs::write(&path, content).unwrap();
        let output = bench(&["reproduce", "--stability", &path]);
        let said = text(&output);
        assert!(
            !output.status.success() && said.contains(name) && said.contains("stability --json"),
            "{said}"
        );
    }
}
