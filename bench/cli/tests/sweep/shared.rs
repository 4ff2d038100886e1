//! Several sweeps on one folder of results.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::place::{Place, checkpoints, events, named, signal, until, until_event};
use crate::program::{BENCH, files, text};

#[test]
fn two_sweeps_on_one_folder_train_no_cell_twice_and_both_report_all() {
    let place = Place::new(400);
    let suite = fs::read_to_string(place.suite()).unwrap().replace("[0]", "[0, 1, 2]");
    fs::write(place.suite(), suite).unwrap();
    let out = place.out("both");
    let sweeps = [0, 1].map(|_| place.start(&out, &["--jobs", "1", "--json"]));
    let outputs = sweeps.map(|sweep| sweep.wait_with_output().unwrap());
    let mut began = Vec::new();
    for output in &outputs {
        assert!(output.status.success(), "{}", text(output));
        let events = events(output);
        let mine = named(&events, "began").len();
        assert_eq!(mine, named(&events, "ended").len());
        assert!(mine > 0, "one of them had nothing to do");
        began.extend(named(&events, "began").iter().map(|event| event["key"].to_string()));
        assert_eq!(events.last().unwrap()["statuses"]["done"], 6);
    }
    assert_eq!(began.len(), 6, "{began:?}");
    assert_eq!(began.iter().collect::<BTreeSet<_>>().len(), 6);
    assert_eq!(files(&out.join("cells")).len(), 6);
}

#[test]
fn a_cell_that_another_sweep_runs_again_is_open_whatever_its_old_record_says() {
    let place = Place::new(1_000_000);
    let out = place.out("again");
    let first = place.run(&out, &["--encodings", "rope", "--cell-seconds", "0.01"]);
    assert_eq!(first.status.code(), Some(1), "{}", text(&first));
    let again = ["--encodings", "rope", "--retry", "timed-out"];
    let mut sweep = place.start(&out, &[&again[..], &["--json"]].concat());
    let rest = until_event(&mut sweep, "began");
    let (events, output) = place.events(&out, &[&again[..], &["--no-wait"]].concat());
    signal("TERM", sweep.id());
    rest();
    sweep.wait().unwrap();
    assert_eq!(named(&events, "held").len(), 1, "{}", text(&output));
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
    assert!(!text(&output).contains("ended with status"), "{}", text(&output));
}

#[test]
fn shards_share_the_cells_out() {
    let place = Place::new(3);
    let suite = fs::read_to_string(place.suite()).unwrap().replace("[0]", "[0, 1, 2, 3]");
    fs::write(place.suite(), suite).unwrap();
    let out = place.out("shards");
    let mut began = BTreeSet::new();
    for part in ["1/3", "2/3", "3/3"] {
        let (events, output) = place.events(&out, &["--shard", part]);
        assert!(output.status.success(), "{}", text(&output));
        for event in named(&events, "began") {
            assert!(began.insert(event["key"].to_string()), "{part} ran a cell again");
        }
    }
    assert_eq!((began.len(), files(&out.join("cells")).len()), (8, 8));
    let refused = place.run(&out, &["--shard", "4/3"]);
    assert!(text(&refused).contains("K/N"), "{}", text(&refused));
}

#[test]
fn workers_with_numbers_begin_with_different_cells_and_make_equal_records() {
    let place = Place::new(3);
    let suite = fs::read_to_string(place.suite()).unwrap().replace("[0]", "[0, 1, 2, 3]");
    fs::write(place.suite(), suite).unwrap();
    let orders = ["0", "1", "2"].map(|worker| {
        let (events, output) =
            place.events(&place.out(worker), &["--jobs", "1", "--worker", worker]);
        assert!(output.status.success(), "{}", text(&output));
        named(&events, "began").iter().map(|event| event["key"].to_string()).collect::<Vec<_>>()
    });
    let firsts = orders.iter().map(|order| &order[0]).collect::<BTreeSet<_>>();
    assert_eq!(firsts.len(), 3, "{orders:?}");
    let cells = orders.each_ref().map(|order| order.iter().collect::<BTreeSet<_>>());
    assert!(cells[0].len() == 8 && cells[1] == cells[0] && cells[2] == cells[0], "{orders:?}");
    for other in ["1", "2"] {
        let mut compare = Command::new(BENCH);
        let compare = compare.args(["records", "diff"]).args([place.out("0"), place.out(other)]);
        let output = compare.output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
    }
}

