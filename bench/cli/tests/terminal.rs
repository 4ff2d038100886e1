//! What a person sees: help, lists, results, pages.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

mod program;

use std::fs;
use std::path::Path;
use std::process::Command;

use program::{Place, TINY, bench, bench_with, done, files, refused, text, tiny};
use serde_json::Value;

#[test]
fn the_start_and_mistakes_show_the_way() {
    let start = done(&[]);
    assert!(start.contains("pe-bench run quick ") && start.lines().count() < 12, "{start}");
    let said = text(&bench(&["rnu"]));
    assert!(said.contains("a similar subcommand exists: 'run'"), "{said}");
    let said = text(&bench(&["explain", "flip-flap"]));
    assert!(!said.contains("addition"), "a near name is enough: {said}");
    refused(&["run", "zzz"], "code-20m, contextual, contextual-text, cope-figure-2, cope-figure-3");
    refused(&["run", "zzz"], "cope-mlp-widths and 37 more; or give the path of a TOML file");
    let coloured = bench_with(&["run", "quik"], &[("CLICOLOR_FORCE", "1")]);
    assert!(
        text(&coloured).starts_with("\u{1b}[31m\u{1b}[1merror:\u{1b}[0m unknown"),
        "{coloured:?}"
    );
    let plain = bench_with(&["run", "quik", "--color", "never"], &[("CLICOLOR_FORCE", "1")]);
    assert!(text(&plain).starts_with("error: unknown"), "{plain:?}");
}

#[test]
fn a_mistake_in_a_suite_is_shown_in_its_line() {
    let wrong = TINY.replace("steps = 4", "steps = 4\nstepz = 5");
    let (_folder, suite, _) = tiny(&wrong);
    let said = text(&bench(&["run", &suite]));
    let number = wrong.lines().position(|line| line == "stepz = 5").unwrap() + 1;
    let shown = format!("--> {suite}:{number}:1\n   |\n{number} | stepz = 5\n   | ^^^^^");
    assert!(said.contains("did you mean `steps`?") && said.contains(&shown), "{said}");
}

