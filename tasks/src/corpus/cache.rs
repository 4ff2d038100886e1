//! Location of the cache folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Returns the folder for fetched texts, learned tokenizers and tokens.
///
/// The first of: `PE_ZOO_CACHE`; `XDG_CACHE_HOME/pe-zoo`; `HOME/.cache/pe-zoo`; `pe-zoo` in the system's folder for
/// temporary files. Empty variables count as unset.
pub fn cache_dir() -> PathBuf {
    cache_dir_from(|name| std::env::var_os(name))
}

fn cache_dir_from(var: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let folder = |name| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("PE_ZOO_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|dir| dir.join("pe-zoo")))
        .or_else(|| folder("HOME").map(|dir| dir.join(".cache/pe-zoo")))
        .unwrap_or_else(|| std::env::temp_dir().join("pe-zoo"))
}

/// Returns the folder of what is installed with this program: `share/pe-zoo` beside the folder of the program.
///
/// The Python package has a text there, because it is installed without cargo.
pub(super) fn installed_dir() -> Option<PathBuf> {
    let program = std::env::current_exe().and_then(std::fs::canonicalize).ok()?;
    Some(program.parent()?.parent()?.join("share/pe-zoo"))
}

/// Returns the folder for corpora in a cache folder.
pub(super) fn folder_in(cache: &Path) -> PathBuf {
    cache.join("corpora")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_folder_follows_the_documented_order() {
        let with = |set: &'static [(&str, &str)]| {
            cache_dir_from(|name| {
                let found = set.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| OsString::from(value))
            })
        };
        let all = with(&[("PE_ZOO_CACHE", "/p"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]);
        assert_eq!(all, Path::new("/p"));
        let empty = with(&[("PE_ZOO_CACHE", ""), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]);
        assert_eq!(empty, Path::new("/x/pe-zoo"));
        assert_eq!(with(&[("HOME", "/h")]), Path::new("/h/.cache/pe-zoo"));
        assert_eq!(with(&[]), std::env::temp_dir().join("pe-zoo"));
    }
}
