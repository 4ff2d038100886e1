//! Means of the scores of benchmark items, with standard errors.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::ask::ItemResult;
use super::mmlu;
use super::scores::Rouge;

/// Mean of a score over items, 0 to 1, with its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeanScore {
    /// Mean over the items.
    pub mean: f64,
    /// Standard error of the mean over draws of the items; `None` for fewer than two items.
    pub standard_error: Option<f64>,
}

/// Mean scores by name, in the order in which they are printed.
pub type Scores = Vec<(&'static str, MeanScore)>;

/// Scores of the items of one file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    written: Vec<Written>,
    chosen: Vec<Chosen>,
}

#[derive(Debug, Clone, PartialEq)]
struct Written {
    exact_match: f64,
    f1: f64,
    rouge: Rouge,
}

#[derive(Debug, Clone, PartialEq)]
struct Chosen {
    subject: Option<String>,
    right: f64,
    right_per_byte: f64,
}

impl MeanScore {
    /// Mean and standard error of the mean.
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let standard_error = (values.len() > 1).then(|| (squares / (count - 1.0) / count).sqrt());
        Self { mean, standard_error }
    }

    /// Mean of independent means, with its standard error; `None` if one of them has none.
    fn of_means(means: impl ExactSizeIterator<Item = Self> + Clone) -> Self {
        let count = means.len() as f64;
        let mean = means.clone().map(|score| score.mean).sum::<f64>() / count;
        let squares = means.map(|score| score.standard_error.map(|error| error.powi(2)));
        let standard_error = squares.sum::<Option<f64>>().map(|sum| sum.sqrt() / count);
        Self { mean, standard_error }
    }

    /// A function of all items with its standard error by the jackknife: from its values without one item each.
    fn jackknife(whole: f64, without_one: &[f64]) -> Self {
        let count = without_one.len() as f64;
        let mean = without_one.iter().sum::<f64>() / count;
        let squares = without_one.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let standard_error =
            (without_one.len() > 1).then(|| (squares * (count - 1.0) / count).sqrt());
        Self { mean: whole, standard_error }
    }
}

impl Summary {
    /// Adds the result of one item of a subject.
    pub fn add(&mut self, subject: Option<&str>, result: &ItemResult) {
        let share = |right: bool| f64::from(u8::from(right));
        match result {
            ItemResult::Wrote { exact_match, f1, rouge, .. } => self.written.push(Written {
                exact_match: share(*exact_match),
                f1: *f1,
                rouge: *rouge,
            }),
            ItemResult::Chose { right, choice, choice_per_byte, .. } => self.chosen.push(Chosen {
                subject: subject.map(str::to_owned),
                right: share(choice == right),
                right_per_byte: share(choice_per_byte == right),
            }),
        }
    }

    /// Number of items with a free answer, and their scores by name; `None` without such items. As in SCROLLS, the
    /// geometric mean is that of the three means.
    pub fn written(&self) -> Option<(usize, Scores)> {
        let column =
            |score: fn(&Written) -> f64| self.written.iter().map(score).collect::<Vec<_>>();
        let rouge = [
            column(|item| item.rouge.one),
            column(|item| item.rouge.two),
            column(|item| item.rouge.longest),
        ];
        let count = self.written.len();
        if count == 0 {
            return None;
        }
        let sums = rouge.each_ref().map(|values| values.iter().sum::<f64>());
        let mean_of = |sums: [f64; 3], count: f64| {
            let [one, two, longest] = sums.map(|sum| sum / count);
            Rouge { one, two, longest }.geometric_mean()
        };
        let without = |item: usize| {
            let left = [0, 1, 2].map(|kind| sums[kind] - rouge[kind][item]);
            // Rounding may leave a sum of zeros just below zero.
            mean_of(left.map(|sum| sum.max(0.0)), (count - 1) as f64)
        };
        let whole = mean_of(sums, count as f64);
        let without_one = (0..count).filter(|_| count > 1).map(without).collect::<Vec<_>>();
        let [one, two, longest] = &rouge;
        let scores = vec![
            ("exact_match", MeanScore::of(&column(|item| item.exact_match))),
            ("f1", MeanScore::of(&column(|item| item.f1))),
            ("rouge_1", MeanScore::of(one)),
            ("rouge_2", MeanScore::of(two)),
            ("rouge_l", MeanScore::of(longest)),
            ("rouge_geometric_mean", MeanScore::jackknife(whole, &without_one)),
        ];
        Some((count, scores))
    }

