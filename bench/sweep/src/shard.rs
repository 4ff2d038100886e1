//! Share of a sweep for one of several machines.

use std::fmt;
use std::str::FromStr;

/// Shard `part` of `of`, from 1. Membership of a cell depends only on its key, so it is the same on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    part: u64,
    of: u64,
}

impl Shard {
    /// The whole sweep, 1/1.
    pub const WHOLE: Self = Self { part: 1, of: 1 };

    /// Whether a cell belongs to this shard.
    pub fn has(self, key: &str) -> bool {
        // Keys are hashes, so the remainder distributes cells evenly. Other texts belong to the first shard.
        let number = u64::from_str_radix(key, 16).unwrap_or(0);
        number % self.of == self.part - 1
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(part, of)| {
            Some((part.trim().parse::<u64>().ok()?, of.trim().parse::<u64>().ok()?))
        });
        match numbers {
            Some((part, of)) if (1..=of).contains(&part) => Ok(Self { part, of }),
            _ => Err(format!(
                "`{text}` is not a shard, expected K/N with whole numbers 1 <= K <= N, such as 2/3"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> impl Iterator<Item = String> {
        (0..500).map(|i| records::store::cell_key(&serde_json::json!({ "cell": i })))
    }

    #[test]
    fn every_cell_is_in_exactly_one_part() {
        for of in 1..=40u64 {
            let parts = (1..=of).map(|part| Shard { part, of }).collect::<Vec<_>>();
            for key in keys() {
                let having = parts.iter().filter(|shard| shard.has(&key)).count();
                assert_eq!(having, 1, "{key} of {of}");
            }
        }
        for of in [u64::MAX, u64::MAX - 1] {
            for key in keys() {
                let part = u64::from_str_radix(&key, 16).unwrap() % of + 1;
                assert!(Shard { part, of }.has(&key));
            }
        }
    }

    #[test]
    fn parts_are_about_equal() {
        for part in 1..=4 {
            let count = keys().filter(|key| Shard { part, of: 4 }.has(key)).count();
            assert!((95..=155).contains(&count), "part {part} of 4 has {count} of 500");
        }
    }

    #[test]
    fn text_goes_both_ways_and_nonsense_is_refused() {
        for text in ["1/1", "2/3", "7/7"] {
            assert_eq!(text.parse::<Shard>().unwrap().to_string(), text);
        }
        for text in ["", "1", "0/3", "4/3", "1/0", "-1/2", "a/b", "1/2/3", "1.5/2"] {
            let said = text.parse::<Shard>().unwrap_err();
            assert!(said.contains(text) && said.contains("K/N"), "{said}");
        }
    }
}
