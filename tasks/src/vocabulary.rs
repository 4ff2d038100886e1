//! Token ids of a generated task: groups of symbols, numbered one group after another.

/// Symbols with consecutive token ids.
#[derive(Debug, Clone, Copy)]
pub enum TokenGroup {
    /// Symbols with fixed texts.
    Signs(&'static [&'static str]),
    /// Symbols with computed texts.
    Texts(&'static [String]),
    /// The given number of Latin letters, starting at this one.
    Letters(char, u32),
    /// The numbers below a bound, after a prefix that may be empty.
    Numbered(&'static str, u32),
}

impl TokenGroup {
    /// Interchangeable symbols: letters if there are at most 26, otherwise `s0`, `s1`, ...
    pub fn symbols(count: u32) -> Self {
        if count <= 26 { Self::Letters('a', count) } else { Self::Numbered("s", count) }
    }

    fn len(self) -> usize {
        match self {
            Self::Signs(signs) => signs.len(),
            Self::Texts(texts) => texts.len(),
            Self::Letters(_, count) | Self::Numbered(_, count) => count as usize,
        }
    }

    fn text(self, number: u32) -> String {
        match self {
            Self::Signs(signs) => signs[number as usize].to_owned(),
            Self::Texts(texts) => texts[number as usize].clone(),
            Self::Letters(first, _) => {
                char::from_u32(u32::from(first) + number).unwrap_or('?').to_string()
            }
            Self::Numbered(prefix, _) => format!("{prefix}{number}"),
        }
    }
}

/// Number of tokens in all groups.
pub(crate) fn vocab_size(groups: &[TokenGroup]) -> usize {
    groups.iter().map(|group| group.len()).sum()
}

/// Text of a token, or `?` for an id outside the vocabulary.
pub(crate) fn token_text(groups: &[TokenGroup], token: u32) -> String {
    let mut number = token;
    for group in groups {
        if (number as usize) < group.len() {
            return group.text(number);
        }
        number -= group.len() as u32;
    }
    "?".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_one_another_and_ids_behind_them_are_unknown() {
        let groups =
            [TokenGroup::Signs(&["+", "-"]), TokenGroup::symbols(2), TokenGroup::symbols(27)];
        assert_eq!(vocab_size(&groups), 31);
        let texts: Vec<String> = (0..6).map(|token| token_text(&groups, token)).collect();
        assert_eq!(texts, ["+", "-", "a", "b", "s0", "s1"]);
        assert_eq!(token_text(&groups, 30), "s26");
        assert_eq!(token_text(&groups, 31), "?");
        assert_eq!(token_text(&groups, u32::MAX), "?");
    }
}
