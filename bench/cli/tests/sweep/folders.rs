//! Results folders that disagree, are damaged, or cannot be written.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::Duration;

use sweep::{RetryPolicy, Shard, SweepOptions, SweepPlan, look_up_all, sweep};
use train::experiment::Budget;
use train::run::kept::{Reuse, WeightsPolicy};
use train::suite::{self, Overrides};

use crate::place::Place;
use crate::program::{BENCH, TINY, cells, files, text};

/// A path that is not UTF-8.
fn odd(within: &Path) -> PathBuf {
    within.join(OsStr::from_bytes(b"x\xff"))
}

/// Runs a command on these folders.
fn on(command: &[&str], folders: &[&Path]) -> Output {
    Command::new(BENCH).args(command).args(folders).output().unwrap()
}

#[test]
fn a_request_to_a_worker_without_a_json_form_ends_the_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let out = odd(folder.path());
    let (sender, receiver) = channel();
    // A sweep that waits forever must not keep the test waiting.
    std::thread::spawn(move || {
        let suite = suite::parse("tiny", TINY, &Overrides::default()).unwrap();
        let plan = SweepPlan::new(suite).unwrap();
        let options = SweepOptions {
            out: out.clone(),
            jobs: 1,
            threads: 1,
            retry: RetryPolicy::default(),
            shard: Shard::WHOLE,
            worker: None,
            budget: Budget::default(),
            weights: WeightsPolicy { results: out, keep: None, reuse: Reuse::Never },
            checkpoint_seconds: 60.0,
            claim_seconds: 60.0,
            packed: analysis::folder::packed_only,
            wait: true,
            data_parallel: 1,
            devices: Vec::new().into(),
        };
        let found = look_up_all(&plan, &options.out, &options.retry, options.packed);
        let seconds = vec![0.0; plan.cells.len()];
        let stop = AtomicBool::new(false);
        let swept = sweep(&plan, &options, &found, &seconds, &stop, &mut |_| {});
        sender.send(swept.map(drop).map_err(|error| error.to_string())).unwrap();
    });
    let error = receiver.recv_timeout(Duration::from_mins(1)).expect("the sweep ends").unwrap_err();
    assert!(error.contains("cannot be written as JSON"), "{error}");
}

