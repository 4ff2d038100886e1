//! The test that decides the comparisons of a ranking.

use std::collections::BTreeSet;

use analysis::ranking::Ranking;
use records::number::{joined, two_digits};
use stats::sign_flip::least_p;
use stats::{Comparison, LEAST_SEEDS, LEVEL, Test, minimum_p_value};

/// Returns the name of the test that decides the comparisons of a ranking, and the smallest p-value that it can give; `None` if nothing with
/// two or more seeds is compared or all encodings are equal.
pub(crate) fn method(ranking: &Ranking) -> Option<String> {
    if ranking.common_value().is_some() {
        return None;
    }
    let several = ranking.pairs.iter().filter(|p| p.comparison.paired.n > 1);
    let ways: BTreeSet<String> = several.map(|pair| way(&pair.comparison)).collect();
    (!ways.is_empty()).then(|| joined(ways, "; "))
}

fn way(c: &Comparison) -> String {
    let (n, family) = (c.paired.n, c.family);
    let (name, least) = match c.test {
        Test::TooFewSeeds => {
            return format!("none ({n} seeds are too few: a test needs {LEAST_SEEDS})");
        }
        Test::SignFlip => ("sign-flip permutation test", least_p(n)),
        Test::PairedT => ("paired t test", minimum_p_value(n)),
    };
    let questions = if c.paired.question_error.is_some() { " and questions" } else { "" };
    let holm = match family {
        0 | 1 => String::new(),
        _ => format!(" with Holm's correction over {family} pairs"),
    };
    let lost = least * f64::from(family) > LEVEL;
    let so = if lost { ", so no difference can be significant" } else { "" };
    format!(
        "{name} over {n} seeds{questions}{holm}; the smallest possible p is {}{so}",
        two_digits(least)
    )
}
