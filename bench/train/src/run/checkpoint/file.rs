//! File layout of a checkpoint: a header with key and checksum, then the content.
//!
//! | bytes | contents |
//! | --- | --- |
//! | 0..8 | `PEZOOCKP` |
//! | 8..12 | [`VERSION`], little endian |
//! | 12..28 | the cell's key, 16 hexadecimal digits |
//! | 28..36 | length of the content in bytes, little endian |
//! | 36..68 | SHA-256 of bytes 0..36 and the content |
//! | 68.. | the content, a safetensors file |

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest, Sha256};

/// Version of the layout and of the content. Other versions are not read, because a checkpoint is only kept during the
/// training of its cell.
pub const VERSION: u32 = 2;

const MAGIC: [u8; 8] = *b"PEZOOCKP";
const KEY_LEN: usize = 16;
const HASHED_HEAD: usize = 36;
const HEAD: usize = HASHED_HEAD + 32;

/// Prepends the header to the content.
pub(super) fn seal(key: &str, content: &[u8]) -> Vec<u8> {
    let header = header(key, content.len());
    [&header, &hash(&header, content)[..], content].concat()
}

/// The header up to the checksum.
fn header(key: &str, len: usize) -> Vec<u8> {
    let key: [u8; KEY_LEN] =
        std::array::from_fn(|index| key.as_bytes().get(index).copied().unwrap_or(b' '));
    [&MAGIC, &VERSION.to_le_bytes()[..], &key, &(len as u64).to_le_bytes()].concat()
}

/// Checks the header and returns the content.
///
/// # Errors
/// The first problem found.
pub(super) fn open<'a>(key: &str, bytes: &'a [u8]) -> Result<&'a [u8]> {
    let damaged_length = |expected: u64| {
        format!("it has {} bytes, expected {expected}: it was truncated or extended", bytes.len())
    };
    let (head, content) =
        bytes.split_at_checked(HEAD).with_context(|| damaged_length(HEAD as u64))?;
    let (hashed, written_hash) = head.split_at(HASHED_HEAD);
    ensure!(hashed.starts_with(&MAGIC), "it does not begin with the magic bytes of a checkpoint");
    let expected = header(key, content.len());
    let version = u32::from_le_bytes(hashed[8..12].try_into()?);
    ensure!(
        version == VERSION,
        "its version is {version}, but this program reads version {VERSION}"
    );
    let cell = &hashed[12..28];
    ensure!(*cell == expected[12..28], "it belongs to the cell {}", String::from_utf8_lossy(cell));
    let stated = u64::from_le_bytes(hashed[28..].try_into()?);
    ensure!(hashed == expected, damaged_length(stated.saturating_add(HEAD as u64)));
    ensure!(
        hash(hashed, content) == written_hash,
        "its checksum does not match: at least one bit was changed"
    );
    Ok(content)
}

fn hash(head: &[u8], content: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(head).chain_update(content).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef";

    #[test]
    fn what_was_sealed_is_opened_again() {
        for content in [&b""[..], b"a", &[7; 5000]] {
            assert_eq!(open(KEY, &seal(KEY, content)).unwrap(), content);
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_seen() {
        let sealed = seal(KEY, b"weights and moments");
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(open(KEY, &flipped).is_err(), "bit {bit} of a checkpoint may be wrong unseen");
        }
        for len in 0..sealed.len() {
            let cut = open(KEY, &sealed[..len]).unwrap_err();
            assert!(cut.to_string().contains("truncated"), "cut to {len}: {cut}");
        }
        let longer = [&sealed[..], b"x"].concat();
        assert!(open(KEY, &longer).unwrap_err().to_string().contains("extended"));
    }

    #[test]
    fn other_cells_versions_and_files_are_told_apart() {
        let sealed = seal(KEY, b"content");
        let said = |key, bytes: &[u8]| open(key, bytes).unwrap_err().to_string();
        assert_eq!(said("fedcba9876543210", &sealed), format!("it belongs to the cell {KEY}"));
        let mut newer = sealed.clone();
        newer[8] += 1;
        assert!(said(KEY, &newer).starts_with(&format!("its version is {}", VERSION + 1)));
        assert!(said(KEY, &[b'x'; 100]).contains("magic bytes"));
    }
}
