//! What a kill or Ctrl-C leaves, and how it goes on.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::place::{
    BENCH, Place, assert_equal, checkpoints, children, events, fields, files, named, signal, text,
    until, until_event,
};

#[test]
fn killed_at_random_moments_it_leaves_the_records_of_an_undisturbed_run() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ci/kill-test.sh");
    let output =
        Command::new("bash").arg(script).args(["5", "7"]).env("PE_BENCH", BENCH).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("kill test passed: 5 kills"), "{}", text(&output));
}

#[test]
fn workers_end_with_the_sweep_that_is_killed() {
    let place = Place::new(1_000_000);
    let mut sweep = place.start(&place.out("a"), &["--jobs", "2"]);
    until("two workers run", || children(sweep.id()).len() == 2);
    let workers = children(sweep.id());
    sweep.kill().unwrap();
    sweep.wait().unwrap();
    until("they end", || {
        workers.iter().all(|pid| fields(*pid).is_none_or(|[state, _]| state == "Z"))
    });
}

#[test]
fn ctrl_c_keeps_a_checkpoint_and_a_damaged_one_gives_way_to_the_one_before() {
    let place = Place::new(6000);
    let out = place.out("stopped");
    let seldom = ["--jobs", "1", "--checkpoint-seconds", "1000", "--encodings", "rope", "--json"];
    let often = ["--jobs", "1", "--checkpoint-seconds", "0.05", "--encodings", "rope", "--json"];
    let interrupt = |more: &[&str], enough: &dyn Fn() -> bool| {
        let sweep = place.start(&out, more);
        until("it works", enough);
        signal("INT", sweep.id());
        let output = sweep.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", text(&output));
        assert_eq!(named(&events(&output), "interrupted").len(), 1);
        output
    };
    let begun = Instant::now();
    interrupt(&seldom, &|| {
        begun.elapsed() > Duration::from_millis(800) && !files(&out.join("claims")).is_empty()
    });
    // Perhaps it was stopped before its first step: then there is nothing to keep.
    let first = checkpoints(&out);
    assert!(first.len() <= 1, "{first:?}");
    let output = interrupt(&often, &|| checkpoints(&out).len() == 2 && checkpoints(&out) != first);
    assert_eq!(named(&events(&output), "resumed").len(), first.len());

    let newest = checkpoints(&out).pop().unwrap();
    let mut bytes = fs::read(&newest).unwrap();
    bytes[100] ^= 16;
    fs::write(&newest, bytes).unwrap();
    let (events, output) = place.events(&out, &["--encodings", "rope", "--threads", "2"]);
    assert!(output.status.success(), "{}", text(&output));
    let trouble = named(&events, "trouble");
    assert!(trouble[0]["text"].as_str().unwrap().contains("checksum"), "{trouble:?}");
    assert_eq!(named(&events, "resumed").len(), 1);
    assert!(checkpoints(&out).is_empty() && !out.join("checkpoints").exists());

    let undisturbed = place.out("undisturbed");
    assert!(place.run(&undisturbed, &["--encodings", "rope"]).status.success());
    assert_equal(&out, &undisturbed);
}

#[test]
fn a_worker_killed_from_outside_is_a_failed_cell_and_the_others_go_on() {
    let place = Place::new(300);
    let out = place.out("killed");
    let sweep = place.start(&out, &["--jobs", "1", "--json"]);
    until("a worker runs", || !children(sweep.id()).is_empty());
    signal("KILL", children(sweep.id())[0]);
    let output = sweep.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let events = events(&output);
    let ends = named(&events, "ended").iter().map(|e| e["status"].clone()).collect::<Vec<_>>();
    assert_eq!(ends, ["failed", "done"], "{}", text(&output));
    assert!(text(&output).contains("signal 9") && text(&output).contains("--retry failed"));
    let (events, output) = place.events(&out, &["--retry", "failed"]);
    assert!(output.status.success() && named(&events, "ended").len() == 1, "{}", text(&output));
}

#[test]
fn term_hup_and_usr1_keep_a_checkpoint_and_give_the_claim_back() {
    let place = Place::new(1_000_000);
    let seldom = ["--jobs", "1", "--checkpoint-seconds", "1000", "--encodings", "rope", "--json"];
    for (name, status) in [("TERM", 143), ("HUP", 129), ("USR1", 138)] {
        let out = place.out(name);
        for attempt in 0..2 {
            let mut sweep = place.start(&out, &seldom);
            let rest = until_event(&mut sweep, "progress");
            signal(name, sweep.id());
            let events = rest();
            let output = sweep.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(status), "{name}: {}", text(&output));
            assert!(text(&output).contains(&format!("interrupted by SIG{name}")), "{name}");
            assert_eq!(named(&events, "interrupted").len(), 1, "{name}");
            assert_eq!(named(&events, "resumed").len(), attempt, "{name}");
            assert!(!checkpoints(&out).is_empty(), "{name}: no checkpoint");
            assert_eq!(claimed(&out), 0, "{name}: its claim is still there");
        }
    }
}

#[test]
fn a_worker_without_its_sweep_keeps_a_checkpoint() {
    let place = Place::new(1_000_000);
    let out = place.out("orphan");
    let seldom = ["--jobs", "1", "--checkpoint-seconds", "1000", "--encodings", "rope", "--json"];
    let mut sweep = place.start(&out, &seldom);
    drop(until_event(&mut sweep, "progress"));
    let worker = children(sweep.id())[0];
    sweep.kill().unwrap();
    sweep.wait().unwrap();
    until("its worker ends", || fields(worker).is_none_or(|[state, _]| state == "Z"));
    assert_eq!(checkpoints(&out).len(), 1);
}

/// Number of claims in a folder of results.
fn claimed(out: &Path) -> usize {
    let claims = files(&out.join("claims"));
    claims.iter().filter(|path| path.extension().is_some_and(|e| e == "json")).count()
}
