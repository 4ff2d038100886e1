//! Consecutive nights, run as in CI: the gate passes without changes and fails if an encoding computes wrong values or
//! costs more.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

mod program;

use std::fmt::Write as _;
use std::path::Path;

use program::{bench, text};

/// Texts in which the order of the letters before decides what comes next, not which letters they are.
const TEXTS: [&str; 4] = ["aababbabbb", "abbbaabaab", "aabbababba", "abaabbbaba"];

/// Two encodings on four texts, two seeds each.
fn suite(folder: &Path, rope: &str, alibi: &str) -> String {
    let mut text = format!(
        "name = \"nights\"\ntitle = \"Nights\"\nabout = \"For tests.\"\nseeds = [0, 1]\nencodings = [{rope}, {alibi}]\n\
         [model]\nlayers = 2\nwidth = 16\nheads = 2\n\
         [train]\nsteps = 60\nbatch_size = 8\nlen = 24\noptimizer = {{ learning_rate = 1e-2, warmup_steps = 5 }}\n\
         [eval]\nlens = [24, 32]\nsamples = 8\n"
    );
    for (index, pattern) in TEXTS.iter().enumerate() {
        let path = folder.join(format!("text-{index}.txt"));
        std::fs::write(&path, pattern.repeat(120)).unwrap();
        let path = path.display();
        let _ = write!(
            text,
            "[[workload]]\nname = \"text-{index}\"\ntask = {{ kind = \"text\", path = \"{path}\" }}\n"
        );
    }
    let file = folder.join(format!("{}.toml", rope.len() * 100 + alibi.len()));
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

#[test]
fn planted_regressions_are_caught_and_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let run_with = |name: &str, rope: &str, alibi: &str, more: &[&str]| {
        let out = path(name);
        let suite = suite(folder.path(), rope, alibi);
        let ran = bench(&[&["run", &suite, "--out", &out][..], more].concat());
        assert!(ran.status.success(), "{}", text(&ran));
        out
    };
    let run = |name: &str, rope: &str, alibi: &str| run_with(name, rope, alibi, &[]);
    let baseline = path("baseline");
    let judge = |night: &str, more: &[&str]| {
        let output = bench(&[&["nightly", night, "--baseline", &baseline][..], more].concat());
        (output.status.code().unwrap(), text(&output))
    };

    let first = run("first", "\"rope\"", "\"alibi\"");
    let (code, said) = judge(&first, &[]);
    assert!(code == 1 && said.contains("no baseline yet"), "{code}: {said}");
    std::fs::create_dir(&baseline).unwrap();
    let packed = folder.path().join("baseline/records.parquet");
    std::fs::write(&packed, "damaged").unwrap();
    let (code, said) = judge(&first, &[]);
    assert!(code == 1 && said.contains("is damaged") && !said.contains("--accept"), "{said}");
    std::fs::remove_file(packed).unwrap();
    let history = path("history");
    let (code, said) = judge(&first, &["--count", "--accept", "--history", &history]);
    // Instructions are counted where valgrind is, and it is said where it is not.
    let instructions = said.contains("instructions per step");
    assert!(instructions || said.contains("not counted on this machine"), "{said}");
    assert!(code == 0 && said.contains("accepted: 16 cells"), "{said}");

    // Another night of the same program.
    let second = run("second", "\"rope\"", "\"alibi\"");
    let (code, said) = judge(&second, &["--history", &history]);
    assert!(code == 0 && said.contains("16 cells compared, 16 of them identical"), "{said}");
    assert!(!said.contains("FAIL") && !said.contains("not compared: alloc"), "{said}");
    let why = if instructions {
        "2 cells counted in the baseline, but not on this machine"
    } else {
        "not counted on this machine"
    };
    let untold = format!("not compared: instructions of a training step: {why}");
    assert!(said.contains(&untold), "{said}");
    let page = std::fs::read_to_string(Path::new(&history).join("trend.html")).unwrap();
    assert!(page.contains("text-3") && page.contains("<path class=\"line\""), "{page}");

    // One encoding made wrong: it does nothing under its old name.
    let wrong = run("wrong", "{ kind = \"nope\", name = \"rope\" }", "\"alibi\"");
    let (code, said) = judge(&wrong, &[]);
    assert!(code == 3 && said.contains("FAIL quality: rope"), "{code}: {said}");
    // A busy machine may warn of any step's time.
    let fails = said.lines().filter(|line| line.starts_with("FAIL"));
    assert!(
        fails.clone().all(|line| line.starts_with("FAIL quality: rope, all changed cells")),
        "{said}"
    );
    assert_eq!(fails.count(), 2, "in distribution and beyond: {said}");
    assert!(said.contains("16 cells compared, 8 of them identical"), "{said}");

    // One made dearer: more operations and parameters under its old name.
    let dearer = run("dearer", "\"rope\"", "{ kind = \"cope-mlp\", name = \"alibi\" }");
    let (code, said) = judge(&dearer, &["--count"]);
    assert_eq!(code, 3, "{said}");
    let (code, said) = judge(&dearer, &["--json"]);
    assert_eq!(code, 3, "{said}");
    let json = said.lines().take_while(|line| !line.starts_with("the gate")).collect::<String>();
    let verdict: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rises = verdict["rises"].as_array().unwrap();
    assert!(rises.iter().all(|rise| rise["encoding"] == "alibi") && rises.len() >= 8, "{said}");
    let counted = rises.iter().any(|rise| rise["what"] == "instructions of a training step");
    assert_eq!(counted, instructions, "{said}");

    // All made to ask for more memory: the same encodings through the plain engine, with other threads.
    let plain = ["--engine", "reference", "--threads", "2"];
    let greedy = run_with("greedy", "\"rope\"", "\"alibi\"", &plain);
    let (code, said) = judge(&greedy, &[]);
    assert_eq!(code, 3, "{said}");
    let fails: Vec<&str> = said.lines().filter(|line| line.starts_with("FAIL")).collect();
    let of = |what: &str| fails.iter().filter(|line| line.contains(what)).count();
    assert_eq!(of("FAIL cost: "), fails.len(), "{said}");
    assert_eq!(of(": allocations of a training step"), 8, "{said}");
    assert!(said.contains("not compared: instructions"), "{said}");

    // One made slower: the same numbers in three times the time. A warning and no more.
    let slow = path("slow");
    for mut record in analysis::folder::read_dir(Path::new(&second)).unwrap() {
        if record.encoding.name == "rope" {
            record.train.step_seconds_median = record.train.step_seconds_median.map(|s| 3000.0 * s);
        }
        record.write(Path::new(&slow)).unwrap();
    }
    let (code, said) = judge(&slow, &[]);
    assert!(code == 0 && said.contains("warning: rope on `text-0`: step"), "{code}: {said}");

    // What was meant is accepted, and is quiet from then on.
    let (code, said) = judge(&wrong, &["--accept"]);
    assert_eq!(code, 0, "{said}");
    let (code, said) = judge(&wrong, &[]);
    assert!(code == 0 && said.contains("16 of them identical"), "{said}");
    assert_eq!(std::fs::read_dir(Path::new(&baseline).join("cells")).unwrap().count(), 16);

    // A packed baseline is replaced as well.
    assert!(bench(&["records", "pack", &baseline]).status.success());
    let (code, said) = judge(&wrong, &["--accept"]);
    assert_eq!(code, 0, "{said}");
    assert!(!Path::new(&baseline).join("records.parquet").exists());

    // So are records that are counted.
    assert!(bench(&["records", "pack", &second, "--out", &path("packed")]).status.success());
    let (code, said) = judge(&path("packed"), &["--count", "--accept"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(std::fs::read_dir(Path::new(&path("packed")).join("cells")).unwrap().count(), 16);
}