#[test]
fn an_argument_that_is_not_utf8_is_one_clear_error() {
    let place = Place::new(5);
    let out = odd(place.suite().parent().unwrap());
    for arguments in [
        vec![OsStr::new("run"), place.suite().as_os_str(), OsStr::new("--out"), out.as_os_str()],
        vec![OsStr::new("status"), OsStr::new("--json"), out.as_os_str()],
        vec![OsStr::new("report"), out.as_os_str()],
    ] {
        let output = Command::new(BENCH).args(&arguments).output().unwrap();
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(r#"x\xFF" is not UTF-8"#) && said.lines().count() == 1, "{said}");
    }
    assert!(!out.exists());
}

#[test]
fn different_results_of_a_cell_are_a_conflict_in_every_command() {
    let place = Place::new(5);
    let [a, b, all] = ["a", "b", "all"].map(|name| place.out(name));
    let run = place.run(&a, &["--keep-weights", "last"]);
    assert!(run.status.success(), "{}", text(&run));
    let copied = Command::new("cp").arg("-r").args([&a, &b]).status().unwrap();
    assert!(copied.success());
    let records = analysis::folder::read_dir(&b).unwrap();
    let key = records[0].key.clone();
    let both = [a.as_path(), &b];
    let of_cell = |command: &str| {
        let folders =
            [OsStr::new("--results"), a.as_os_str(), OsStr::new("--results"), b.as_os_str()];
        let page = place.out("page");
        let mut run = Command::new(BENCH);
        run.args([command, &key]).args(folders);
        if command == "inspect" {
            run.arg("--out").arg(page);
        }
        run.output().unwrap()
    };
    let report = place.out("report").display().to_string();
    let each = || {
        [
            ("report", on(&["report", "--out", &report], &both)),
            ("compare", on(&["compare", "rope", "alibi"], &both)),
            ("table", on(&["table"], &both)),
            ("reproduce", on(&["reproduce"], &both)),
            ("inspect", of_cell("inspect")),
            ("stability", of_cell("stability")),
        ]
    };
    // The same results in both are one result.
    for (command, output) in each() {
        assert!(output.status.success(), "{command}: {}", text(&output));
    }
    let mut changed = records[0].clone();
    changed.train.final_loss = Some(0.25);
    changed.write(&b).unwrap();
    let merged = Command::new(BENCH)
        .args(["records", "merge"])
        .args(both)
        .arg("--out")
        .arg(&all)
        .output()
        .unwrap();
    let words = format!(
        "{} and {} have different results of the cell {key}: {key}.train.final_loss: ",
        a.display(),
        b.display()
    );
    for (command, output) in each().into_iter().chain([("merge", merged)]) {
        assert_eq!(output.status.code(), Some(1), "{command}: {}", text(&output));
        assert!(text(&output).contains(&words), "{command}: {}", text(&output));
    }
    // A failure is no result, and a result elsewhere takes its place.
    let reason = "out of luck".to_owned();
    changed.status = records::Status::Failed { reason };
    changed.write(&b).unwrap();
    let compared = on(&["compare", "rope", "alibi"], &both);
    assert!(!text(&compared).contains("different results"), "{}", text(&compared));
}

#[test]
fn damaged_packed_records_hide_no_others_and_the_advice_helps() {
    let place = Place::new(5);
    let [good, bad] = ["good", "bad"].map(|name| place.out(name));
    assert!(place.run(&good, &[]).status.success());
    assert!(place.run(&bad, &["--no-report"]).status.success());
    assert!(on(&["records", "pack"], &[&bad]).status.success());
    fs::remove_dir_all(bad.join("cells")).unwrap();
    let packed = bad.join("records.parquet");
    let whole = fs::read(&packed).unwrap();
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 40].fill(0xff);
    fs::write(&packed, damaged).unwrap();

    let both = [good.as_path(), &bad];
    let report = place.out("report").display().to_string();
    for (command, shown) in [
        (&["report", "--out", &report][..], "Report: "),
        (&["compare", "rope", "alibi"], "rope minus alibi"),
        (&["table"], "| rope"),
    ] {
        let output = on(command, &both);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {said}");
        assert!(said.contains("records.parquet is damaged"), "{command:?}: {said}");
        assert!(said.to_lowercase().contains(&shown.to_lowercase()), "{command:?}: {said}");
        assert!(!said.contains("panicked"), "{command:?}: {said}");
    }
    let status = on(&["status"], &[&bad]);
    assert!(text(&status).contains("records.parquet is damaged"), "{}", text(&status));
    // Also without a plan beside it, as it is kept in a repository.
    fs::rename(bad.join("plan.json"), bad.join("plan")).unwrap();
    let status = on(&["status"], &[&bad]);
    assert!(text(&status).contains("records.parquet is damaged"), "{}", text(&status));
    for options in [&[][..], &["--encodings", "rope"]] {
        let run = place.run(&bad, options);
        let said = text(&run);
        assert_eq!(run.status.code(), Some(1));
        assert!(said.contains("move the file away; `run` then computes its cells again"), "{said}");
        assert_eq!(said.matches("records.parquet").count(), 1, "{said}");
    }
    fs::remove_file(&packed).unwrap();
    assert!(place.run(&bad, &[]).status.success());
}

#[test]
fn different_results_in_the_files_and_the_pack_of_a_folder_are_a_conflict() {
    let place = Place::new(5);
    let [one, all] = ["one", "all"].map(|name| place.out(name));
    assert!(place.run(&one, &[]).status.success());
    assert!(on(&["records", "pack"], &[&one]).status.success());
    let report = place.out("report").display().to_string();
    let merged = all.display().to_string();
    let each = || {
        [
            &["report", "--out", &report][..],
            &["compare", "rope", "alibi"],
            &["table"],
            &["reproduce"],
            &["records", "merge", "--out", &merged],
            &["records", "pack"],
            &["records", "diff", one.to_str().unwrap()],
            &["status"],
        ]
        .map(|command| (command.join(" "), on(command, &[&one])))
        .into_iter()
        .chain(
            [&["--no-report"][..], &["--dry-run"]]
                .map(|more| (format!("run {}", more.join(" ")), place.run(&one, more))),
        )
    };
    for (command, output) in each() {
        assert!(output.status.success(), "{command}: {}", text(&output));
    }
    let mut changed = analysis::folder::read_dir(&one).unwrap().remove(0);
    changed.train.final_loss = Some(0.25);
    changed.write(&one).unwrap();
    let [cells, pack] = ["cells", "records.parquet"].map(|name| one.join(name));
    let words = format!(
        "{} and {} have different results of the cell {}",
        cells.display(),
        pack.display(),
        changed.key
    );
    for (command, output) in each() {
        assert_eq!(output.status.code(), Some(1), "{command}: {}", text(&output));
        assert!(text(&output).contains(&words), "{command}: {}", text(&output));
    }
}

