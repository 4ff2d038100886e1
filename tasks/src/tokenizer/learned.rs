//! Byte pairs learned from the training part, and kept.

use std::path::Path;

use sha2::{Digest, Sha256};
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{Model as _, TokenizerBuilder};

use super::{HubTokenizer, TokenizerError};
use crate::corpus::{hex, sha256_hex};
use crate::data::{Part, Parts};
use crate::tokens::replace_file;

/// Goes up when the same text and size give other merges.
const VERSION: u32 = 1;
/// The bytes and one pair.
const LEAST: u32 = 257;
/// Beyond any vocabulary in use.
const MOST: u32 = 1 << 20;

/// Learns `size` tokens from the training part, or finds what was learned from the same text before.
///
/// Byte pair encoding (Sennrich et al. 2016) over bytes, within GPT-2's pre-tokens. The same text gives the same
/// tokens on every machine: pairs of equal count are taken in the order of their ids.
///
/// The note says that what was kept was damaged and has been learned again.
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
    let kept = std::fs::read(&path).ok();
    if let Some(tokenizer) = kept.as_deref().and_then(unsealed) {
        return Ok((tokenizer, None));
    }
    let json = learn(parts, size)?;
    let tokenizer = HubTokenizer::from_json(json.as_bytes());
    let tokenizer = tokenizer.map_err(|why| TokenizerError::Learn { why })?;
    if tokenizer.vocabulary() != size as usize {
        return Err(TokenizerError::TooFewPairs { size, found: tokenizer.vocabulary() });
    }
    replace_file(&path, sealed(&json).as_bytes())
        .map_err(|(action, path, source)| TokenizerError::Io { action, path, source })?;
    let note = format!("{}: damaged, so the byte pairs were learned again", path.display());
    Ok((tokenizer, kept.map(|_| note)))
}

fn learn(parts: &Parts, size: u32) -> Result<String, TokenizerError> {
    let failed = |error: tokenizers::Error| TokenizerError::Learn { why: error.to_string() };
    let byte_level = ByteLevel::new(false, false, true);
    let mut tokenizer = TokenizerBuilder::default()
        .with_model(BPE::default())
        .with_normalizer(None::<NFC>)
        .with_pre_tokenizer(Some(byte_level))
        .with_post_processor(Some(byte_level))
        .with_decoder(Some(byte_level))
        .build()
        .map_err(failed)?;
    let mut trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(size as usize)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build();
    let texts = parts.texts(Part::Train).flat_map(super::pieces::pieces);
    // The trainer wants to send its texts to other threads.
    let texts: Vec<&str> = texts.collect();
    tokenizer.train(&mut trainer, texts.into_iter()).map_err(failed)?;
    debug_assert!(tokenizer.get_model().get_vocab_size() <= size as usize);
    tokenizer.to_string(false).map_err(failed)
}

/// A file that knows its own hash.
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
    use super::*;

    /// What is learned, as the text of a `tokenizer.json`.
    pub(crate) fn learned_json(parts: &Parts, size: u32) -> String {
        learn(parts, size).unwrap()
    }
}