    /// Number of multiple-choice items, and the accuracies by likelihood and by likelihood per byte; `None` without such
    /// items.
    pub fn chosen(&self) -> Option<(usize, Scores)> {
        accuracies(&self.chosen.iter().collect::<Vec<_>>())
    }

    /// The same by subject, for the items that state one.
    pub fn by_subject(&self) -> BTreeMap<&str, (usize, Scores)> {
        self.by(Some)
    }

    /// The same by group of MMLU's subjects, over the items of a group as in the authors' evaluation.
    pub fn by_group(&self) -> BTreeMap<&str, (usize, Scores)> {
        self.by(mmlu::group)
    }

    /// Subjects that MMLU does not have, which are in none of its groups.
    pub fn outside_groups(&self) -> BTreeSet<&str> {
        let subjects = self.chosen.iter().filter_map(|item| item.subject.as_deref());
        subjects.filter(|subject| mmlu::group(subject).is_none()).collect()
    }

    /// Number of subjects, and the mean of each score over them, whatever their numbers of items (macro average); `None`
    /// without subjects. The standard errors are those over draws of the items.
    pub fn over_subjects(&self) -> Option<(usize, Scores)> {
        let subjects = self.by_subject();
        let (_, first) = subjects.values().next()?;
        let mean = |(place, (name, _)): (usize, &(&'static str, MeanScore))| {
            (*name, MeanScore::of_means(subjects.values().map(|(_, scores)| scores[place].1)))
        };
        Some((subjects.len(), first.iter().enumerate().map(mean).collect()))
    }

    /// Accuracies of the items of each group that `group` returns for their subject.
    fn by<'a>(
        &'a self,
        group: impl Fn(&'a str) -> Option<&'a str>,
    ) -> BTreeMap<&'a str, (usize, Scores)> {
        let mut groups = BTreeMap::<&str, Vec<&Chosen>>::new();
        for item in &self.chosen {
            if let Some(group) = item.subject.as_deref().and_then(&group) {
                groups.entry(group).or_default().push(item);
            }
        }
        let scored = |(subject, items): (_, Vec<&Chosen>)| Some((subject, accuracies(&items)?));
        groups.into_iter().filter_map(scored).collect()
    }
}

