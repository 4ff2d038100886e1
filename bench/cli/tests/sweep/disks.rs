//! Disks that are full and folders that cannot be written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place::Place;
use crate::program::{BENCH, assert_equal, files, text};

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
    for expected in ["cannot write", "was not saved", "run the same command again"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let left = files(&out.join("cells"));
    assert!(left.len() < 6, "{left:?}");
    for record in &left {
        records::RunRecord::read(record).unwrap();
    }
    if let Some(disk) = &disk {
        // The page alone, with its plots, takes 5 MB.
        disk.grow(65_536);
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
fn a_limit_on_the_size_of_files_is_a_full_disk_and_no_death() {
    let place = Place::new(5);
    let out = place.out("limited");
    // In blocks of 512 bytes: less than a record has.
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 4; exec \"$@\"", "sh", BENCH, "run"]).arg(place.suite());
    let output = limited.arg("--out").arg(&out).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let said = text(&output);
    assert!(said.contains("cannot write") && said.contains("run the same command"), "{said}");
    assert!(files(&out.join("cells")).is_empty(), "{:?}", files(&out.join("cells")));

    // A report is larger than its records.
    assert!(place.run(&out, &[]).status.success());
    let report = out.join("again");
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 40; exec \"$@\"", "sh", BENCH, "report"]).arg(&out);
    let output = limited.arg("--out").arg(&report).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("File too large"), "{}", text(&output));
    let left = files(&report);
    assert!(left.iter().all(|path| path.extension().is_none_or(|e| e != "tmp")), "{left:?}");
}