#[test]
fn damaged_packed_records_stop_nothing_that_files_suffice_for() {
    let place = Place::new(5);
    let [one, other] = ["one", "other"].map(|name| place.out(name));
    assert!(place.run(&one, &["--keep-weights", "last"]).status.success());
    assert!(on(&["records", "pack"], &[&one]).status.success());
    fs::write(one.join("records.parquet"), "damaged").unwrap();
    let folder = one.to_str().unwrap();
    let said_by = |output: &Output, code: i32, shown: &str| {
        let said = text(output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains("records.parquet is damaged"), "{said}");
        assert!(said.contains(shown), "{said}");
    };
    said_by(&place.run(&one, &["--no-report"]), 0, "of them with a record");
    let evaluated = on(&["eval", "--no-report", "--out", other.to_str().unwrap()], &[&one]);
    said_by(&evaluated, 0, "leaves out records that cannot be read");
    let compared = on(&["records", "diff", folder], &[&one]);
    said_by(&compared, 1, "records are equal apart from timings");
    let night = on(&["nightly", "--baseline", folder], &[&one]);
    said_by(&night, 1, "left out of the verdict");
    // Packing would replace the damaged file.
    let packed = on(&["records", "pack"], &[&one]);
    said_by(&packed, 1, "restore a good copy");
    assert_eq!(fs::read(one.join("records.parquet")).unwrap(), b"damaged");
    // A cell without a file may be in the pack.
    let cell = fs::read_dir(one.join("cells")).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(&cell).unwrap();
    said_by(&place.run(&one, &["--no-report"]), 1, "move the file away");
    assert!(!cell.exists());
    said_by(&place.run(&one, &["--no-report", "--force"]), 0, "");
    assert!(cell.exists());
}

#[test]
fn files_of_a_folder_that_cannot_be_used_are_named() {
    let place = Place::new(5);
    let out = place.out("out");
    assert!(place.run(&out, &[]).status.success());
    fs::write(out.join("report.json"), b"{\"title\": \"\xff\"}").unwrap();
    let report = on(&["report"], &[&out]);
    let named = out.join("report.json").display().to_string();
    assert!(text(&report).contains(&named), "{}", text(&report));

    let looped = place.out("looped");
    fs::create_dir(&looped).unwrap();
    std::os::unix::fs::symlink("cells", looped.join("cells")).unwrap();
    let run = place.run(&looped, &[]);
    let said = text(&run);
    let cells = looped.join("cells").display().to_string();
    assert!(
        said.contains(&format!("{cells} is a file, or a link that leads to no folder")),
        "{said}"
    );
}

#[test]
fn a_damaged_record_is_told_once() {
    let place = Place::new(5);
    let out = place.out("out");
    assert!(place.run(&out, &[]).status.success());
    let record = &files(&out.join("cells"))[0];
    fs::write(record, "{").unwrap();
    let run = place.run(&out, &[]);
    assert_eq!(run.status.code(), Some(1));
    let said = text(&run);
    assert_eq!(said.matches(record.to_str().unwrap()).count(), 1, "{said}");
    assert!(said.contains("1 cell not run, because their records cannot be read"), "{said}");
    assert_eq!(cells(out.to_str().unwrap()).len(), 2);
    // Nor twice where kept records of the suite's other encodings are read as well.
    let name = record.file_stem().unwrap().to_str().unwrap();
    for encoding in ["rope", "alibi"] {
        let run = place.run(&out, &["--encodings", encoding]);
        let said = text(&run);
        assert_eq!(said.matches(name).count(), 1, "{encoding}: {said}");
    }
}