fn accuracies(items: &[&Chosen]) -> Option<(usize, Scores)> {
    let score = |right: fn(&Chosen) -> f64| {
        MeanScore::of(&items.iter().map(|item| right(item)).collect::<Vec<_>>())
    };
    (!items.is_empty()).then(|| {
        let scores = vec![
            ("accuracy", score(|item| item.right)),
            ("accuracy_per_byte", score(|item| item.right_per_byte)),
        ];
        (items.len(), scores)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chose(right: bool) -> ItemResult {
        let choice = usize::from(right);
        ItemResult::Chose { right: 1, choice, choice_per_byte: 1 - choice, scores: Vec::new() }
    }

    fn wrote(one: f64, two: f64) -> ItemResult {
        let rouge = Rouge { one, two, longest: 0.5 };
        ItemResult::Wrote { text: String::new(), exact_match: false, f1: one, rouge }
    }

    #[track_caller]
    fn assert_score(scores: &[(&str, MeanScore)], name: &str, mean: f64, error: f64) {
        let (_, score) = scores.iter().find(|(found, _)| *found == name).unwrap();
        assert!((score.mean - mean).abs() < 1e-12, "{name}: {score:?}");
        assert!((score.standard_error.unwrap() - error).abs() < 1e-12, "{name}: {score:?}");
    }

    #[test]
    fn accuracies_have_binomial_errors_and_are_grouped_by_subject() {
        let mut summary = Summary::default();
        for (right, subject) in [(true, "a"), (false, "a"), (true, "b"), (true, "b")] {
            summary.add(Some(subject), &chose(right));
        }
        let (count, scores) = summary.chosen().unwrap();
        assert_eq!(count, 4);
        // Three of four: sqrt(3/4 * 1/4 / 3).
        assert_score(&scores, "accuracy", 0.75, 0.25);
        assert_score(&scores, "accuracy_per_byte", 0.25, 0.25);
        let subjects = summary.by_subject();
        assert_score(&subjects["a"].1, "accuracy", 0.5, 0.5);
        assert_score(&subjects["b"].1, "accuracy", 1.0, 0.0);
        assert_eq!(summary.written(), None);
    }

    #[test]
    fn subjects_of_mmlu_are_grouped_and_averaged() {
        let mut summary = Summary::default();
        let answers = [
            (true, "anatomy"),
            (false, "anatomy"),
            (true, "marketing"),
            (true, "marketing"),
            (true, "marketing"),
            (true, "marketing"),
            (false, "formal_logic"),
            (true, "formal_logic"),
            (false, "birds"),
            (false, "birds"),
        ];
        for (right, subject) in answers {
            summary.add(Some(subject), &chose(right));
        }
        summary.add(None, &chose(true));
        let groups = summary.by_group();
        assert_eq!(groups.keys().copied().collect::<Vec<_>>(), ["humanities", "other"]);
        // Five of six items, not the mean of a half and one: sqrt(5/6 * 1/6 / 5).
        assert_eq!(groups["other"].0, 6);
        assert_score(&groups["other"].1, "accuracy", 5.0 / 6.0, 1.0 / 6.0);
        assert_score(&groups["humanities"].1, "accuracy", 0.5, 0.5);
        assert_eq!(summary.outside_groups(), BTreeSet::from(["birds"]));
        // Means 1/2, 1, 1/2, 0 with the errors 1/2, 0, 1/2, 0.
        let (count, scores) = summary.over_subjects().unwrap();
        assert_eq!(count, 4);
        assert_score(&scores, "accuracy", 0.5, 0.5_f64.sqrt() / 4.0);
        assert_score(&scores, "accuracy_per_byte", 0.5, 0.5_f64.sqrt() / 4.0);
        summary.add(Some("virology"), &chose(true));
        assert_eq!(summary.over_subjects().unwrap().1[0].1.standard_error, None);
        assert_eq!(Summary::default().over_subjects(), None);
    }

    /// SCROLLS takes the geometric mean of the three means; the mean of the geometric means would be 0 here.
    #[test]
    fn the_geometric_mean_is_that_of_the_means() {
        let mut summary = Summary::default();
        summary.add(None, &wrote(0.5, 0.0));
        summary.add(None, &wrote(0.0, 0.5));
        let (count, scores) = summary.written().unwrap();
        assert_eq!(count, 2);
        assert_score(&scores, "rouge_1", 0.25, 0.25);
        // Without either item the geometric mean is 0, so that the jackknife finds no spread.
        assert_score(&scores, "rouge_geometric_mean", (0.25 * 0.25 * 0.5_f64).cbrt(), 0.0);
        assert_score(&scores, "f1", 0.25, 0.25);
        assert_eq!(summary.chosen(), None);
        let mut one = Summary::default();
        one.add(None, &wrote(0.5, 0.5));
        assert!(one.written().unwrap().1.iter().all(|(_, score)| score.standard_error.is_none()));
    }
}
