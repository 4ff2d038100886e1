//! Tokenizers in the format of HuggingFace's `tokenizers`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;

use tokenizers::{
    DecoderWrapper, Encoding, ModelWrapper, PostProcessor as _, PostProcessorWrapper,
    PreTokenizerWrapper, Token,
};

use super::error::TokenizerError;
use super::gpt2::pieces;
use super::{Tokenizer, readable};
use crate::caught::caught;
use crate::files::sha256_hex;

/// Tokenizer read from a `tokenizer.json`.
pub struct HubTokenizer {
    tokenizer: tokenizers::Tokenizer,
    /// Bytes of each token; `None` if the bytes of some token depend on its position.
    bytes: Option<Vec<Vec<u8>>>,
    vocabulary: usize,
    /// Whether the tokens of a text are those of its lines.
    joins_lines: bool,
    sha256: String,
}

impl std::fmt::Debug for HubTokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubTokenizer").field("vocab_size", &self.vocabulary).finish_non_exhaustive()
    }
}

impl HubTokenizer {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// [`TokenizerError::NotATokenizer`].
    pub fn read(path: &Path) -> Result<Self, TokenizerError> {
        let json = crate::data::read_text(path).map_err(|why| TokenizerError::NotATokenizer {
            path: path.into(),
            why: why.to_string(),
        })?;
        Self::from_json(json.as_bytes())
            .map_err(|why| TokenizerError::NotATokenizer { path: path.into(), why })
    }

    /// Parses the text of a `tokenizer.json`; the error describes the fault.
    pub(super) fn from_json(json: &[u8]) -> Result<Self, String> {
        let Loaded { tokenizer, vocabulary, was_random } = loaded(json)?;
        let bytes = byte_level(&tokenizer, vocabulary);
        let joins_lines = joins_lines(&tokenizer);
        let mut hashed = json.to_vec();
        // Tokens that were cached under the hash of the file alone may be random ones.
        if was_random {
            hashed.extend(b"\nwithout sampling");
        }
        // Or those of the pieces of a text.
        if !joins_lines {
            hashed.extend(b"\nas a whole");
        }
        Ok(Self { tokenizer, bytes, vocabulary, joins_lines, sha256: sha256_hex(&hashed) })
    }
}

/// Whether a tokenizer gives two lines the tokens that it gives each of them. Tokenizers that put a blank before a text, drop
/// white space at its ends or have tokens across lines do not.
fn joins_lines(tokenizer: &tokenizers::Tokenizer) -> bool {
    let tokens = |text: &str| Some(tokenizer.encode_fast(text, false).ok()?.get_ids().to_vec());
    let (first, second) = ("a b.\n", "the c\n");
    let joined = tokens(first).zip(tokens(second)).map(|(first, second)| [first, second].concat());
    joined.is_some() && joined == tokens(&format!("{first}{second}"))
}

/// Maximum number of unused ids by which the vocabulary may exceed twice the number of used ids.
const SPARE_IDS: usize = 1024;

/// Parsed tokenizer whose tokens depend only on the text.
struct Loaded {
    tokenizer: tokenizers::Tokenizer,
    /// One more than the highest id.
    vocabulary: usize,
    /// Whether the file requests random tokens.
    was_random: bool,
}

/// Parses the text of a `tokenizer.json` such that a text always has the same tokens, and all of them.
///
/// Truncation and padding, which are for batches of short texts, are removed, and so are BPE dropout and Unigram
/// sampling, which are for training.
///
/// # Errors
/// A description of the fault: broken JSON, an unknown kind of tokenizer, an empty vocabulary, or ids so sparse that a
/// table indexed by them would be mostly empty.
pub fn load(json: &[u8]) -> Result<tokenizers::Tokenizer, String> {
    loaded(json).map(|loaded| loaded.tokenizer)
}