#[test]
fn a_list_without_a_kind_has_everything() {
    let said = done(&["ls"]);
    let encodings = format!("encodings ({})", train::encodings::ids().len());
    for expected in [&*encodings, "stick-breaking", "flip-flop", "quick", "flex"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let all: Value = serde_json::from_str(&done(&["list", "--json"])).unwrap();
    let suites = all["suites"].as_array().unwrap();
    let quick = suites.iter().find(|suite| suite["id"] == "quick").unwrap();
    assert!(quick["core_time_seconds"].as_f64().unwrap() > 600.0, "{quick}");
}

#[test]
fn an_explanation_is_prose_and_has_results() {
    let said = done(&["explain", "cope"]);
    assert!(!said.contains("\n#"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
    let results = said.split_once("\nResults\n- Place ").unwrap().1;
    assert!(results.contains("Significantly better than RoPE on "), "{said}");
    assert!(
        results.ends_with("`pe-bench compare cope rope` compares your own records.\n"),
        "{said}"
    );
    assert!(done(&["explain", "quick"]).contains("- workloads: counting, flip-flop, shakespeare"));
}

#[test]
fn a_run_ends_with_its_results_and_commands_find_its_cells() {
    let place = Place::new("");
    let run = place.run("out", &["--keep-weights", "last"]);
    let page = format!("Report: file://{}", place.path("out/index.html"));
    assert_eq!(run.lines().last(), Some(&*page), "{run}");
    let table = run.lines().skip_while(|line| !line.is_empty()).collect::<Vec<_>>();
    assert!(
        table[1].starts_with("encoding") && table[2..4].iter().any(|row| row.starts_with("ALiBi"))
    );

    let out = place.path("out");
    let cells = |more: &[&str]| -> Vec<Value> {
        serde_json::from_str(&done(&[&["cells", &out, "--json"], more].concat())).unwrap()
    };
    assert_eq!(cells(&[]).len(), 4);
    let one = cells(&["--encodings", "alibi,rope", "--seeds", "1"]);
    assert_eq!((one.len(), &one[0]["status"]), (1, &"done".into()));
    let key = one[0]["key"].as_str().unwrap();
    assert!(done(&["cells", &out]).contains(key));
    refused(
        &["cells", &out, "--seeds", "7"],
        "no cell matches --workloads, --encodings and --seeds",
    );
    // Names of older programs.
    assert_eq!(cells(&["--workload", "flip-flop", "--seed", "1"]).len(), 2);

    let suite = place.path("suite.toml");
    let (new, old) = (place.path("new"), place.path("old"));
    let names = ["export", &suite, "flip-flop", "alibi", "--seed", "1", "--results", &out];
    done(&[&names[..], &["--out", &new]].concat());
    done(&["export", key, &old, "--results", &out]);
    let weights = |folder: &str| fs::read(Path::new(folder).join("model.safetensors")).unwrap();
    assert!(weights(&new) == weights(&old));
}

#[test]
fn open_cells_are_counted_by_workload_and_encoding() {
    let place = Place::new("");
    place.run("out", &["--shard", "1/4096", "--no-report"]);
    let status = bench(&["status", &place.path("out")]);
    assert_eq!(status.status.code(), Some(4), "{}", text(&status));
    assert!(
        text(&status).contains("number of open cells:\n  flip-flop  alibi 2, nope 2\n"),
        "{status:?}"
    );
    let dry = place.run("dry", &["--dry-run"]);
    let rows = dry.lines().filter(|line| line.starts_with("flip-flop")).collect::<Vec<_>>();
    assert!(rows.len() == 2 && rows[0].contains("ALiBi     2 "), "{dry}");
    assert!(dry.contains("weights: would be saved in "), "{dry}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_report_opens_in_the_browser() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new("");
    place.run("out", &["--no-report", "--quiet"]);
    place.write("xdg-open", "#!/bin/sh\nprintf '%s' \"$1\" > \"$OPENED\"\n");
    fs::set_permissions(place.path("xdg-open"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", place.path(""), std::env::var("PATH").unwrap());
    let (out, opened) = (place.path("out"), place.path("opened"));
    let environment = [("PATH", &*path), ("OPENED", &*opened)];
    let report = bench_with(&["report", &out, "--open"], &environment);
    assert!(report.status.success(), "{}", text(&report));
    let page = Path::new(&out).join("index.html").display().to_string();
    let seen = || fs::read_to_string(&opened).unwrap_or_default();
    for _ in 0..100 {
        if seen() == page {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("opened {:?}, expected {page}", seen());
}

#[test]
fn packages_get_manual_pages_and_completions_that_know_names() {
    let folder = tempfile::tempdir().unwrap();
    done(&["completions", "--all", folder.path().to_str().unwrap()]);
    let names = files(folder.path());
    let names = names.iter().map(|path| path.file_name().unwrap().to_str().unwrap());
    for expected in ["pe-bench.1", "pe-bench-run.1", "pe-bench-records-merge.1", "pe-bench.bash"] {
        assert!(names.clone().any(|name| name == expected), "{expected}");
    }
    let page = fs::read_to_string(folder.path().join("pe-bench-run.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("keep\\-weights"), "{page}");
    // clap_complete knows only values of options for fish.
    for (shell, name) in [("bash", "quick"), ("zsh", "quick"), ("fish", "stick-breaking")] {
        let script = done(&["completions", shell]);
        assert!(script.contains(name), "{shell}: {name}");
    }
    let script = folder.path().join("pe-bench.bash");
    let completed = |words: &[&str]| {
        let [.., before, word] = words else { panic!("{words:?}") };
        let complete = format!(
            "source \"$1\"; COMP_WORDS=({}); COMP_CWORD={}; _pe__bench_list pe-bench '{word}' '{before}'; \
             echo \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words.len() - 1
        );
        text(&Command::new("bash").args(["-c", &complete, "bash"]).arg(&script).output().unwrap())
    };
    assert_eq!(completed(&["pe-bench", "explain", "st"]), "stick-breaking state-tracking\n");
    // Both arguments have the name; shells show it once.
    let second = completed(&["pe-bench", "compare", "rope", "st"]);
    assert!(second.split_whitespace().all(|name| name == "stick-breaking") && second.len() > 1);
    let run = ["pe-bench", "run", "quick", "--encodings"];
    assert_eq!(completed(&[&run[..], &["rope,ali"]].concat()), "rope,alibi\n");
    assert_eq!(completed(&[&run[..], &["ali"]].concat()), "alibi\n");
    assert!(fs::read_to_string(&script).unwrap().contains("complete -F _pe__bench_list "));
    // run, cells, table and extend have lists of encodings.
    for (shell, of_list) in
        [("zsh", ":_values -s , names abacus alibi "), ("fish", "(__fish_append , abacus alibi ")]
    {
        let script = done(&["completions", shell]);
        assert!(script.matches(of_list).count() >= 4, "{shell}: {script}");
    }
}
