//! Scores of an answer against a reference: exact match and F1 as for SQuAD, ROUGE as in SCROLLS (no stemmer).

use std::collections::BTreeMap;

/// Splits a text into words, in lower case, without ASCII punctuation and English articles.
fn normalised(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let kept = text.chars().filter(|c| !c.is_ascii_punctuation()).collect::<String>();
    let words = kept.split_whitespace().filter(|word| !["a", "an", "the"].contains(word));
    words.map(str::to_owned).collect()
}

/// Whether two answers are equal except for case, punctuation and articles.
pub fn exact_match(answer: &str, reference: &str) -> bool {
    normalised(answer) == normalised(reference)
}

/// F1 score of the words that two answers share, 0 to 1.
pub fn f1(answer: &str, reference: &str) -> f64 {
    let (answer, reference) = (normalised(answer), normalised(reference));
    f_measure(shared(&counts(&answer), &counts(&reference)), answer.len(), reference.len())
}

/// F-measures of ROUGE, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rouge {
    /// F score of single words (ROUGE-1).
    pub one: f64,
    /// F score of pairs of words (ROUGE-2).
    pub two: f64,
    /// F score of the longest common subsequence (ROUGE-L).
    pub longest: f64,
}

impl Rouge {
    /// Geometric mean of the three, by which SCROLLS ranks.
    pub fn geometric_mean(&self) -> f64 {
        (self.one * self.two * self.longest).cbrt()
    }
}

/// ROUGE of a text against a reference. Words are runs of ASCII letters and digits, in lower case, as in the package
/// `rouge-score`.
pub fn rouge(answer: &str, reference: &str) -> Rouge {
    let words = |text: &str| {
        let text = text.to_lowercase();
        let words =
            text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let (answer, reference) = (words(answer), words(reference));
    let grams = |n: usize| {
        let [a, r] = [&answer, &reference]
            .map(|words| words.windows(n).map(|gram| gram.join(" ")).collect::<Vec<_>>());
        f_measure(shared(&counts(&a), &counts(&r)), a.len(), r.len())
    };
    let longest = f_measure(common(&answer, &reference), answer.len(), reference.len());
    Rouge { one: grams(1), two: grams(2), longest }
}

fn counts(words: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for word in words {
        *counts.entry(word.as_str()).or_insert(0) += 1;
    }
    counts
}

fn shared(a: &BTreeMap<&str, usize>, b: &BTreeMap<&str, usize>) -> usize {
    a.iter().map(|(word, count)| (*count).min(b.get(word).copied().unwrap_or(0))).sum()
}

/// Length of the longest common subsequence.
fn common(a: &[String], b: &[String]) -> usize {
    let mut last = vec![0; b.len() + 1];
    for word in a {
        let mut row = vec![0; b.len() + 1];
        for (column, other) in b.iter().enumerate() {
            row[column + 1] =
                if word == other { last[column] + 1 } else { row[column].max(last[column + 1]) };
        }
        last = row;
    }
    last[b.len()]
}

fn f_measure(shared: usize, answer: usize, reference: usize) -> f64 {
    if shared == 0 {
        return 0.0;
    }
    let (precision, recall) = (shared as f64 / answer as f64, shared as f64 / reference as f64);
    2.0 * precision * recall / (precision + recall)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answer, reference, ROUGE-1, -2 and -L of the package rouge-score 0.1.2 (no stemmer), F1 and exact match of
    /// SQuAD's evaluation.
    const CASES: &[(&str, &str, [f64; 3], f64, bool)] = &[
        (
            "The cat sat on the mat.",
            "A cat was sitting on the mat, quietly.",
            [0.571_428_571_4, 0.333_333_333_3, 0.571_428_571_4],
            0.6,
            false,
        ),
        (
            "the quick brown fox jumps over the lazy dog",
            "the fast brown fox jumped over a lazy dog and slept",
            [0.6, 0.222_222_222_2, 0.6],
            0.625,
            false,
        ),
        (
            "police killed the gunman",
            "police kill the gunman",
            [0.75, 0.333_333_333_3, 0.75],
            0.666_666_666_7,
            false,
        ),
        ("Yes", "yes.", [1.0, 0.0, 1.0], 1.0, true),
        ("No overlap here", "entirely different words", [0.0, 0.0, 0.0], 0.0, false),
        (
            "An answer: 42-17 = 25!",
            "the answer is 25",
            [0.444_444_444_4, 0.0, 0.444_444_444_4],
            0.666_666_666_7,
            false,
        ),
        (
            "Straße und Café 2024",
            "strasse und cafe 2024",
            [0.444_444_444_4, 0.0, 0.444_444_444_4],
            0.5,
            false,
        ),
    ];

    #[test]
    fn scores_are_those_of_the_published_packages() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        for (answer, reference, expected, expected_f1, same) in CASES {
            let Rouge { one, two, longest } = rouge(answer, reference);
            let found = [one, two, longest];
            assert!(found.iter().zip(expected).all(|(a, b)| near(*a, *b)), "{answer}: {found:?}");
            assert!(near(f1(answer, reference), *expected_f1), "{answer}");
            assert_eq!(exact_match(answer, reference), *same, "{answer}");
        }
    }

    #[test]
    fn the_geometric_mean_is_zero_where_one_is() {
        let rouge = Rouge { one: 0.5, two: 0.25, longest: 0.125 };
        assert!((rouge.geometric_mean() - 0.25).abs() < 1e-12);
        assert!(Rouge { two: 0.0, ..rouge }.geometric_mean().abs() < 1e-12);
        assert!(f1("", "").abs() < 1e-12);
    }
}
