//! Tests of downloading data sets, with a client in memory; with the real one and a local server where it is built
//! in.

use std::cell::{Cell, RefCell};

use tempfile::TempDir;

use super::*;
use crate::data::Part;
use crate::hash::sha256_hex;

const FILES: [(&str, &str); 4] = [
    ("data/train-0.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n"),
    ("data/train-1.jsonl", "{\"text\": \"three\"}\n"),
    ("data/validation-0.jsonl", "{\"text\": \"four\"}\n"),
    ("README.md", "about"),
];

fn set() -> DataSet {
    "hf:owner/name".parse().unwrap()
}

/// In-memory replacement of the hub.
struct StandIn<'a> {
    folder: PathBuf,
    files: &'a BTreeMap<&'a str, &'a str>,
    /// File that fails, and how it fails.
    fault: Option<(&'static str, Fault)>,
    asked: &'a RefCell<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Fails,
    Cut,
    OtherBytes,
}

impl Client for StandIn<'_> {
    fn list(&self, set: &DataSet) -> Result<Listing, String> {
        self.asked.borrow_mut().push(format!("{} at {}", set.repository(), set.revision()));
        let files = self.files.keys().map(|file| (*file).to_owned()).collect();
        Ok(Listing { commit: "c0ffee".to_owned(), files })
    }

    fn download(&self, _set: &DataSet, commit: &str, file: &str) -> Result<Download, String> {
        self.asked.borrow_mut().push(format!("{file} at {commit}"));
        let text = self.files[file];
        let fault = self.fault.filter(|(with, _)| *with == file).map(|(_, fault)| fault);
        let arrived = match fault {
            None => text.to_owned(),
            Some(Fault::Fails) => return Err("no route to host".to_owned()),
            Some(Fault::Cut) => text[..text.len() - 1].to_owned(),
            Some(Fault::OtherBytes) => text.replace('e', "3"),
        };
        let path = self.folder.join(sha256_hex(text.as_bytes()));
        fs::write(&path, arrived).unwrap();
        Ok(Download { path, bytes: text.len() as u64, sha256: Some(sha256_hex(text.as_bytes())) })
    }
}

