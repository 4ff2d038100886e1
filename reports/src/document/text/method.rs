//! The test that decides the comparisons of a ranking.

use std::collections::BTreeSet;

use analysis::ranking::Ranking;
use records::number::{joined, two_digits};
use stats::sign_flip::least_p;
use stats::{Comparison, LEAST_SEEDS, LEVEL, Test, minimum_p_value};

/// Returns the name of the test that decides the comparisons of a ranking, with the reason; `None` if nothing with
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
    let holm = if family > 1 {
        format!(" with Holm's correction over {family} pairs")
    } else {
        String::new()
    };
    let least = least_p(n);
    // If a single pair can reach 5 %, the correction over all pairs is the reason.
    let over = if least <= LEVEL { format!(" over {family} pairs") } else { String::new() };
    let because = format!(
        "because {n} seeds cannot reach 5 %{over} by permutation (minimum p {})",
        two_digits(least)
    );
    match c.test {
        Test::TooFewSeeds => format!("none ({n} seeds are too few, {LEAST_SEEDS} are needed)"),
        Test::SignFlip => {
            let questions = if c.paired.question_error.is_some() {
                ", p no less than that of the t test over seeds and questions"
            } else {
                ""
            };
            format!("sign-flip permutation test over {n} seeds{holm}{questions}")
        }
        Test::PairedT => {
            let sources = match c.paired.question_error {
                Some(_) => " over seeds and questions",
                None => "",
            };
            let bound = minimum_p_value(n);
            let so = if bound * f64::from(family) > LEVEL {
                ", so that nothing is separable"
            } else {
                ""
            };
            format!(
                "paired t test{sources}{holm}, {because}, with p-values of at least {}, the least that {n} seeds \
                 allow{so}",
                two_digits(bound)
            )
        }
    }
}
