//! Limits of time and memory of a run.

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};

/// Limits of a run; `None`: no limit. Not part of the key, because limits bound a run and do not
/// change its result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Seconds of training, validation and evaluation, all attempts together.
    pub seconds: Option<f64>,
    /// Resident memory of the cell's process, in bytes.
    pub memory_bytes: Option<u64>,
}

impl Budget {
    /// Checks the limits.
    ///
    /// # Errors
    /// If one is out of range, with the field.
    pub fn check(&self) -> Result<()> {
        let seconds = self.seconds.unwrap_or(1.0);
        ensure!(
            seconds.is_finite() && seconds > 0.0,
            "budget.seconds is {seconds}, expected a finite number above 0"
        );
        ensure!(self.memory_bytes != Some(0), "budget.memory_bytes is 0, expected at least 1");
        Ok(())
    }

    /// Limits of this budget, with those of `other` where this one has none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            seconds: self.seconds.or(other.seconds),
            memory_bytes: self.memory_bytes.or(other.memory_bytes),
        }
    }
}

const UNITS: [(&str, u64); 7] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("b", 1),
];

/// Parses an amount of memory such as `4GiB`, `512 MB` or `1000000` to bytes.
///
/// # Errors
/// For anything else, and for 0.
pub fn bytes(text: &str) -> Result<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let unit = UNITS.iter().find_map(|(name, factor)| Some((lower.strip_suffix(name)?, *factor)));
    let (number, factor) = unit.unwrap_or((&lower, 1));
    let number = number.trim();
    let plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let bytes = number.parse::<f64>().ok().filter(|_| plain).map(|n| (n * factor as f64).floor());
    // Above 2^53 a float cannot represent every number of bytes; no machine has that much memory.
    match bytes.filter(|bytes| (1.0..(1u64 << 53) as f64).contains(bytes)) {
        Some(bytes) => Ok(bytes as u64),
        None => bail!(
            "`{text}` is not an amount of memory; expected a number of at least one byte with an optional unit (KiB, MiB, GiB, KB, \
             MB or GB), such as 4GiB"
        ),
    }
}

/// Formats bytes with a unit: `1.5 GiB`.
pub fn bytes_text(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{:.0} KiB", bytes as f64 / 1024.0),
        0x10_0000..0x4000_0000 => format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20)),
        _ => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_memory_are_read_with_their_units() {
        for (text, expected) in [
            ("4GiB", 4 << 30),
            ("1.5 GiB", 3 << 29),
            ("512mib", 512 << 20),
            ("2 KB", 2_000),
            ("3GB", 3_000_000_000),
            ("1000", 1_000),
            ("7b", 7),
        ] {
            assert_eq!(bytes(text).unwrap(), expected, "{text}");
        }
        for text in
            ["", "GiB", "4 XiB", "-1GiB", "1e9", "inf", "nan", "99999999999GiB", "1,5GiB", "0"]
        {
            let said = bytes(text).unwrap_err().to_string();
            assert!(said.starts_with(&format!("`{text}` is not an amount of memory")), "{said}");
        }
    }

    #[test]
    fn what_is_said_nearer_wins_and_nonsense_is_refused() {
        let near = Budget { seconds: Some(1.0), memory_bytes: None };
        let far = Budget { seconds: Some(9.0), memory_bytes: Some(9) };
        assert_eq!(near.or(far), Budget { seconds: Some(1.0), memory_bytes: Some(9) });
        assert!(far.check().is_ok() && Budget::default().check().is_ok());
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Budget { seconds: Some(seconds), memory_bytes: None }.check().is_err());
        }
        assert!(Budget { seconds: None, memory_bytes: Some(0) }.check().is_err());
    }
}
