//! Byte pairs learned from the training part and stored in the cache folder.

use std::path::Path;

use sha2::{Digest, Sha256};
use tokenizers::TokenizerBuilder;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use super::Tokenizer as _;
use super::error::TokenizerError;
use super::hub::HubTokenizer;
use crate::data::{Part, Parts};
use crate::files::{hex, replace_file, sha256_hex};

/// Version of the merges; raised when the same text and size give other ones.
const VERSION: u32 = 1;
/// Vocabulary size with one merge.
const LEAST: u32 = 257;
/// Vocabulary size beyond any in use.
const MOST: u32 = 1 << 20;

/// Returns a tokenizer of `size` tokens learned from the training part, from the cache folder if it is there.
///
/// Byte pair encoding (Sennrich et al. 2016) over bytes, within GPT-2's pre-tokens. The same text gives the same
/// tokens on every machine: pairs of equal count are merged in the order of their ids.
///
/// The note reports that a stored tokenizer was damaged and has been learned again.
pub(super) fn learned(
    parts: &Parts,
    size: u32,
    cache: &Path,
) -> Result<(HubTokenizer, Option<String>), TokenizerError> {
    if !(LEAST..=MOST).contains(&size) {
        return Err(TokenizerError::Size { size, least: LEAST, most: MOST });
    }
    let mut hasher = Sha256::new_with_prefix(format!("bpe {VERSION}\n{size}\n"));
    for text in parts.texts(Part::Train) {
        hasher.update(format!("{}\n", text.len()));
        hasher.update(text);
    }
    let key = hex(&hasher.finalize());
    let path = cache.join("tokenizers").join(format!("{}.bpe", &key[..32]));
    let stored = std::fs::read(&path).ok();
    if let Some(tokenizer) = stored.as_deref().and_then(unsealed) {
        return Ok((tokenizer, None));
    }
    let json = learn(parts, size)?;
    let tokenizer = HubTokenizer::from_json(json.as_bytes());
    let tokenizer = tokenizer.map_err(|why| TokenizerError::Learn { why })?;
    if tokenizer.vocab_size() != size as usize {
        return Err(TokenizerError::TooFewPairs { size, found: tokenizer.vocab_size() });
    }
    replace_file(&path, sealed(&json).as_bytes())?;
    let note = format!("{}: damaged, so the byte pairs were learned again", path.display());
    Ok((tokenizer, stored.map(|_| note)))
}

/// Returns a byte-level `tokenizer.json` with the merges that the training part gives.
fn learn(parts: &Parts, size: u32) -> Result<String, TokenizerError> {
    let mut trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(size as usize)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build();
    let byte_level = ByteLevel::new(false, false, true);
    let tokenizer = TokenizerBuilder::default()
        .with_model(BPE::default())
        .with_normalizer(None::<NFC>)
        .with_pre_tokenizer(Some(byte_level))
        .with_post_processor(Some(byte_level))
        .with_decoder(Some(byte_level))
        .build();
    let texts = parts.texts(Part::Train).flat_map(super::gpt2::pieces);
    // The trainer sends its texts to other threads.
    let texts = texts.collect::<Vec<_>>();
    let json = tokenizer.and_then(|mut tokenizer| {
        tokenizer.train(&mut trainer, texts.into_iter())?.to_string(false)
    });
    json.map_err(|error| TokenizerError::Learn { why: error.to_string() })
}

/// Prefixes a text with its hash.
fn sealed(json: &str) -> String {
    format!("{}\n{json}", sha256_hex(json.as_bytes()))
}

fn unsealed(bytes: &[u8]) -> Option<HubTokenizer> {
    let (hash, json) = bytes.split_at_checked(64)?;
    let json = json.strip_prefix(b"\n")?;
    let whole = sha256_hex(json).as_bytes() == hash;
    if whole { HubTokenizer::from_json(json).ok() } else { None }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::TextDocument;

    /// Returns a `tokenizer.json` with the learned merges.
    pub(crate) fn learned_json(parts: &Parts, size: u32) -> String {
        learn(parts, size).unwrap()
    }

    fn training(text: String) -> Parts {
        Parts::new(vec![(Part::Train, TextDocument { name: String::new(), text })])
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

        /// With few letters, equal counts, overlaps and tokens from several pairs are common. The library counts in hash
        /// maps that are seeded anew each time.
        #[test]
        fn the_same_text_gives_the_same_merges_every_time(
            text in "([ab]{1,12}|[abc]{1,30}|[a-d ]{1,60}|(abab|aab|baa){1,9}|\\PC{1,20})( ([ab]{1,8}|[a-c]{1,9}|é{1,5}|a{1,40})){0,30}",
            size in 257_u32..400,
        ) {
            let parts = training(text);
            prop_assert_eq!(learn(&parts, size).unwrap(), learn(&parts, size).unwrap());
        }
    }

    /// Merges of the version of this module; other ones need another [`VERSION`].
    #[test]
    fn merges_of_sentences_are_those_of_this_version() {
        let parts = training(crate::testing::harbour_text());
        let hashes = [257, 700, 5000]
            .map(|size| sha256_hex(learn(&parts, size).unwrap().as_bytes())[..16].to_owned());
        assert_eq!(hashes, ["5b78ebaa45f79b45", "7beacf586aa698cc", "7beacf586aa698cc"]);
    }
}
