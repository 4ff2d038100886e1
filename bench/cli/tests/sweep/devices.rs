//! Several devices, one worker each: on the CPU, groups of processors.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use crate::place::{Place, children, events, named, signal, until};
use crate::program::text;

/// Processors that a process may use, as the system lists them: `0-1,4`.
fn processors(pid: u32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_owned())
}

/// A sweep that locks devices apart from those of other processes on this machine.
fn command(place: &Place, out: &str, options: &[&str]) -> Command {
    let mut command = place.command(&place.out(out), options);
    command.env("TMPDIR", place.suite().parent().unwrap());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn each_device_has_one_worker_and_no_second_sweep() {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        eprintln!("SKIPPED: one processor is one device");
        return;
    }
    let place = Place::new(1_000_000);
    let mut options = vec!["--devices", "0-1", "--json"];
    let sweep = command(&place, "a", &options).spawn().unwrap();
    until("two workers run on processors of their own", || {
        let workers = children(sweep.id());
        let bound = workers.iter().filter_map(|pid| processors(*pid));
        let bound = bound.filter(|list| !list.contains(['-', ','])).collect::<BTreeSet<_>>();
        workers.len() == 2 && bound.len() == 2
    });
    // The sweep itself is not bound.
    assert!(processors(sweep.id()).unwrap().contains(['-', ',']));

    let refused = command(&place, "b", &["--devices", "1"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let said = text(&refused);
    assert!(said.contains("device 1 is used by another sweep"), "{said}");

    signal("TERM", sweep.id());
    let output = sweep.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", text(&output));
    let seen = events(&output);
    let devices =
        named(&seen, "began").iter().map(|e| e["device"].as_u64()).collect::<BTreeSet<_>>();
    assert_eq!(devices, [Some(0), Some(1)].into(), "{}", text(&output));

    // Free again, and the cells resume on one device.
    options[1] = "1";
    let more = [&options[..], &["--cell-seconds", "0.01"]].concat();
    let again = command(&place, "a", &more).output().unwrap();
    let seen = events(&again);
    assert_eq!(
        (named(&seen, "resumed").len(), &seen[0]["jobs"]),
        (2, &1.into()),
        "{}",
        text(&again)
    );
}

#[test]
fn devices_that_do_not_exist_are_refused() {
    let place = Place::new(5);
    for (options, expected) in [
        (&["--devices", "0,9999"][..], "device 9999 for --devices, expected less than"),
        (&["--devices", "3-1"], "is not a list of devices"),
        (&["--devices", "0", "--jobs", "2"], "cannot be used with"),
        (&["--device", "1"], "has only device 0"),
    ] {
        let output = command(&place, "none", options).output().unwrap();
        assert!(!output.status.success(), "{options:?}");
        assert!(text(&output).contains(expected), "{options:?}: {}", text(&output));
    }
}
