//! What a kill or Ctrl-C leaves, and how it goes on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::place::{
    Place, checkpoints, children, events, fields, named, signal, until, until_event,
};
use crate::program::{BENCH, assert_equal, files, text};
use crate::tiny;

#[test]
fn killed_at_random_moments_it_leaves_the_records_of_an_undisturbed_run() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ci/kill-test.sh");
    let output =
        Command::new("bash").arg(script).args(["8", "7"]).env("PE_BENCH", BENCH).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("kill test passed: 8 disturbances"), "{}", text(&output));
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
fn a_sweep_goes_on_when_a_build_replaces_its_program() {
    let place = Place::new(4);
    // A link in the folder of the program, because other file systems take none.
    let folder = tempfile::tempdir_in(Path::new(BENCH).parent().unwrap()).unwrap();
    let program = folder.path().join("pe-bench");
    fs::hard_link(BENCH, &program).unwrap();
    let mut command = Command::new(&program);
    command.arg("run").arg(place.suite()).arg("--out").arg(place.out("a"));
    let sweep = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    fs::remove_file(&program).unwrap();
    let output = sweep.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(files(&place.out("a").join("cells")).len(), 2);
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
fn a_worker_killed_from_outside_goes_on_and_after_three_deaths_waits_to_be_retried() {
    let place = Place::new(10_000);
    let out = place.out("killed");
    let often = ["--jobs", "1", "--checkpoint-seconds", "0.05", "--encodings", "rope", "--json"];
    let kill_worker = |sweep: u32, before: &[PathBuf]| {
        until("a worker keeps a checkpoint of its own", || {
            !children(sweep).is_empty()
                && !checkpoints(&out).is_empty()
                && checkpoints(&out) != before
        });
        signal("KILL", children(sweep)[0]);
    };
    // Twice: the same sweep goes on each time, and ends with the result.
    let sweep = place.start(&out, &[&often[..], &["--force"]].concat());
    kill_worker(sweep.id(), &[]);
    kill_worker(sweep.id(), &checkpoints(&out));
    let output = sweep.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let seen = events(&output);
    assert_eq!(named(&seen, "resumed").len(), 2, "{}", text(&output));
    let troubles = named(&seen, "trouble");
    assert!(troubles.len() >= 2, "{troubles:?}");
    for (trouble, death) in
        troubles.iter().zip(["failure 1 of at most 3", "failure 2 of at most 3"])
    {
        let said = trouble["text"].as_str().unwrap();
        assert!(said.contains("SIGKILL") && said.contains(death), "{said}");
    }
    assert!(!out.join("checkpoints").exists());
    let undisturbed = place.out("undisturbed");
    assert!(place.run(&undisturbed, &["--encodings", "rope"]).status.success());
    assert_equal(&out, &undisturbed);

    // Deaths are counted over sweeps; the third is the cell's end until it is asked for again.
    fs::remove_dir_all(&out).unwrap();
    for death in 1..=3 {
        let mut sweep = place.start(&out, &often);
        kill_worker(sweep.id(), &checkpoints(&out));
        if death < 3 {
            let count = death.to_string();
            until("the death is noted", || {
                let cells = files(&out.join("checkpoints"));
                cells
                    .iter()
                    .any(|cell| fs::read_to_string(cell.join("deaths")).is_ok_and(|n| n == count))
            });
            sweep.kill().unwrap();
            sweep.wait().unwrap();
            continue;
        }
        let output = sweep.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        let seen = events(&output);
        assert_eq!(named(&seen, "ended")[0]["status"], "failed", "{}", text(&output));
        assert!(text(&output).contains("failure 3 of at most 3"), "{}", text(&output));
    }
    let (seen, output) = place.events(&out, &["--encodings", "rope"]);
    assert_eq!((output.status.code(), named(&seen, "began").len()), (Some(1), 0));
    assert!(!checkpoints(&out).is_empty());
    let (seen, output) = place.events(&out, &["--encodings", "rope", "--retry", "failed"]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(named(&seen, "resumed").len(), 1);
    assert_equal(&out, &undisturbed);
}

#[test]
fn term_hup_and_usr1_keep_a_checkpoint_and_give_the_claim_back() {
    let place = Place::new(1_000_000);
    let seldom = ["--jobs", "1", "--checkpoint-seconds", "1000", "--encodings", "rope", "--json"];
    // Under `nohup` SIGHUP is ignored, which children inherit. A handler of this process becomes their default.
    signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::<AtomicBool>::default()).unwrap();
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

#[test]
fn processes_that_speed_and_generate_start_end_with_them() {
    let folder = tempfile::tempdir().unwrap();
    tiny::copy_to(folder.path(), &tiny::numbered(tiny::WORDS));
    let model = folder.path().to_str().unwrap();
    let speed = ["speed", "--encodings", "nope", "--steps", "10000000", "--dim", "16"];
    let generate = ["generate", model, "--speed", "--prefill", "8", "--rounds", "10000000"];
    for arguments in [&speed[..], &generate] {
        for name in ["TERM", "KILL"] {
            let mut parent = Command::new(BENCH);
            let mut parent = parent.args(arguments).stdout(Stdio::null()).spawn().unwrap();
            until("its process runs", || !children(parent.id()).is_empty());
            let child = children(parent.id())[0];
            signal(name, parent.id());
            parent.wait().unwrap();
            until("its process ends", || fields(child).is_none_or(|[state, _]| state == "Z"));
        }
    }
}
