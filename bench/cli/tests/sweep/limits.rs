//! Budgets of time and memory.

use std::fs;
use std::process::Command;

use crate::place::{Place, children, events, named, signal, until};
use crate::program::{BENCH, assert_equal, text};

#[test]
fn a_cell_out_of_time_stays_so_until_it_is_retried_and_then_goes_on() {
    let place = Place::new(1500);
    let out = place.out("time");
    let (events, output) = place.events(&out, &["--cell-seconds", "0.001"]);
    assert_eq!(output.status.code(), Some(1));
    let ended = named(&events, "ended");
    assert!(ended.iter().all(|event| event["status"] == "timed-out"), "{ended:?}");
    assert!(ended[0]["reason"].as_str().unwrap().contains("of 1500 steps"), "{ended:?}");
    assert!(text(&output).contains("--retry timed-out"), "{}", text(&output));

    let (events, output) = place.events(&out, &[]);
    assert_eq!((output.status.code(), named(&events, "began").len()), (Some(1), 0));

    let earlier = ["--retry", "timed-out", "--retry-before", "2026-01-01T00:00:00Z"];
    let (events, output) = place.events(&out, &earlier);
    assert_eq!((output.status.code(), named(&events, "began").len()), (Some(1), 0));

    let later = ["--retry", "timed-out", "--retry-before", "9999-01-01T00:00:00Z"];
    let (events, output) = place.events(&out, &later);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(named(&events, "resumed").len(), 2);
    let undisturbed = place.out("undisturbed");
    assert!(place.run(&undisturbed, &[]).status.success());
    assert_equal(&out, &undisturbed);
}

#[test]
fn a_worker_that_does_not_stop_in_time_is_killed() {
    let place = Place::new(1_000_000);
    let out = place.out("stuck");
    let more = ["--jobs", "1", "--encodings", "rope", "--cell-seconds", "1", "--json"];
    let sweep = place.start(&out, &more);
    until("a worker runs", || !children(sweep.id()).is_empty());
    signal("STOP", children(sweep.id())[0]);
    let output = sweep.wait_with_output().unwrap();
    let events = events(&output);
    let ended = named(&events, "ended");
    assert_eq!(ended[0]["status"], "timed-out", "{}", text(&output));
    assert!(ended[0]["reason"].as_str().unwrap().contains("was killed"), "{ended:?}");
}

#[test]
fn a_cell_that_takes_more_memory_than_its_budget_is_ended() {
    let place = Place::new(1_000_000);
    let (events, output) = place.events(&place.out("memory"), &["--cell-memory", "1MiB"]);
    assert_eq!(output.status.code(), Some(1));
    let ended = named(&events, "ended");
    assert_eq!(ended.len(), 2);
    for event in ended {
        assert_eq!(event["status"], "out-of-memory");
        assert!(event["reason"].as_str().unwrap().contains("its budget is 1 MiB"), "{event}");
    }
    let refused = place.run(&place.out("memory"), &["--cell-memory", "lots"]);
    assert!(text(&refused).contains("4GiB"), "{}", text(&refused));
}

#[test]
fn a_cell_that_no_memory_holds_is_one_record_and_costs_the_sweep_nothing() {
    let place = Place::new(5);
    let suite = fs::read_to_string(place.suite()).unwrap();
    let huge = suite.replace("\"alibi\"", "\"learned-absolute{max_len=16777216}\"");
    fs::write(place.suite(), huge.replace("width = 16", "width = 1024")).unwrap();
    let out = place.out("huge");
    let limited = |more: &[&str]| {
        let mut command = Command::new("sh");
        // In KiB of address space, the sweep's and each worker's.
        command.args(["-c", "ulimit -v 8000000; exec \"$@\"", "sh", BENCH, "run"]);
        command.arg(place.suite()).arg("--out").arg(&out).args(more).output().unwrap()
    };
    let dry = limited(&["--dry-run"]);
    assert!(
        dry.status.success() && text(&dry).contains("2 cells; training takes about"),
        "{}",
        text(&dry)
    );
    let output = limited(&["--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let seen = events(&output);
    let mut ends =
        named(&seen, "ended").iter().map(|e| e["status"].to_string()).collect::<Vec<_>>();
    ends.sort();
    assert_eq!(ends, ["\"done\"", "\"out-of-memory\""], "{}", text(&output));
}
