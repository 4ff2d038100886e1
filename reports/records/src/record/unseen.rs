//! Questions of an evaluation that lie outside of the training distribution.

use serde::{Deserialize, Serialize};

use super::bits;
use super::json_float;
use super::outcomes::{Answers, Outcomes};

/// One mark for each question of an evaluation: whether it lies outside of the training distribution in the way that its
/// evaluation does, by its length or by its split.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PackedMarks", into = "PackedMarks")]
pub struct QuestionMarks(pub Vec<bool>);

impl QuestionMarks {
    /// Number of questions that lie outside.
    pub fn count(&self) -> u64 {
        self.0.iter().filter(|mark| **mark).count() as u64
    }

    /// Returns the outcomes of the marked questions alone; `None` if there is not one mark for each outcome.
    pub(crate) fn of(&self, outcomes: &Outcomes) -> Option<Outcomes> {
        (outcomes.answers.len() == self.0.len())
            .then(|| Outcomes { answers: outcomes.answers.only(&self.0), ..outcomes.clone() })
    }
}

/// Marks as a file has them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PackedMarks {
    count: usize,
    /// Base64 of one bit for each question, lowest bit of a byte first.
    marked: String,
}

impl From<QuestionMarks> for PackedMarks {
    fn from(QuestionMarks(marks): QuestionMarks) -> Self {
        Self { count: marks.len(), marked: bits::encode(&marks) }
    }
}

impl TryFrom<PackedMarks> for QuestionMarks {
    type Error = String;

    fn try_from(PackedMarks { count, marked }: PackedMarks) -> Result<Self, String> {
        bits::decode(&marked, count).map(Self)
    }
}

/// Results on the questions that lie outside of the training distribution, in an evaluation that has others as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unseen {
    /// Marks of these questions.
    pub questions: QuestionMarks,
    /// Exact match, 0 to 1.
    #[serde(with = "json_float")]
    pub exact_match: f64,
    /// Token accuracy, 0 to 1; `None` if it is not known by question.
    #[serde(default, with = "json_float::option", skip_serializing_if = "Option::is_none")]
    pub token_accuracy: Option<f64>,
    /// Negative log-likelihood in nats per scored token; `None` if it is not known by question.
    #[serde(default, with = "json_float::option", skip_serializing_if = "Option::is_none")]
    pub nll: Option<f64>,
    /// Bits per byte of text; `None` unless the task is text.
    #[serde(default, with = "json_float::option", skip_serializing_if = "Option::is_none")]
    pub bits_per_byte: Option<f64>,
    /// Exact match of guessing; `None` if unknown.
    #[serde(default, with = "json_float::option", skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
}

impl Unseen {
    /// Returns the results as far as exact matches of single questions tell them; `None` for losses, or if there is not one
    /// mark for each answer. `tokens` is the number of scored tokens of a question, if it is the same for all.
    pub(crate) fn from_answers(
        questions: QuestionMarks,
        chance: Option<f64>,
        outcomes: &Outcomes,
        tokens: Option<u64>,
    ) -> Option<Self> {
        let Answers::ExactMatch(right) = &questions.of(outcomes)?.answers else { return None };
        let hits = right.iter().filter(|right| **right).count();
        let exact_match = hits as f64 / right.len() as f64;
        let token_accuracy = (tokens == Some(1)).then_some(exact_match);
        Some(Self {
            questions,
            exact_match,
            token_accuracy,
            nll: None,
            bits_per_byte: None,
            chance,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_marked_questions_are_those_of_their_answers() {
        let marks = QuestionMarks(vec![true, false, true, true, false]);
        let answers = Answers::ExactMatch(vec![true, true, false, false, true]);
        let outcomes = Outcomes { questions: "0f".into(), answers };
        let unseen = Unseen::from_answers(marks.clone(), None, &outcomes, Some(1)).unwrap();
        assert!((unseen.exact_match - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(unseen.token_accuracy, Some(unseen.exact_match));
        let several = Unseen::from_answers(marks.clone(), None, &outcomes, Some(2)).unwrap();
        assert_eq!(several.token_accuracy, None);
        assert_eq!(marks.of(&outcomes).unwrap().answers.values(), [1.0, 0.0, 0.0]);
        assert_eq!(marks.count(), 3);
        let text = serde_json::to_string(&unseen).unwrap();
        assert!(text.contains(r#""questions":{"count":5,"marked":"DQ"}"#), "{text}");
        let read: Unseen = serde_json::from_str(&text).unwrap();
        assert_eq!((&read.questions, serde_json::to_string(&read).unwrap()), (&marks, text));
        assert_eq!(Unseen::from_answers(QuestionMarks(vec![true]), None, &outcomes, None), None);
    }
}
