//! Questions of an evaluation that lie outside of the training distribution.

use serde::{Deserialize, Serialize};

use super::outcomes::{Answers, Outcomes};
use super::{bits, json_float};

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
    /// Takes the exact match from the answers to the single questions: JSON may change the last digit of a number.
    pub(crate) fn take_answers(&mut self, outcomes: &Outcomes) {
        let Some(Outcomes { answers: Answers::ExactMatch(right), .. }) =
            self.questions.of(outcomes)
        else {
            return;
        };
        let exact_match = right.iter().filter(|right| **right).count() as f64 / right.len() as f64;
        // They are equal where a question has one token.
        if self.token_accuracy == Some(self.exact_match) {
            self.token_accuracy = Some(exact_match);
        }
        self.exact_match = exact_match;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_choose_answers_and_take_a_bit_each() {
        let marks = QuestionMarks(vec![true, false, true, true, false]);
        let answers = Answers::ExactMatch(vec![true, true, false, false, true]);
        let outcomes = Outcomes { questions: "0f".into(), answers };
        assert_eq!(marks.of(&outcomes).unwrap().answers.values(), [1.0, 0.0, 0.0]);
        assert_eq!(marks.count(), 3);
        let text = serde_json::to_string(&marks).unwrap();
        assert_eq!(text, r#"{"count":5,"marked":"DQ"}"#);
        assert_eq!(serde_json::from_str::<QuestionMarks>(&text).unwrap(), marks);
        assert_eq!(QuestionMarks(vec![true]).of(&outcomes), None);
        let rounded = 0.333_333_333;
        let mut unseen = Unseen {
            questions: marks,
            exact_match: rounded,
            token_accuracy: Some(rounded),
            nll: None,
            bits_per_byte: None,
            chance: None,
        };
        unseen.take_answers(&outcomes);
        assert_eq!((unseen.exact_match, unseen.token_accuracy), (1.0 / 3.0, Some(1.0 / 3.0)));
        unseen = Unseen { token_accuracy: Some(0.5), ..unseen };
        unseen.take_answers(&outcomes);
        assert_eq!(unseen.token_accuracy, Some(0.5));
    }
}
