//! Error of a mean that comes from its questions.
//!
//! Every seed answers the same questions, so an answer has two sources of variance and a remainder,
//! `y[s][q] = mu + seed_s + question_q + rest_sq` (crossed random effects). The mean over n seeds and m questions then
//! has the variance `var(seed) / n + var(question) / m + var(rest) / (n m)`. The scatter of the seeds' means estimates
//! the first and the last term together; the one in the middle, which no number of seeds makes smaller, is estimated
//! here by moments (the analysis of variance of a two-way table with one answer per cell).

use super::student::t_quantile;

/// Variance of a mean due to its questions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuestionError {
    /// Variance of the mean due to the questions.
    pub variance: f64,
    /// Degrees of freedom of the variance.
    pub df: f64,
}

impl QuestionError {
    /// Error of a mean over the evaluations of a region. `evaluations[e][s][q]` is the answer of seed `s` to question
    /// `q` of evaluation `e`: 0 or 1 for exact match, nats for likelihoods, or differences of two encodings. Each
    /// evaluation has questions of its own, the same for all seeds. `None` without seeds, or with fewer than two
    /// questions in an evaluation.
    ///
    /// Where all answers of an evaluation are equal and `shares` says that they count right ones, the questions still
    /// have an error: the variance is that of a share with two more right and two more wrong answers (Agresti and
    /// Coull 1998).
    pub fn of(evaluations: &[Vec<Vec<f64>>], shares: bool) -> Option<Self> {
        let count = evaluations.len() as f64;
        let (mut variance, mut squares) = (0.0, 0.0);
        for answers in evaluations {
            let m = answers.first()?.len();
            if m < 2 || answers.iter().any(|seed| seed.len() != m) {
                return None;
            }
            let part = component(answers, m, shares) / (count * count);
            variance += part;
            squares += part * part / (m - 1) as f64;
        }
        let df = if squares > 0.0 { variance * variance / squares } else { f64::INFINITY };
        (count > 0.0).then_some(Self { variance, df })
    }

    /// Returns the standard error due to the questions.
    pub fn standard_error(&self) -> f64 {
        self.variance.sqrt()
    }

    /// Returns the standard error and degrees of freedom (Satterthwaite 1946) of a mean over `n` seeds whose values
    /// have the standard deviation `std`, including the questions.
    pub fn with_seeds(&self, std: f64, n: u32) -> (f64, f64) {
        let seeds = std * std / f64::from(n);
        let all = seeds + self.variance;
        let weights = seeds * seeds / f64::from(n - 1) + self.variance * self.variance / self.df;
        let df = if weights > 0.0 { all * all / weights } else { f64::from(n - 1) };
        (all.sqrt(), df)
    }

    /// Returns half of the 95% interval of a mean over `n` seeds with the standard deviation `std`; at least
    /// `seeds`, the value without questions.
    pub(super) fn half_width(&self, std: f64, n: u32, seeds: f64) -> f64 {
        let (error, df) = self.with_seeds(std, n);
        // Beyond a million degrees of freedom Student's t is the normal distribution in all digits shown.
        (t_quantile(0.975, df.min(1e6)) * error).max(seeds)
    }
}

/// Returns `var(question) / m` of one evaluation with `m` questions.
fn component(answers: &[Vec<f64>], m: usize, shares: bool) -> f64 {
    let n = answers.len();
    let first = answers[0][0];
    if shares && answers.iter().flatten().all(|y| y.to_bits() == first.to_bits()) {
        let wrong = 2.0 / (m as f64 + 4.0);
        return wrong * (1.0 - wrong) / (m as f64 + 4.0);
    }
    let of_seeds: Vec<f64> = answers.iter().map(|seed| mean(seed.iter().copied(), m)).collect();
    let of_question = |q: usize| mean(answers.iter().map(|seed| seed[q]), n);
    let of_questions: Vec<f64> = (0..m).map(of_question).collect();
    let grand = mean(of_questions.iter().copied(), m);
    let between: f64 = of_questions.iter().map(|x| (x - grand).powi(2)).sum();
    let between = between / (m - 1) as f64 / m as f64;
    if n < 2 {
        return between;
    }
    let rest: f64 = answers
        .iter()
        .zip(&of_seeds)
        .flat_map(|(seed, own)| {
            seed.iter()
                .zip(&of_questions)
                .map(move |(y, question)| (y - own - question + grand).powi(2))
        })
        .sum();
    let rest = rest / ((n - 1) * (m - 1)) as f64;
    (between - rest / (n * m) as f64).max(0.0)
}

fn mean(values: impl Iterator<Item = f64>, count: usize) -> f64 {
    values.sum::<f64>() / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_that_all_seeds_answer_alike_have_the_error_of_one_seed() {
        // 3 of 4 right in both seeds: s^2 = 0.25, over 4 questions 0.0625.
        let one = vec![1.0, 1.0, 1.0, 0.0];
        let found = QuestionError::of(&[vec![one.clone(), one]], true).unwrap();
        assert!((found.variance - 0.0625).abs() < 1e-12 && (found.df - 3.0).abs() < 1e-9);
        // Two evaluations: a quarter of the sum.
        let one = vec![vec![1.0, 1.0, 1.0, 0.0]; 2];
        let two = QuestionError::of(&[one.clone(), one], true).unwrap();
        assert!((two.variance - 0.03125).abs() < 1e-12 && (two.df - 6.0).abs() < 1e-9);
    }

    #[test]
    fn mistakes_that_seeds_make_on_their_own_are_no_error_of_the_questions() {
        // Each seed fails another question: between 0, so nothing is left after the remainder.
        let answers = vec![
            vec![0.0, 1.0, 1.0, 1.0],
            vec![1.0, 0.0, 1.0, 1.0],
            vec![1.0, 1.0, 0.0, 1.0],
            vec![1.0, 1.0, 1.0, 0.0],
        ];
        let found = QuestionError::of(&[answers], true).unwrap();
        assert!(found.variance.abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn all_right_is_not_without_error() {
        let found = QuestionError::of(&[vec![vec![1.0; 400]; 5]], true).unwrap();
        // 2 / 404 wrong: about the rule of three, 0.75%, at 1.96 standard errors.
        assert!((1.96 * found.standard_error() - 0.0068).abs() < 1e-4, "{found:?}");
        let nats = QuestionError::of(&[vec![vec![1.0; 400]; 5]], false).unwrap();
        assert!(nats.variance == 0.0 && nats.df.is_infinite());
    }

    #[test]
    fn what_is_no_table_has_no_error() {
        assert_eq!(QuestionError::of(&[], true), None);
        assert_eq!(QuestionError::of(&[vec![vec![1.0], vec![0.0]]], true), None);
        assert_eq!(QuestionError::of(&[vec![vec![1.0, 0.0], vec![0.0]]], true), None);
    }

    #[test]
    fn two_sources_are_never_narrower_than_one() {
        let questions = QuestionError { variance: 1.0, df: 399.0 };
        let (error, df) = questions.with_seeds(3.0_f64.sqrt(), 3);
        assert!((error - 2.0_f64.sqrt()).abs() < 1e-12 && (df - 7.96).abs() < 0.05, "{df}");
        let seeds = 4.302_652_73;
        assert!((questions.half_width(3.0_f64.sqrt(), 3, seeds) - seeds).abs() < 1e-12);
        assert!(questions.half_width(0.0, 3, 0.0) > 1.96);
    }
}
