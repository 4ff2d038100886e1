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

use sha2::{Digest, Sha256};

/// Version of the layout and of the content. Other versions are not read, because a checkpoint is only kept during the
/// training of its cell.
pub const VERSION: u32 = 2;

const MAGIC: [u8; 8] = *b"PEZOOCKP";
const KEY_LEN: usize = 16;
const HASHED_HEAD: usize = 36;
const HEAD: usize = HASHED_HEAD + 32;

/// Damage of a checkpoint file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The file ends within the header, or its content does not have the length that the header states.
    #[error("it has {bytes} bytes, expected {expected}: it was truncated or extended")]
    Length {
        /// Length of the file.
        bytes: u64,
        /// Length that the header states.
        expected: u64,
    },
    /// The file does not begin with the magic bytes of a checkpoint.
    #[error("it does not begin with the magic bytes of a checkpoint")]
    Magic,
    /// The file was written by another version of the program.
    #[error("its version is {found}, this program reads {VERSION}")]
    Version {
        /// The version in the file.
        found: u32,
    },
    /// The file belongs to another cell.
    #[error("it belongs to the cell {found}")]
    OtherCell {
        /// The key in the file.
        found: String,
    },
    /// The checksum does not match the content.
    #[error("its checksum does not match: at least one bit was changed")]
    Checksum,
}

/// Prepends the header to the content.
pub(super) fn seal(key: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + content.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&padded(key));
    bytes.extend_from_slice(&(content.len() as u64).to_le_bytes());
    let hash = hash(&bytes, content);
    bytes.extend_from_slice(&hash);
    bytes.extend_from_slice(content);
    bytes
}

/// Checks the header and returns the content.
///
/// # Errors
/// [`Damage`], the first problem found.
pub(super) fn open<'a>(key: &str, bytes: &'a [u8]) -> Result<&'a [u8], Damage> {
    let length = |expected: u64| Damage::Length { bytes: bytes.len() as u64, expected };
    let head = bytes.get(..HEAD).ok_or_else(|| length(HEAD as u64))?;
    let (hashed, written_hash) = head.split_at(HASHED_HEAD);
    let (magic, rest) = hashed.split_at(MAGIC.len());
    let (version, rest) = rest.split_at(size_of::<u32>());
    let (found_key, content_len) = rest.split_at(KEY_LEN);
    if magic != MAGIC {
        return Err(Damage::Magic);
    }
    let found = u32::from_le_bytes(version.try_into().map_err(|_| Damage::Magic)?);
    if found != VERSION {
        return Err(Damage::Version { found });
    }
    if found_key != padded(key) {
        return Err(Damage::OtherCell { found: String::from_utf8_lossy(found_key).into_owned() });
    }
    let content_len = u64::from_le_bytes(content_len.try_into().map_err(|_| Damage::Magic)?);
    let content = &bytes[HEAD..];
    if content.len() as u64 != content_len {
        return Err(length(content_len.saturating_add(HEAD as u64)));
    }
    if hash(hashed, content) != written_hash {
        return Err(Damage::Checksum);
    }
    Ok(content)
}

fn hash(head: &[u8], content: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(head).chain_update(content).finalize().into()
}

fn padded(key: &str) -> [u8; KEY_LEN] {
    std::array::from_fn(|index| key.as_bytes().get(index).copied().unwrap_or(b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef";

    #[test]
    fn what_was_sealed_is_opened_again() {
        for content in [&b""[..], b"a", &[7; 5000]] {
            assert_eq!(open(KEY, &seal(KEY, content)), Ok(content));
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
            assert!(matches!(cut, Damage::Length { .. }), "cut to {len}: {cut}");
        }
        let longer = [&sealed[..], b"x"].concat();
        assert!(matches!(open(KEY, &longer), Err(Damage::Length { .. })));
    }

    #[test]
    fn other_cells_versions_and_files_are_told_apart() {
        let sealed = seal(KEY, b"content");
        let other = open("fedcba9876543210", &sealed).unwrap_err();
        assert_eq!(other, Damage::OtherCell { found: KEY.to_owned() });
        let mut newer = sealed.clone();
        newer[8] += 1;
        assert_eq!(open(KEY, &newer), Err(Damage::Version { found: VERSION + 1 }));
        assert_eq!(open(KEY, &[b'x'; 100]), Err(Damage::Magic));
    }
}
