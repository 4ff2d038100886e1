//! `pe-bench status`, and sweeps that leave cells open.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::place::{Place, checkpoints, signal, until};
use crate::program::{BENCH, files, text};

fn status(out: &Path, more: &[&str]) -> Output {
    Command::new(BENCH).arg("status").arg(out).args(more).output().unwrap()
}

fn json(out: &Path) -> (Value, Option<i32>) {
    let output = status(out, &["--json"]);
    (serde_json::from_slice(&output.stdout).unwrap(), output.status.code())
}

#[test]
fn a_sweep_without_a_report_is_told_and_reported_later() {
    let place = Place::new(3);
    let out = place.out("plain");
    let first = place.run(&out, &["--shard", "1/2", "--no-report", "--quiet"]);
    assert!(first.status.success() && first.stdout.is_empty(), "{}", text(&first));
    assert!(!out.join("index.html").exists() && out.join("report.json").is_file());
    let (told, code) = json(&out);
    let ended = files(&out.join("cells")).len();
    assert_eq!((&told["cells"], &told["suite"]), (&2.into(), &"small".into()));
    assert_eq!(told["open"].as_array().unwrap().len(), 2 - ended, "the plan has all shards");
    assert_eq!(code, Some(if ended == 2 { 0 } else { 4 }));
    let second = place.run(&out, &["--no-report", "--quiet"]);
    assert!(second.status.success(), "{}", text(&second));
    let (told, code) = json(&out);
    assert_eq!(
        (code, &told["ended"]["done"], &told["seconds_left"]),
        (Some(0), &2.into(), &0.0.into())
    );
    let said = text(&status(&out, &["--watch"]));
    assert_eq!(said, "small: 2 of 2 cells done\n", "nothing to watch");
    let report = Command::new(BENCH).arg("report").arg(&out).output().unwrap();
    assert!(report.status.success() && out.join("index.html").is_file(), "{}", text(&report));
}

#[test]
fn cells_that_others_run_are_open_for_who_does_not_wait_and_have_a_place() {
    let place = Place::new(1_000_000);
    let out = place.out("busy");
    let mut sweep = place.start(&out, &["--jobs", "2", "--checkpoint-seconds", "0.1"]);
    until("both have checkpoints", || {
        let cells = checkpoints(&out).into_iter().map(|path| path.parent().unwrap().to_owned());
        cells.collect::<std::collections::BTreeSet<_>>().len() == 2
    });
    let hasty = place.run(&out, &["--no-wait", "--no-report", "--quiet"]);
    assert_eq!(hasty.status.code(), Some(4), "{}", text(&hasty));
    assert!(text(&hasty).contains("2 cells not finished"), "{}", text(&hasty));
    let (told, code) = json(&out);
    let running = told["running"].as_array().unwrap();
    assert_eq!((code, running.len(), &told["processes"]), (Some(4), 2, &1.into()));
    for cell in running {
        assert_eq!((&cell["pid"], &cell["steps"]), (&sweep.id().into(), &1_000_000.into()));
        assert!(cell["step"].as_u64().unwrap() > 0 && cell["workload"] == "flip-flop", "{cell}");
    }
    assert!(told["seconds_left"].as_f64().unwrap() > 1.0 && told["done_utc"].is_string());
    let said = text(&status(&out, &[]));
    let process = format!("process {} on ", sweep.id());
    assert!(
        said.contains("0 of 2 cells done, 2 running; about ") && said.contains(&process),
        "{said}"
    );
    signal("TERM", sweep.id());
    assert_eq!(sweep.wait().unwrap().code(), Some(143));
    let (told, code) = json(&out);
    let open = told["open"].as_array().unwrap();
    assert_eq!((code, open.len(), &told["seconds_left"]), (Some(4), 2, &Value::Null));
    assert!(open.iter().all(|cell| cell["step"].as_u64().unwrap() > 0), "{told}");
    let said = text(&status(&out, &[]));
    assert!(said.contains("no process is running a cell") && said.contains("from step "), "{said}");
}

#[test]
fn failures_are_told_with_their_reasons_and_hostile_names_as_escapes() {
    let place = Place::new(1_000_000);
    let suite = fs::read_to_string(place.suite()).unwrap();
    let hostile = suite.replace("\"flip-flop\"\ntask", "\"flip\\u001b[31m\"\ntask");
    assert_ne!(hostile, suite);
    fs::write(place.suite(), hostile).unwrap();
    let out = place.out("failed");
    let output = place.run(&out, &["--cell-seconds", "0.01", "--no-report", "--quiet"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    fs::write(out.join("cells/0123456789abcdef.json"), "{").unwrap();
    let shown = status(&out, &[]);
    assert_eq!(shown.status.code(), Some(1), "{}", text(&shown));
    let said = text(&shown);
    assert!(said.contains("0 of 3 cells done, 2 timed-out, 1 unreadable"), "{said}");
    assert!(said.contains("flip\\u001b[31m") && !said.contains('\u{1b}'), "{said}");
    assert!(
        said.contains("timed-out  ") && said.contains("0123456789abcdef.json is damaged"),
        "{said}"
    );
    let (told, _) = json(&out);
    assert_eq!(told["unfinished"][0]["status"], "timed-out");
    assert!(told["unfinished"][0]["reason"].as_str().unwrap().contains("0.01"), "{told}");
}

#[test]
fn folders_without_a_sweep_and_damaged_plans_are_refused() {
    let place = Place::new(3);
    let nothing = place.out("nothing");
    let said = text(&status(&nothing, &[]));
    assert!(said.contains("there is no such folder"), "{said}");
    fs::create_dir_all(&nothing).unwrap();
    let said = text(&status(&nothing, &["--json"]));
    assert!(said.contains("no records and no plan"), "{said}");
    fs::write(nothing.join("plan.json"), "{\"cells\": 1}").unwrap();
    let output = status(&nothing, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("plan.json is not a list of cells"), "{}", text(&output));
    let wrong = status(&nothing, &["--watch", "--every", "0"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
}

#[test]
fn who_watches_waits_for_the_sweep_to_begin_and_ends_with_it() {
    let place = Place::new(50);
    let out = place.out("watched");
    let mut watch = Command::new(BENCH);
    watch.arg("status").arg(&out).args(["--watch", "--every", "0.05", "--json"]);
    let watch = watch.stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(place.run(&out, &["--no-report", "--quiet"]).status.success());
    let output = watch.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lines = lines.collect::<Vec<_>>();
    assert!(lines[0]["suite"].is_null() && lines[0]["cells"] == 0, "{}", lines[0]);
    assert_eq!(lines.last().unwrap()["ended"]["done"], 2);
}
