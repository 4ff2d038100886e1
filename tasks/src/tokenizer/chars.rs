//! Tokenizer of characters.

use std::borrow::Cow;
use std::collections::BTreeSet;

use tokenizers::SplitDelimiterBehavior::Isolated;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::models::wordlevel::WordLevel;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};

use super::Tokenizer;
use super::error::TokenizerError;
use crate::files::sha256_hex;

/// Bound of the characters that are looked up by index; it covers nearly all characters of most texts.
const DIRECT: usize = 0x3000;

/// Tokenizer with one token for each character of a text, in Unicode order.
#[derive(Debug, Clone)]
pub struct Chars {
    alphabet: Vec<char>,
    /// Token of each character below [`DIRECT`]; `u32::MAX` for those not in the alphabet.
    direct: Vec<u32>,
}

impl Chars {
    /// Returns a tokenizer for the characters of these texts.
    pub fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut seen = vec![false; DIRECT];
        let mut rare = BTreeSet::new();
        for c in texts.flat_map(str::chars) {
            match seen.get_mut(c as usize) {
                Some(seen) => *seen = true,
                None => _ = rare.insert(c),
            }
        }
        let common = (0..DIRECT as u32).filter(|c| seen[*c as usize]).filter_map(char::from_u32);
        let alphabet: Vec<char> = common.chain(rare).collect();
        let mut direct = vec![u32::MAX; DIRECT];
        for (token, c) in alphabet.iter().enumerate() {
            if let Some(place) = direct.get_mut(*c as usize) {
                *place = token as u32;
            }
        }
        Self { alphabet, direct }
    }

    fn token(&self, c: char) -> Option<u32> {
        match self.direct.get(c as usize) {
            Some(token) => Some(*token).filter(|token| *token != u32::MAX),
            None => self.alphabet.binary_search(&c).ok().map(|token| token as u32),
        }
    }
}

impl Tokenizer for Chars {
    fn vocab_size(&self) -> usize {
        self.alphabet.len()
    }

    fn encode(&self, text: &str, tokens: &mut Vec<u32>) -> Result<(), TokenizerError> {
        let unknown = |c: char| TokenizerError::Encode {
            why: format!("the character {c:?} is not in its alphabet"),
        };
        for c in text.chars() {
            tokens.push(self.token(c).ok_or_else(|| unknown(c))?);
        }
        Ok(())
    }

    fn bytes(&self, token: u32) -> Option<Cow<'_, [u8]>> {
        let c = self.alphabet.get(token as usize)?;
        Some(Cow::Owned(c.to_string().into_bytes()))
    }

    fn is_quick(&self) -> bool {
        true
    }

    /// Words of one character. Characters outside the alphabet are errors there, too, because the file names an unknown
    /// token that is not in its vocabulary.
    fn json(&self) -> Option<String> {
        let vocabulary = self.alphabet.iter().map(char::to_string).zip(0..);
        let words = WordLevel::builder().vocab(vocabulary.collect()).build().ok()?;
        let each = SplitPattern::Regex(r"[\s\S]".to_owned());
        let mut tokenizer = tokenizers::Tokenizer::new(words);
        tokenizer
            .with_pre_tokenizer(Some(Split::new(each, Isolated, false).ok()?))
            .with_decoder(Some(Fuse::new()));
        tokenizer.to_string(true).ok()
    }

    fn sha256(&self) -> String {
        let alphabet: String = self.alphabet.iter().collect();
        sha256_hex(format!("chars\n{alphabet}").as_bytes())
    }
}
