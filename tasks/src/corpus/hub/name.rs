//! Names of data sets of the hub.

use std::fmt;
use std::str::FromStr;

use super::error::HubError;
use crate::hash::sha256_hex;

/// Prefix of the names of data sets of the hub.
pub const PREFIX: &str = "hf:";

/// Default revision.
const MAIN: &str = "main";

/// Hexadecimal digits of the hash in a folder's name.
const DIGITS: usize = 12;

/// A data set of the hub, or a file or folder of it, at a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataSet {
    owner: String,
    name: String,
    path: Option<String>,
    revision: Option<String>,
}

impl DataSet {
    /// Returns the repository as `OWNER/NAME`.
    pub fn repository(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    /// The named file or folder; `None`: the whole data set.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// Returns the name of a file or folder of the same data set.
    pub(super) fn part(&self, path: &str) -> Self {
        Self { path: Some(path.to_owned()), ..self.clone() }
    }

    /// The branch, tag or commit.
    pub fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or(MAIN)
    }

    /// Returns a readable folder name that is unique to this name.
    pub(super) fn folder_name(&self) -> String {
        let hash = sha256_hex(self.to_string().as_bytes());
        format!("{}--{}--{}", self.owner, self.name, &hash[..DIGITS])
    }
}

impl fmt::Display for DataSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}/{}", self.owner, self.name)?;
        if let Some(path) = &self.path {
            write!(f, "/{path}")?;
        }
        match &self.revision {
            Some(revision) => write!(f, "@{revision}"),
            None => Ok(()),
        }
    }
}

impl FromStr for DataSet {
    type Err = HubError;

    fn from_str(text: &str) -> Result<Self, HubError> {
        let refuse = |why| Err(HubError::Name { text: text.to_owned(), why });
        let Some(rest) = text.strip_prefix(PREFIX) else {
            return refuse("it does not begin with hf:");
        };
        let (rest, revision) = match rest.split_once('@') {
            Some((rest, revision)) => (rest, Some(revision)),
            None => (rest, None),
        };
        let mut pieces = rest.splitn(3, '/');
        let (Some(owner), Some(name)) = (pieces.next(), pieces.next()) else {
            return refuse("it has no `/` between an owner and a name");
        };
        let path = pieces.next();
        if ![owner, name].into_iter().all(|word| is_plain(word) && word.chars().all(is_usual)) {
            return refuse("owner and name may have letters, digits, `-`, `_` and `.`");
        }
        if path.is_some_and(|path| !is_path(path)) {
            return refuse("its path has an empty or hidden folder, or an invalid character");
        }
        let is_revision =
            |text: &str| is_path(text) && text.chars().all(|c| is_usual(c) || c == '/');
        if revision.is_some_and(|revision| !is_revision(revision)) {
            return refuse("the text after @ is not a branch, tag or commit");
        }
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Ok(Self {
            owner: owner.to_owned(),
            name: name.to_owned(),
            path: owned(path),
            revision: owned(revision).filter(|revision| revision != MAIN),
        })
    }
}

fn is_usual(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.".contains(c)
}

/// Whether a path stays within its folder and has no hidden component.
pub(super) fn is_path(path: &str) -> bool {
    path.split('/').all(is_plain)
}

fn is_plain(word: &str) -> bool {
    !word.is_empty()
        && !word.starts_with('.')
        && !word.contains(|c: char| c == '\\' || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_they_were_and_each_has_a_folder_of_its_own() {
        let names = [
            "hf:owner/name",
            "hf:owner/name/data",
            "hf:owner/name/data/train-00000-of-00002.parquet",
            "hf:owner/name@v1.0",
            "hf:owner/name/data@refs/convert/parquet",
        ];
        let sets = names.map(|name| name.parse::<DataSet>().unwrap());
        for (at, (name, set)) in names.iter().zip(&sets).enumerate() {
            assert_eq!(set.to_string(), *name);
            assert_eq!(set.repository(), "owner/name");
            let folder = set.folder_name();
            assert!(folder.starts_with("owner--name--"), "{folder}");
            assert!(sets[..at].iter().all(|other| other.folder_name() != folder), "{folder}");
        }
        assert_eq!(
            sets.each_ref().map(|set| set.path().is_some()),
            [false, true, true, false, true]
        );
        let revisions = ["main", "main", "main", "v1.0", "refs/convert/parquet"];
        assert_eq!(sets.each_ref().map(DataSet::revision), revisions);
        assert_eq!("hf:owner/name@main".parse::<DataSet>().unwrap(), sets[0]);
    }

    #[test]
    fn what_names_none_or_leads_elsewhere_is_refused() {
        for (text, why) in [
            ("owner/name", "begin with hf:"),
            ("hf:name", "no `/`"),
            ("hf:", "no `/`"),
            ("hf:/name", "letters, digits"),
            ("hf:owner/", "letters, digits"),
            ("hf:../name", "letters, digits"),
            ("hf:owner/na me", "letters, digits"),
            ("hf:owner/name/", "its path"),
            ("hf:owner/name/../other", "its path"),
            ("hf:owner/name/a//b", "its path"),
            ("hf:owner/name/.git", "its path"),
            ("hf:owner/name/a\\b", "its path"),
            ("hf:owner/name@", "after @"),
            ("hf:owner/name@../x", "after @"),
            ("hf:owner/name@a@b", "after @"),
        ] {
            let said = text.parse::<DataSet>().unwrap_err().to_string();
            assert!(said.contains(why) && said.contains("hf:OWNER/NAME/PATH"), "{text}: {said}");
        }
    }
}