#[test]
fn claims_of_the_dead_count_for_nothing_whatever_their_date() {
    let place = Place::new(1_000_000);
    let out = place.out("dead");
    let mut sweep = place.start(&out, &["--jobs", "2", "--checkpoint-seconds", "0.1"]);
    until("both have checkpoints", || {
        let all = checkpoints(&out);
        all.iter().map(|path| path.parent()).collect::<BTreeSet<_>>().len() == 2
    });
    sweep.kill().unwrap();
    sweep.wait().unwrap();
    let claims = files(&out.join("claims"));
    let claims = claims.iter().filter(|path| path.extension().is_some_and(|e| e == "json"));
    let far = Duration::from_secs(1 << 30);
    let now = std::time::SystemTime::now();
    for (path, time) in claims.zip([now + far, now - far]) {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(time).unwrap();
    }
    // Had the claims counted, their cells would have been held for a thousand seconds.
    let more = ["--claim-seconds", "1000", "--cell-seconds", "0.01"];
    let (events, output) = place.events(&out, &more);
    assert!(named(&events, "held").is_empty(), "{}", text(&output));
    assert_eq!(named(&events, "resumed").len(), 2, "{}", text(&output));
}

#[test]
fn a_sweep_that_slept_gives_way_and_picks_up_what_the_other_made() {
    let place = Place::new(600);
    let out = place.out("slept");
    let more = ["--encodings", "rope", "--claim-seconds", "1", "--jobs", "1"];
    let sleeper = place.start(&out, &[&more[..], &["--json"]].concat());
    until("it has claimed the cell", || files(&out.join("claims")).len() == 2);
    // Whoever falls asleep with the lock in hand keeps everybody out, which is another story.
    let lock = fs::File::open(out.join("claims/.lock")).unwrap();
    lock.lock().unwrap();
    signal("STOP", sleeper.id());
    let state = format!("/proc/{}/stat", sleeper.id());
    until("it sleeps", || fs::read_to_string(&state).unwrap().contains(") T "));
    drop(lock);
    let (others, output) = place.events(&out, &more);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!((named(&others, "held").len(), named(&others, "ended").len()), (1, 1));
    let record = fs::read(files(&out.join("cells")).pop().unwrap()).unwrap();
    signal("CONT", sleeper.id());
    let output = sleeper.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let mine = events(&output);
    let lost_and_found = [named(&mine, "lost").len(), named(&mine, "picked-up").len()];
    assert_eq!((lost_and_found, named(&mine, "ended").len()), ([1, 1], 0), "{}", text(&output));
    assert!(fs::read(files(&out.join("cells")).pop().unwrap()).unwrap() == record);
}

#[test]
fn a_sweep_whose_claims_are_deleted_finishes_all_the_same() {
    let place = Place::new(2000);
    let out = place.out("deleted");
    let mut sweep = place.start(&out, &["--jobs", "1", "--claim-seconds", "2", "--json"]);
    let rest = until_event(&mut sweep, "progress");
    fs::remove_dir_all(out.join("claims")).unwrap();
    let seen = rest();
    let output = sweep.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!((named(&seen, "ended").len(), named(&seen, "lost").len()), (2, 0));
    let troubles = named(&seen, "trouble");
    assert!(troubles[0]["text"].as_str().unwrap().contains("was deleted"), "{troubles:?}");
}