fn loaded(json: &[u8]) -> Result<Loaded, String> {
    // First as plain JSON, whose errors have a position.
    serde_json::from_slice::<serde::de::IgnoredAny>(json).map_err(|error| error.to_string())?;
    check_pieces(json)?;
    let mut tokenizer =
        caught(|| tokenizers::Tokenizer::from_bytes(json).map_err(|error| error.to_string()))?;
    tokenizer.with_truncation(None).map_err(|error| error.to_string())?;
    tokenizer.with_padding(None);
    let mut model = tokenizer.get_model().clone();
    let was_random = match &mut model {
        ModelWrapper::BPE(bpe) => bpe.dropout.take().is_some_and(|rate| rate > 0.0),
        ModelWrapper::Unigram(unigram) => {
            unigram.nbest_size = None;
            unigram.alpha.take().is_some_and(|alpha| alpha != 0.0)
        }
        ModelWrapper::WordPiece(_) | ModelWrapper::WordLevel(_) => false,
    };
    if was_random {
        tokenizer.with_model(model);
    }
    let ids: BTreeSet<u32> = tokenizer.get_vocab(true).into_values().collect();
    let highest = *ids.last().ok_or("its vocabulary is empty")?;
    let (vocabulary, used) = (highest as usize + 1, ids.len());
    if vocabulary > 2 * used + SPARE_IDS {
        return Err(format!(
            "it has {used} tokens with ids up to {highest}, expected ids below {}",
            2 * used + SPARE_IDS
        ));
    }
    // A template may name a special token that it does not define, on which the library panics with the first text.
    around(&tokenizer).map_err(|why| format!("its post-processor fails: {why}"))?;
    Ok(Loaded { tokenizer, vocabulary, was_random })
}

/// Special tokens that a tokenizer puts around every text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Around {
    /// Tokens before a text, such as `<s>`.
    pub before: Vec<u32>,
    /// Tokens after a text, such as `</s>`.
    pub after: Vec<u32>,
}

/// Returns the special tokens that the post-processor of a tokenizer adds.
///
/// # Errors
/// A description of the fault of the post-processor.
pub fn around(tokenizer: &tokenizers::Tokenizer) -> Result<Around, String> {
    let Some(post_processor) = tokenizer.get_post_processor() else { return Ok(Around::default()) };
    caught(|| {
        // A text of one token, whatever the vocabulary.
        let text = Encoding::from_tokens(vec![Token::new(0, "a".to_owned(), (0, 1))], 0);
        let processed = post_processor.process(text, None, true).map_err(|e| e.to_string())?;
        let (ids, special) = (processed.get_ids(), processed.get_special_tokens_mask());
        let at = special.iter().position(|special| *special == 0).ok_or("it drops the text")?;
        Ok(Around { before: ids[..at].to_vec(), after: ids[at + 1..].to_vec() })
    })
}

/// Longest piece of a Unigram vocabulary in bytes.
const LONGEST_PIECE: usize = 4096;

/// The part of a `tokenizer.json` with a Unigram model that is checked before the library reads the file.
#[derive(serde::Deserialize)]
struct UnigramFile {
    model: UnigramVocabulary,
}

#[derive(serde::Deserialize)]
struct UnigramVocabulary {
    vocab: Vec<(String, serde::de::IgnoredAny)>,
}

/// Refuses a Unigram vocabulary with a very long piece: the library copies and drops its tree of pieces by recursion, as
/// deep as the longest piece, and would overflow the stack.
fn check_pieces(json: &[u8]) -> Result<(), String> {
    let file = match serde_json::from_slice::<UnigramFile>(json) {
        Err(error) if error.to_string().contains("duplicate field") => {
            return Err(error.to_string());
        }
        // The vocabulary of every other model is a map.
        Err(_) => return Ok(()),
        Ok(file) => file,
    };
    let longest = file.model.vocab.iter().map(|(piece, _)| piece.len()).max().unwrap_or(0);
    if longest <= LONGEST_PIECE {
        return Ok(());
    }
    Err(format!("it has a piece of {longest} bytes, expected at most {LONGEST_PIECE}"))
}

/// Whether a file writes bytes as [`letters`], by what splits texts or by what joins tokens.
fn is_byte_level(tokenizer: &tokenizers::Tokenizer) -> bool {
    fn splits(part: &PreTokenizerWrapper) -> bool {
        match part {
            PreTokenizerWrapper::ByteLevel(_) => true,
            PreTokenizerWrapper::Sequence(parts) => parts.as_ref().iter().any(splits),
            _ => false,
        }
    }
    fn joins(part: &DecoderWrapper) -> bool {
        match part {
            DecoderWrapper::ByteLevel(_) => true,
            DecoderWrapper::Sequence(parts) => parts.get_decoders().iter().any(joins),
            _ => false,
        }
    }
    tokenizer.get_pre_tokenizer().is_some_and(splits) || tokenizer.get_decoder().is_some_and(joins)
}

