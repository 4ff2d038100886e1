//! File format of cached tokens.
//!
//! All integers are little-endian.
//!
//! | offset | bytes | content |
//! | --- | --- | --- |
//! | 0 | 8 | `PEZOOTOK` |
//! | 8 | 4 | [`VERSION`] |
//! | 12 | 2 | bytes of a token: 2 or 4 |
//! | 14 | 2 | 1 if the bytes of the tokens are those of the text, else 0 |
//! | 16 | 8 | number of tokens |
//! | 24 | 8 | number of documents |
//! | 32 | 32 | key: hash of text, borders, tokenizer and version |
//! | 64 | 32 | SHA-256 of everything after the header |
//! | 96 | 32 | SHA-256 of the header up to here |
//! | 128 | 24 each | documents: part (0 to 2), end in tokens, size of the text |
//! | then | 2 or 4 each | tokens |

use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;
use sha2::{Digest, Sha256};

use super::map::map;
use super::{Encoded, Span};
use crate::data::Part;

const MAGIC: &[u8; 8] = b"PEZOOTOK";
/// Version of the format; also raised when the same text and tokenizer give other tokens.
pub(super) const VERSION: u32 = 1;
const HEADER: usize = 128;
const SPAN: usize = 24;

/// Tokens in a mapped file.
#[derive(Debug)]
pub(crate) struct Mapped {
    map: Mmap,
    /// Offset of the tokens in the file.
    from: usize,
    /// Number of bytes of a token.
    width: usize,
}

impl Mapped {
    pub(super) fn copy(&self, range: Range<usize>) -> Vec<u32> {
        let bytes =
            &self.map[self.from + range.start * self.width..self.from + range.end * self.width];
        if self.width == 2 {
            let (pairs, _) = bytes.as_chunks();
            pairs.iter().map(|pair| u32::from(u16::from_le_bytes(*pair))).collect()
        } else {
            let (quads, _) = bytes.as_chunks();
            quads.iter().map(|quad| u32::from_le_bytes(*quad)).collect()
        }
    }
}

/// Concatenated tokens of all documents.
#[derive(Debug)]
pub(crate) enum TokenStore {
    /// Tokens held in memory.
    Memory(Vec<u32>),
    /// Tokens in a memory-mapped file.
    Mapped(Mapped),
}

impl TokenStore {
    /// Copies a range of tokens.
    pub(crate) fn copy(&self, range: Range<usize>) -> Vec<u32> {
        match self {
            Self::Memory(tokens) => tokens[range].to_vec(),
            Self::Mapped(mapped) => mapped.copy(range),
        }
    }
}

/// Serialises tokens for a file.
pub(super) fn to_bytes(encoded: &Encoded, vocabulary: usize, key: [u8; 32]) -> Vec<u8> {
    let width: u16 = if vocabulary <= 1 << 16 { 2 } else { 4 };
    let mut body =
        Vec::with_capacity(SPAN * encoded.spans.len() + usize::from(width) * encoded.tokens.len());
    for Span { part, end, bytes } in &encoded.spans {
        let part = Part::ALL.iter().position(|known| known == part).unwrap_or(0);
        body.extend([part, *end, *bytes].iter().flat_map(|n| (*n as u64).to_le_bytes()));
    }
    for token in &encoded.tokens {
        body.extend_from_slice(&token.to_le_bytes()[..usize::from(width)]);
    }
    let mut file = Vec::with_capacity(HEADER + body.len());
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&VERSION.to_le_bytes());
    file.extend_from_slice(&width.to_le_bytes());
    file.extend_from_slice(&u16::from(encoded.exact).to_le_bytes());
    file.extend_from_slice(&(encoded.tokens.len() as u64).to_le_bytes());
    file.extend_from_slice(&(encoded.spans.len() as u64).to_le_bytes());
    file.extend_from_slice(&key);
    file.extend_from_slice(&Sha256::digest(&body));
    let of_header = Sha256::digest(&file);
    file.extend_from_slice(&of_header);
    file.extend_from_slice(&body);
    file
}

/// Content of a file: tokens, documents, and whether the bytes of the tokens are those of the text.
pub(super) type Opened = (Mapped, Vec<Span>, bool);

/// Opens and verifies a file; the error describes the fault.
pub(super) fn open(path: &Path, vocabulary: usize, key: [u8; 32]) -> Result<Opened, String> {
    let map = map(path).map_err(|error| error.to_string())?;
    let (header, body) = map.split_at_checked(HEADER).ok_or("it is shorter than its header")?;
    if header[..8] != *MAGIC {
        return Err("it is not a file of tokens".to_owned());
    }
    if header[96..] != Sha256::digest(&header[..96])[..] {
        return Err("the hash of its header is wrong".to_owned());
    }
    let number = |at: usize| header[at..at + 8].iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
    let width = usize::from(u16::from_le_bytes([header[12], header[13]]));
    let version = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    if version != VERSION || ![2, 4].contains(&width) || header[32..64] != key {
        return Err("it belongs to another version or text".to_owned());
    }
    let (tokens, documents) = (number(16), number(24));
    let expected = u128::from(tokens) * width as u128 + u128::from(documents) * SPAN as u128;
    if body.len() as u128 != expected {
        return Err(format!("it has {} bytes after its header, expected {expected}", body.len()));
    }
    if header[64..96] != Sha256::digest(body)[..] {
        return Err("the hash of its tokens is wrong".to_owned());
    }
    let (documents, rest) = body.split_at(documents as usize * SPAN);
    let spans = spans(documents, tokens)?;
    let exact = header[14] == 1;
    let from = map.len() - rest.len();
    let mapped = Mapped { map, from, width };
    // A hash does not prove that the ids are valid, and ids index tables.
    let in_vocabulary = (0..tokens as usize).step_by(1 << 16).all(|at| {
        mapped
            .copy(at..(at + (1 << 16)).min(tokens as usize))
            .iter()
            .all(|t| (*t as usize) < vocabulary)
    });
    if !in_vocabulary {
        return Err("it has tokens outside the vocabulary".to_owned());
    }
    Ok((mapped, spans, exact))
}

fn spans(bytes: &[u8], tokens: u64) -> Result<Vec<Span>, String> {
    let (numbers, _) = bytes.as_chunks::<8>();
    let mut last = 0;
    let mut spans = Vec::with_capacity(numbers.len() / 3);
    for three in numbers.chunks_exact(3) {
        let [part, end, size] = [three[0], three[1], three[2]].map(u64::from_le_bytes);
        let part = Part::ALL.get(part as usize).filter(|_| (last..=tokens).contains(&end));
        let part = *part.ok_or("its documents are out of order")?;
        spans.push(Span { part, end: end as usize, bytes: size as usize });
        last = end;
    }
    if last == tokens {
        Ok(spans)
    } else {
        Err("it has tokens outside of all documents".to_owned())
    }
}
