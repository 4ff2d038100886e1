//! Canonical JSON: keys sorted at every depth, no spaces. Cell keys and checksums are hashes of it.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Returns 16 hex digits of the SHA-256 of `config` as canonical JSON (keys sorted at every depth, no spaces), so
/// that the key depends on every value and not on the order of the settings.
pub fn cell_key(config: &Value) -> String {
    cell_key_without(config, &[])
}

/// Returns the [`cell_key`] of a configuration without the given top-level fields.
pub fn cell_key_without(config: &Value, fields: &[&str]) -> String {
    let mut text = Vec::new();
    match config {
        Value::Object(map) => {
            object(map.iter().filter(|(key, _)| !fields.contains(&key.as_str())), &mut text);
        }
        other => canonical(other, &mut text),
    }
    hex::encode(&Sha256::digest(&text)[..8])
}

/// Computes the checksum of the parsed content and not of the bytes, so that layout and line endings may change.
pub(super) fn seal(value: &Value) -> String {
    let mut text = Vec::new();
    canonical(value, &mut text);
    hex::encode(Sha256::digest(&text))
}

/// Encodes bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    hex::encode(bytes)
}

fn canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => object(map.iter(), out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                canonical(item, out);
            }
            out.push(b']');
        }
        scalar => append(scalar, out),
    }
}

/// Writes an object with its fields sorted. They are sorted here because a dependency may switch serde_json to maps
/// that keep the order of insertion.
fn object<'a>(fields: impl Iterator<Item = (&'a String, &'a Value)>, out: &mut Vec<u8>) {
    let mut fields: Vec<_> = fields.collect();
    fields.sort_unstable_by_key(|(key, _)| *key);
    out.push(b'{');
    for (index, (key, value)) in fields.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        append(key, out);
        out.push(b':');
        canonical(value, out);
    }
    out.push(b'}');
}

/// Appends the JSON form of a text or number; this cannot fail.
pub(super) fn append<T: Serialize + ?Sized>(scalar: &T, out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(out, scalar);
}

pub(super) fn is_key(key: &str) -> bool {
    key.len() == 16 && key.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
