//! Sweeps that survive: the real program, killed, starved, damaged and run in pairs.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const BENCH: &str = env!("CARGO_BIN_EXE_pe-bench");

const SUITE: &str = r#"
name = "small"
title = "Small"
about = "For tests."
seeds = [0]
encodings = ["rope", "alibi"]
[model]
layers = 1
width = 16
[train]
steps = STEPS
batch_size = 4
len = 16
[eval]
lens = [16]
samples = 6
[[workload]]
name = "flip-flop"
task = "flip-flop"
"#;

/// A suite of two cells and a folder for results.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new(steps: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let suite = SUITE.replace("STEPS", &steps.to_string());
        fs::write(folder.path().join("small.toml"), suite).unwrap();
        Self { folder }
    }

    fn suite(&self) -> PathBuf {
        self.folder.path().join("small.toml")
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, out: &Path, more: &[&str]) -> Command {
        let mut command = Command::new(BENCH);
        command.arg("run").arg(self.suite()).arg("--out").arg(out).args(more);
        command
    }

    fn run(&self, out: &Path, more: &[&str]) -> Output {
        self.command(out, more).output().unwrap()
    }

    fn events(&self, out: &Path, more: &[&str]) -> (Vec<Value>, Output) {
        let output = self.run(out, &[&["--json"], more].concat());
        (events(&output), output)
    }

    fn start(&self, out: &Path, more: &[&str]) -> Child {
        let mut command = self.command(out, more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

fn events(output: &Output) -> Vec<Value> {
    let lines = String::from_utf8(output.stdout.clone()).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn named<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == name).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut files = entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    files.sort();
    files
}

fn checkpoints(out: &Path) -> Vec<PathBuf> {
    files(&out.join("checkpoints")).iter().flat_map(|cell| files(cell)).collect()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_mins(2), "it never came that {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// With the shell's own `kill`: a bare machine may have no program of that name.
fn signal(name: &str, pid: u32) {
    let line = format!("kill -{name} {pid}");
    assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success(), "{line}");
}

/// Living processes whose parent is `pid`, zombies not counted.
fn children(pid: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap();
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        fields(*id).is_some_and(|[state, parent]| state != "Z" && parent == pid.to_string())
    })
    .collect()
}

/// State and parent of a process.
fn fields(pid: u32) -> Option<[String; 2]> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().map(str::to_owned);
    Some([fields.next()?, fields.next()?])
}

