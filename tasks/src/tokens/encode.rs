//! Encoding of documents by a tokenizer.

use crate::data::{Part, Parts};
use crate::tokenizer::{Tokenizer, TokenizerError};

/// Range of one document among the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Part of the document.
    pub(crate) part: Part,
    /// End of the document; it starts at the end of the previous one.
    pub(crate) end: usize,
    /// Size of its text in bytes.
    pub(crate) bytes: usize,
}

/// Concatenated tokens of documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Encoded {
    pub(crate) tokens: Vec<u32>,
    pub(crate) spans: Vec<Span>,
    /// Whether the bytes of the tokens add up to the text, document by document.
    pub(crate) exact: bool,
}

/// Encodes all documents.
pub(super) fn encode(parts: &Parts, tokenizer: &dyn Tokenizer) -> Result<Encoded, TokenizerError> {
    let sizes = sizes(tokenizer);
    let mut all = Encoded { tokens: Vec::new(), spans: Vec::new(), exact: sizes.is_some() };
    for (part, document) in &parts.documents {
        let start = all.tokens.len();
        tokenizer.encode(&document.text, &mut all.tokens)?;
        let bytes = document.text.len();
        if let Some(sizes) = &sizes {
            let sum: usize = all.tokens[start..].iter().map(|t| sizes[*t as usize] as usize).sum();
            all.exact &= sum == bytes;
        }
        all.spans.push(Span { part: *part, end: all.tokens.len(), bytes });
    }
    Ok(all)
}

/// Sizes of all tokens in bytes, if they do not depend on the position.
pub(crate) fn sizes(tokenizer: &dyn Tokenizer) -> Option<Vec<u32>> {
    let ids = 0..tokenizer.vocab_size() as u32;
    ids.map(|token| tokenizer.bytes(token).map(|bytes| bytes.len() as u32)).collect()
}
