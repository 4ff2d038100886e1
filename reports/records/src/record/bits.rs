//! One bit for each question as text.

use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD as BASE64;

/// Decodes base64 of this many bytes.
pub(super) fn bytes(text: &str, size: usize) -> Result<Vec<u8>, String> {
    match BASE64.decode(text) {
        Ok(bytes) if bytes.len() == size => Ok(bytes),
        Ok(bytes) => Err(format!("outcomes have {} bytes, expected {size}", bytes.len())),
        Err(error) => Err(format!("outcomes are not base64: {error}")),
    }
}

/// Encodes bytes as base64.
pub(super) fn text(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Encodes bits as base64, the lowest bit of a byte first.
pub(super) fn encode(bits: &[bool]) -> String {
    let byte = |bits: &[bool]| bits.iter().rev().fold(0_u8, |byte, bit| byte << 1 | u8::from(*bit));
    text(&bits.chunks(8).map(byte).collect::<Vec<u8>>())
}

/// Decodes this many bits.
pub(super) fn decode(text: &str, count: usize) -> Result<Vec<bool>, String> {
    let bytes = bytes(text, count.div_ceil(8))?;
    Ok((0..count).map(|index| bytes[index / 8] >> (index % 8) & 1 == 1).collect())
}