fn assert_equal(one: &Path, other: &Path) {
    let output = Command::new(BENCH).arg("diff-records").args([one, other]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

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
fn damaged_records_are_told_left_alone_and_redone_on_request() {
    let place = Place::new(5);
    let out = place.out("damaged");
    assert!(place.run(&out, &[]).status.success());
    let records = files(&out.join("cells"));
    let whole = records.iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>();
    let truncated = whole[0][..whole[0].len() / 2].to_vec();
    let flipped =
        String::from_utf8(whole[1].clone()).unwrap().replace("\"tokens\": ", "\"tokens\": 1");
    fs::write(&records[0], &truncated).unwrap();
    fs::write(&records[1], &flipped).unwrap();
    fs::write(out.join("cells/0123456789abcdef.json"), "of another suite").unwrap();

    let (events, output) = place.events(&out, &["--seed", "0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(named(&events, "began").is_empty());
    let said = text(&output);
    for expected in ["EOF", "checksum", "--retry damaged", records[0].to_str().unwrap()] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    // A cell more: the damaged ones do not stop it.
    let (events, output) = place.events(&out, &["--seed", "0", "--seed", "1"]);
    assert_eq!((output.status.code(), named(&events, "ended").len()), (Some(1), 2));
    assert_eq!(fs::read(&records[0]).unwrap(), truncated);
    let report = Command::new(BENCH).arg("report").arg(&out).output().unwrap();
    assert_eq!(report.status.code(), Some(1));
    assert!(text(&report).contains("report.html") && text(&report).contains("checksum"));

    let (events, output) = place.events(&out, &["--seed", "0", "--retry", "damaged"]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(named(&events, "ended").len(), 2);
    let aside = |path: &Path| PathBuf::from(format!("{}.damaged", path.display()));
    assert_eq!(fs::read(aside(&records[0])).unwrap(), truncated);
    assert_eq!(fs::read(aside(&records[1])).unwrap(), flipped.as_bytes());
}

#[test]
fn ctrl_c_keeps_a_checkpoint_and_a_damaged_one_gives_way_to_the_one_before() {
    let place = Place::new(3000);
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
        begun.elapsed() > Duration::from_secs(2) && !files(&out.join("claims")).is_empty()
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
fn a_cell_out_of_time_stays_so_until_it_is_retried_and_then_goes_on() {
    let place = Place::new(1500);
    let out = place.out("time");
    let (events, output) = place.events(&out, &["--cell-seconds", "0.3"]);
    assert_eq!(output.status.code(), Some(1));
    let ended = named(&events, "ended");
    assert!(ended.iter().all(|event| event["status"] == "timed-out"), "{ended:?}");
    assert!(ended[0]["reason"].as_str().unwrap().contains("of 1500 steps"), "{ended:?}");
    assert!(text(&output).contains("--retry timed-out"), "{}", text(&output));

    let (events, output) = place.events(&out, &[]);
    assert_eq!((output.status.code(), named(&events, "began").len()), (Some(1), 0));

    let (events, output) = place.events(&out, &["--retry", "timed-out"]);
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

/// A folder on a disk of so many KiB, until it is dropped; `None`, with the reason printed, where this user
/// may not mount one.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn new(folder: &Path, kib: u32) -> Option<Self> {
        fs::create_dir_all(folder).unwrap();
        let size = format!("size={kib}k");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder).output();
        match mount {
            Ok(output) if output.status.success() => Some(Self(folder.to_owned())),
            Ok(output) => {
                eprintln!("no small disk, files are limited in size instead: {}", text(&output));
                None
            }
            Err(error) => {
                eprintln!("no small disk, files are limited in size instead: {error}");
                None
            }
        }
    }

    fn grow(&self, kib: u32) {
        let size = format!("remount,size={kib}k");
        let mount = Command::new("mount").args(["-o", &size]).arg(&self.0).output().unwrap();
        assert!(mount.status.success(), "{}", text(&mount));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

#[test]
fn on_a_full_disk_what_is_finished_is_kept_and_the_rest_goes_on_with_space() {
    let place = Place::new(150);
    let suite = fs::read_to_string(place.suite()).unwrap().replace("[0]", "[0, 1, 2]");
    fs::write(place.suite(), suite).unwrap();
    let out = place.out("disk");
    let more = ["--jobs", "1", "--checkpoint-seconds", "0.05", "--json"];
    // A record is about 7 KiB, a checkpoint more.
    let disk = SmallDisk::new(&out, 32);
    let output = if disk.is_some() {
        place.run(&out, &more)
    } else {
        // In blocks of 512 bytes; a write beyond that fails, because its signal is ignored.
        let line = "trap '' XFSZ; ulimit -f 8; exec \"$@\"";
        let mut limited = Command::new("sh");
        limited.args(["-c", line, "sh", BENCH, "run"]).arg(place.suite());
        limited.arg("--out").arg(&out).args(more).output().unwrap()
    };
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let said = text(&output);
    for expected in ["cannot write", "was not kept", "run the same command again"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let left = files(&out.join("cells"));
    assert!(left.len() < 6, "{left:?}");
    for record in &left {
        reports::RunRecord::read(record).unwrap();
    }
    if let Some(disk) = &disk {
        disk.grow(4096);
    }
    let (events, output) = place.events(&out, &[]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(events[0]["kept"], left.len());
    let undisturbed = place.out("undisturbed");
    assert!(place.run(&undisturbed, &[]).status.success());
    assert_equal(&out, &undisturbed);
}

#[test]
fn a_folder_that_cannot_be_written_is_named_before_anything_is_trained() {
    let place = Place::new(5);
    fs::write(place.out("file"), "").unwrap();
    let below_a_file = place.out("file").join("out");
    let claims_are_a_file = place.out("claims-file");
    fs::create_dir_all(&claims_are_a_file).unwrap();
    fs::write(claims_are_a_file.join("claims"), "").unwrap();
    let read_only = place.out("read-only");
    fs::create_dir_all(read_only.join("cells")).unwrap();
    fs::set_permissions(&read_only, std::os::unix::fs::PermissionsExt::from_mode(0o555)).unwrap();
    let mut folders = vec![below_a_file, claims_are_a_file];
    if fs::create_dir(read_only.join("probe")).is_ok() {
        eprintln!("this user may write everywhere: a read-only folder cannot be tried");
    } else {
        folders.push(read_only.clone());
    }
    for folder in folders {
        let output = place.run(&folder, &[]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        let said = text(&output);
        assert!(said.contains(folder.to_str().unwrap()) && said.contains("error"), "{said}");
        assert!(!said.contains("panicked"), "{said}");
    }
    fs::set_permissions(&read_only, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn claims_of_the_dead_count_for_nothing_whatever_their_date() {
    let place = Place::new(1_000_000);
    let out = place.out("dead");
    let mut sweep = place.start(&out, &["--jobs", "2", "--checkpoint-seconds", "0.1"]);
    until("both have checkpoints", || files(&out.join("checkpoints")).len() == 2);
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
fn what_is_printed_for_programs_and_for_nobody() {
    let place = Place::new(5);
    let (events, output) = place.events(&place.out("json"), &[]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!((&events[0]["event"], &events[0]["cells"]), (&"start".into(), &2.into()));
    let finish = events.last().unwrap();
    assert_eq!((&finish["event"], &finish["statuses"]["done"]), (&"finish".into(), &2.into()));
    assert!(Path::new(finish["report"].as_str().unwrap()).is_file());
    for event in &events[1..events.len() - 1] {
        for field in ["event", "key", "workload", "encoding", "seed"] {
            assert!(!event[field].is_null(), "{field}: {event}");
        }
    }
    assert!(output.stderr.is_empty(), "{}", text(&output));

    let quiet = place.run(&place.out("quiet"), &["--quiet"]);
    assert_eq!(text(&quiet).lines().count(), 1, "{}", text(&quiet));
    let plain = place.run(&place.out("plain"), &[]);
    assert!(!text(&plain).contains('\u{1b}'), "colours without a terminal");
}