/// Fetches into `cache`; also returns the requests that the hub received.
fn fetched(
    cache: &Path,
    fault: Option<(&'static str, Fault)>,
) -> (Result<PathBuf, HubError>, Vec<String>) {
    let (files, asked) = (BTreeMap::from(FILES), RefCell::default());
    let client = |work: &Path| {
        Ok(StandIn { folder: work.to_path_buf(), files: &files, fault, asked: &asked })
    };
    let path = fetch_into(&set(), cache, client, &mut |_| ());
    (path, asked.into_inner())
}

/// Number of entries in the folder of data sets.
fn entries(cache: &Path) -> usize {
    fs::read_dir(hub_in(cache)).unwrap().count()
}

#[test]
fn what_is_brought_reads_as_any_folder_and_is_found_again_without_the_network() {
    let cache = TempDir::new().unwrap();
    let (path, asked) = fetched(cache.path(), None);
    let path = path.unwrap();
    let files = ["data/train-0.jsonl", "data/train-1.jsonl", "data/validation-0.jsonl"];
    assert_eq!(asked[0], "owner/name at main");
    assert_eq!(asked[1..], files.map(|file| format!("{file} at c0ffee")));
    let parts = crate::data::read(&path, None).unwrap();
    assert_eq!(parts.texts(Part::Train).collect::<Vec<_>>(), ["one", "two", "three"]);
    assert_eq!(parts.texts(Part::Validation).collect::<Vec<_>>(), ["four"]);
    let (again, asked) = fetched(cache.path(), None);
    assert_eq!((again.unwrap(), asked.len()), (path, 0));
    assert_eq!(entries(cache.path()), 1);
}

#[test]
fn a_part_for_training_alone_is_cut_by_number_and_a_file_is_read_by_itself() {
    let cache = TempDir::new().unwrap();
    let files = BTreeMap::from([("train.txt", "abcdefghij"), ("test.txt", "other")]);
    let asked = RefCell::default();
    let client = |work: &Path| {
        Ok(StandIn { folder: work.to_path_buf(), files: &files, fault: None, asked: &asked })
    };
    for name in ["hf:owner/name", "hf:owner/name/train.txt"] {
        let set = name.parse().unwrap();
        let path = fetch_into(&set, cache.path(), client, &mut |_| ()).unwrap();
        let parts = crate::data::read(&path, None).unwrap();
        assert_eq!(parts.texts(Part::Train).collect::<Vec<_>>(), ["abcdefghi"], "{name}");
        assert_eq!(parts.texts(Part::Validation).collect::<Vec<_>>(), ["j"], "{name}");
    }
    assert_eq!(entries(cache.path()), 2);
}

#[test]
fn incomplete_downloads_leave_nothing() {
    let cache = TempDir::new().unwrap();
    let second = "data/train-1.jsonl";
    for (fault, why) in [
        (Fault::Fails, "no route to host"),
        (Fault::Cut, "17 bytes, expected 18"),
        (Fault::OtherBytes, "sha256 is "),
    ] {
        let (result, _) = fetched(cache.path(), Some((second, fault)));
        let said = result.unwrap_err().to_string();
        assert!(said.contains(why) && said.contains(second), "{said}");
        assert!(said.contains("hf:owner/name"), "{said}");
        assert_eq!(entries(cache.path()), 0);
    }
}

#[test]
fn what_is_damaged_is_named_and_brought_again() {
    let cache = TempDir::new().unwrap();
    let whole = fetched(cache.path(), None).0.unwrap();
    let place = place(&set(), cache.path());
    assert_eq!(manifest::find(&set(), &place).unwrap(), whole);
    let file = manifest::file_in(&place, FILES[1].0);
    let manifest = place.join(".brought.json");
    let damages: [&dyn Fn(); 4] = [
        &|| fs::write(&file, "damaged").unwrap(),
        &|| fs::remove_file(&file).unwrap(),
        &|| fs::write(&manifest, "{\"set\": 3}").unwrap(),
        &|| fs::remove_file(&manifest).unwrap(),
    ];
    for damage in damages {
        damage();
        let error = manifest::find(&set(), &place).unwrap_err();
        assert!(matches!(error, HubError::Damaged { .. }), "{error}");
        // A data set that cannot be repaired stays as it is.
        fetched(cache.path(), Some((FILES[0].0, Fault::Fails))).0.unwrap_err();
        assert!(manifest::find(&set(), &place).is_err() && place.exists());
        assert_eq!(fetched(cache.path(), None).0.unwrap(), whole);
        manifest::find(&set(), &place).unwrap();
        assert_eq!(entries(cache.path()), 1);
    }
    let absent = manifest::find(&set(), &cache.path().join("nowhere")).unwrap_err().to_string();
    assert!(absent.contains("pe-bench data fetch hf:owner/name"), "{absent}");
}

#[test]
fn of_many_fetches_at_once_all_succeed() {
    let cache = TempDir::new().unwrap();
    std::thread::scope(|scope| {
        let fetches = (0..6).map(|_| scope.spawn(|| fetched(cache.path(), None).0.unwrap()));
        let fetches = fetches.collect::<Vec<_>>();
        for fetch in fetches {
            crate::data::read(&fetch.join().unwrap(), None).unwrap();
        }
    });
    assert_eq!(entries(cache.path()), 1);
}

#[test]
fn a_cache_that_cannot_be_made_is_named() {
    let cache = TempDir::new().unwrap();
    let file = cache.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let said = fetched(&file, None).0.unwrap_err().to_string();
    assert!(said.starts_with("cannot create the folder") && said.contains("hub"), "{said}");
}

#[test]
fn downloads_are_reported() {
    let cache = TempDir::new().unwrap();
    let (files, asked, lines) = (BTreeMap::from(FILES), RefCell::default(), Cell::new(0));
    let client = |work: &Path| {
        Ok(StandIn { folder: work.to_path_buf(), files: &files, fault: None, asked: &asked })
    };
    let mut said = String::new();
    fetch_into(&set(), cache.path(), client, &mut |line| {
        lines.set(lines.get() + 1);
        said.push_str(line);
    })
    .unwrap();
    assert_eq!(lines.get(), 4);
    assert!(said.contains("3 files at commit c0ffee, 1 ignored"), "{said}");
}

#[cfg(not(feature = "hub"))]
#[test]
fn without_the_client_it_says_how_to_build_it_and_leaves_nothing() {
    let cache = TempDir::new().unwrap();
    let error = fetch_into(&set(), cache.path(), client, &mut |_| ()).unwrap_err();
    assert!(matches!(error, HubError::NotBuilt), "{error}");
    let said = error.to_string();
    assert!(said.contains("--features hub") && said.contains("--data PATH"), "{said}");
    assert_eq!(entries(cache.path()), 0);
    let whole = fetched(cache.path(), None).0.unwrap();
    assert_eq!(fetch_into(&set(), cache.path(), client, &mut |_| ()).unwrap(), whole);
}

#[cfg(feature = "hub")]
mod served;