/// Returns the bytes of all tokens of a byte-level tokenizer. Added tokens represent their own text.
fn byte_level(tokenizer: &tokenizers::Tokenizer, vocabulary: usize) -> Option<Vec<Vec<u8>>> {
    if !is_byte_level(tokenizer) {
        return None;
    }
    let added = tokenizer.get_added_tokens_decoder();
    let letters = letters();
    let of_letters = |text: &str| -> Option<Vec<u8>> {
        text.chars().map(|c| letters.iter().position(|l| *l == c).map(|byte| byte as u8)).collect()
    };
    let bytes = (0..vocabulary as u32).map(|id| match added.get(&id) {
        Some(token) => Some(token.content.clone().into_bytes()),
        // Ids that the file leaves out are never produced.
        None => tokenizer.id_to_token(id).map_or(Some(Vec::new()), |text| of_letters(&text)),
    });
    bytes.collect()
}

/// Returns the letter by which byte-level tokenizers write each byte: the byte itself if it is visible, otherwise the
/// next letter from U+0100 on (`bytes_to_unicode` of GPT-2's `encoder.py`).
pub(super) fn letters() -> [char; 256] {
    let mut hidden = 0x100..;
    std::array::from_fn(|byte| {
        let visible = matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
        let code = if visible { Some(byte as u32) } else { hidden.next() };
        code.and_then(char::from_u32).unwrap_or('?')
    })
}

impl Tokenizer for HubTokenizer {
    fn vocab_size(&self) -> usize {
        self.vocabulary
    }

    fn encode(&self, text: &str, tokens: &mut Vec<u32>) -> Result<(), TokenizerError> {
        let whole = Some(text).filter(|text| !self.joins_lines && !text.is_empty());
        let parts = pieces(text).filter(|_| self.joins_lines);
        for piece in parts.chain(whole) {
            let encoded = self.tokenizer.encode_fast(piece, false);
            let encoded = encoded.map_err(|e| TokenizerError::Encode { why: e.to_string() })?;
            tokens.extend(encoded.get_ids());
        }
        Ok(())
    }

    fn bytes(&self, token: u32) -> Option<Cow<'_, [u8]>> {
        let bytes = self.bytes.as_ref()?.get(token as usize)?;
        Some(Cow::Borrowed(bytes))
    }

    fn decode(&self, tokens: &[u32]) -> String {
        match &self.bytes {
            Some(all) => {
                let of = |token: &u32| all.get(*token as usize).map_or(&b"?"[..], Vec::as_slice);
                readable(&tokens.iter().map(of).collect::<Vec<_>>().concat())
            }
            None => self.tokenizer.decode(tokens, false).unwrap_or_else(|_| "?".to_owned()),
        }
    }

    /// Without the post-processor, which changes tokens only by adding special ones.
    fn json(&self) -> Option<String> {
        let mut tokenizer = self.tokenizer.clone();
        tokenizer.with_post_processor(None::<PostProcessorWrapper>);
        tokenizer.to_string(true).ok()
    }

    fn sha256(&self) -> String {
        self.sha256.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unigram_with_a_very_long_piece_is_refused() {
        let file = |bytes: usize| {
            let file = serde_json::json!({
                "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
                "pre_tokenizer": null, "post_processor": null, "decoder": null,
                "model": { "type": "Unigram", "unk_id": 0, "byte_fallback": false,
                    "vocab": [["<unk>", 0.0], ["a", -1.0], ["b".repeat(bytes), -2.0]] },
            });
            load(file.to_string().as_bytes())
        };
        assert!(file(100).is_ok());
        let said = file(20_000).unwrap_err();
        assert_eq!(said, "it has a piece of 20000 bytes, expected at most 4096");
    }

    /// A tokenizer that puts a blank before a text puts none into its middle.
    #[test]
    fn long_texts_have_the_tokens_of_the_whole() {
        let file = |prefix: serde_json::Value| {
            let file = serde_json::json!({
                "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": prefix,
                "pre_tokenizer": { "type": "Split", "pattern": { "String": "\n" }, "behavior": "Isolated", "invert": false },
                "post_processor": null, "decoder": null,
                "model": { "type": "BPE", "vocab": { "?": 0, "_": 1, "a": 2, "\n": 3 }, "merges": [], "unk_token": "?" },
            });
            HubTokenizer::from_json(file.to_string().as_bytes()).unwrap()
        };
        let [plain, prefixed] = [
            file(serde_json::Value::Null),
            file(serde_json::json!({ "type": "Prepend", "prepend": "_" })),
        ];
        assert_eq!([plain.joins_lines, prefixed.joins_lines], [true, false]);
        let text = "aaaaaaa\n".repeat(300_000);
        assert!(pieces(&text).count() > 2);
        let tokens = |tokenizer: &HubTokenizer| {
            let mut tokens = Vec::new();
            tokenizer.encode(&text, &mut tokens).unwrap();
            tokens
        };
        let (plain, prefixed) = (tokens(&plain), tokens(&prefixed));
        assert!(prefixed[0] == 1 && prefixed[1..] == plain);
    }

    #[test]
    fn a_byte_order_mark_changes_nothing() {
        let model =
            serde_json::json!({ "type": "WordLevel", "vocab": { "a": 0 }, "unk_token": "a" });
        let file = serde_json::json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
            "pre_tokenizer": null, "post_processor": null, "decoder": null, "model": model,
        });
        let read = |text: String| {
            let (_folder, path) = crate::testing::write_temp(text.as_bytes());
            HubTokenizer::read(&path).unwrap().sha256()
        };
        assert_eq!(read(format!("\u{feff}{file}")), read(file.to_string()));
    }

    /// Special tokens are not added to the texts of a training, so that the written file adds none either.
    #[test]
    fn a_written_tokenizer_adds_no_special_tokens() {
        let template = serde_json::json!({
            "type": "TemplateProcessing",
            "single": [{ "SpecialToken": { "id": "b", "type_id": 0 } }, { "Sequence": { "id": "A", "type_id": 0 } }],
            "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }],
            "special_tokens": { "b": { "id": "b", "ids": [1], "tokens": ["b"] } },
        });
        let file = serde_json::json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
            "pre_tokenizer": null, "post_processor": template, "decoder": null,
            "model": { "type": "WordLevel", "vocab": { "a": 0, "b": 1 }, "unk_token": "a" },
        });
        let read = HubTokenizer::from_json(file.to_string().as_bytes()).unwrap();
        let mut own = Vec::new();
        read.encode("a", &mut own).unwrap();
        let written = load(read.json().unwrap().as_bytes()).unwrap();
        let ids = written.encode_fast("a", true).unwrap().get_ids().to_vec();
        assert_eq!((&own, &ids), (&vec![0], &vec![0]));
    }

    #[test]
    fn a_template_with_an_undefined_token_is_refused() {
        let file = |defined: &str| {
            let template = serde_json::json!({
                "type": "TemplateProcessing",
                "single": [{ "SpecialToken": { "id": "a", "type_id": 0 } }, { "Sequence": { "id": "A", "type_id": 0 } }],
                "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }],
                "special_tokens": { defined: { "id": "a", "ids": [0], "tokens": ["a"] } },
            });
            let model =
                serde_json::json!({ "type": "WordLevel", "vocab": { "a": 0 }, "unk_token": "a" });
            let file = serde_json::json!({
                "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
                "pre_tokenizer": null, "post_processor": template, "decoder": null, "model": model,
            });
            load(file.to_string().as_bytes())
        };
        assert!(file("a").is_ok());
        assert!(file("at").unwrap_err().contains("its post-processor fails"));
    }

    #[test]
    fn letters_are_those_of_the_library() {
        let ours: std::collections::BTreeSet<char> = letters().into();
        let theirs = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
        assert_eq!(ours, theirs.into_iter().collect());
        // Space and line break, as every byte-level vocabulary shows them.
        assert_eq!((letters()[0x20], letters()[0x0a], letters()[0xad]), ('Ġ', 'Ċ', 'Ń'));
    }
}
