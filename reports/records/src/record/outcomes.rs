//! Answers to the questions of an evaluation, in a compact form.

use serde::{Deserialize, Serialize};

use super::{bits, json_float};

/// Answers to the questions (sequences) of an evaluation, in their order. They are exact matches for tasks ranked by
/// exact match, and losses for tasks ranked by perplexity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Packed", into = "Packed")]
pub struct Outcomes {
    /// 16 hex digits of the SHA-256 of the questions. Equal digits mean equal questions.
    pub questions: String,
    /// Answers to the questions.
    pub answers: Answers,
}

/// Answers of one kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Answers {
    /// Whether every scored token of the question was right.
    ExactMatch(Vec<bool>),
    /// Loss of the question in nats per scored token, scaled such that the mean over questions is that of the
    /// evaluation.
    Nll(Losses),
}

/// Losses, quantized to 65,536 steps between the smallest and the largest.
#[derive(Debug, Clone, PartialEq)]
pub struct Losses {
    low: f64,
    high: f64,
    steps: Vec<u16>,
}

/// Number of steps of coarse losses.
const COARSE: u16 = 85;
/// Length of a step of coarse losses, in steps of [`Losses`].
const STEP: u16 = u16::MAX / COARSE;

impl Losses {
    /// Losses of questions with these sums of nats and numbers of scored tokens. A question of `t` tokens has the value
    /// `R + (sum - R t) / mean t` with the evaluation's `R = sum of sums / sum of tokens`: values whose mean is `R` and
    /// whose variance is that of a ratio of sums. `None` without scored tokens or where a sum is not finite.
    pub fn of(sums: &[f64], tokens: &[u64]) -> Option<Self> {
        let all: u64 = tokens.iter().sum();
        if all == 0 || sums.len() != tokens.len() || sums.iter().any(|sum| !sum.is_finite()) {
            return None;
        }
        let ratio = sums.iter().sum::<f64>() / all as f64;
        let mean = all as f64 / sums.len() as f64;
        let value = |(sum, t): (&f64, &u64)| ratio + (sum - ratio * *t as f64) / mean;
        let values: Vec<f64> = sums.iter().zip(tokens).map(value).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let width = if high > low { high - low } else { 1.0 };
        let step = |x: &f64| ((x - low) / width * f64::from(u16::MAX)).round() as u16;
        Some(Self { low, high, steps: values.iter().map(step).collect() })
    }

    /// Returns the losses, each within half a step of the measured value.
    pub fn values(&self) -> impl Iterator<Item = f64> {
        let step = (self.high - self.low) / f64::from(u16::MAX);
        self.steps.iter().map(move |steps| self.low + step * f64::from(*steps))
    }

    /// Rounds the losses to 86 evenly spaced values from the smallest to the largest, which a record writes as a letter
    /// each.
    pub fn coarsen(&mut self) {
        for step in &mut self.steps {
            *step = step.saturating_add(STEP / 2) / STEP * STEP;
        }
    }
}

/// Returns the letter of a coarse loss: printable ASCII from `#` on, without the backslash; `None` for other losses.
fn letter(step: u16) -> Option<char> {
    let index = u8::try_from(step / STEP).ok().filter(|_| step.is_multiple_of(STEP))?;
    let letter = b'#' + index;
    Some(char::from(if letter < b'\\' { letter } else { letter + 1 }))
}

/// Inverse of [`letter`].
fn step_of(letter: u8) -> Option<u16> {
    let index = match letter {
        b'#'..=b'[' => letter - b'#',
        b']'..=b'y' => letter - b'#' - 1,
        _ => return None,
    };
    Some(u16::from(index) * STEP)
}

impl Answers {
    /// Number of answers.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::ExactMatch(right) => right.len(),
            Self::Nll(losses) => losses.steps.len(),
        }
    }

    /// Returns the marked answers alone.
    pub(super) fn only(&self, marks: &[bool]) -> Self {
        fn marked<T: Copy>(all: &[T], marks: &[bool]) -> Vec<T> {
            all.iter().zip(marks).filter(|(_, mark)| **mark).map(|(answer, _)| *answer).collect()
        }
        match self {
            Self::ExactMatch(right) => Self::ExactMatch(marked(right, marks)),
            Self::Nll(losses) => {
                Self::Nll(Losses { steps: marked(&losses.steps, marks), ..losses.clone() })
            }
        }
    }

    /// Returns the answers as numbers: 0 or 1, or nats.
    pub fn values(&self) -> Vec<f64> {
        match self {
            Self::ExactMatch(right) => {
                right.iter().map(|right| f64::from(u8::from(*right))).collect()
            }
            Self::Nll(losses) => losses.values().collect(),
        }
    }
}

/// Outcomes in the form of a record: bits for exact match, steps or coarse steps between `low` and `high` for losses.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Packed {
    questions: String,
    count: usize,
    /// Base64 of one bit for each question, lowest bit of a byte first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exact_match: Option<String>,
    /// Base64 of one little-endian u16 for each question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nll: Option<String>,
    /// One letter for each question, if all losses are coarse; see [`letter`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    coarse_nll: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "json_float::option")]
    low: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "json_float::option")]
    high: Option<f64>,
}

impl From<Outcomes> for Packed {
    fn from(Outcomes { questions, answers }: Outcomes) -> Self {
        let none = Self { questions, ..Self::default() };
        match answers {
            Answers::ExactMatch(right) => {
                Self { count: right.len(), exact_match: Some(bits::encode(&right)), ..none }
            }
            Answers::Nll(Losses { low, high, steps }) => {
                let coarse_nll = steps.iter().map(|step| letter(*step)).collect::<Option<String>>();
                let bytes =
                    || steps.iter().flat_map(|step| step.to_le_bytes()).collect::<Vec<u8>>();
                Self {
                    count: steps.len(),
                    nll: coarse_nll.is_none().then(|| bits::text(&bytes())),
                    coarse_nll,
                    low: Some(low),
                    high: Some(high),
                    ..none
                }
            }
        }
    }
}

impl TryFrom<Packed> for Outcomes {
    type Error = String;

    fn try_from(packed: Packed) -> Result<Self, String> {
        let Packed { questions, count, exact_match, nll, coarse_nll, low, high } = packed;
        let answers = match (exact_match, nll, coarse_nll, low, high) {
            (Some(text), None, None, None, None) => {
                Answers::ExactMatch(bits::decode(&text, count)?)
            }
            (None, None, Some(text), Some(low), Some(high)) => {
                let steps: Option<Vec<u16>> = text.bytes().map(step_of).collect();
                let steps = steps.filter(|steps| steps.len() == count).ok_or_else(|| {
                    format!("outcomes are `{text}`, expected {count} letters from `#` to `y`")
                })?;
                Answers::Nll(Losses { low, high, steps })
            }
            (None, Some(text), None, Some(low), Some(high)) => {
                let bytes = bits::bytes(&text, 2 * count)?;
                let steps = bytes.chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]]));
                Answers::Nll(Losses { low, high, steps: steps.collect() })
            }
            _ => {
                return Err(
                    "outcomes have either `exact_match`, or `nll` or `coarse_nll` together with `low` and `high`"
                        .to_owned()
                );
            }
        };
        Ok(Self { questions, answers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(outcomes: &Outcomes) -> Outcomes {
        let text = serde_json::to_string(outcomes).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn answers_come_back_bit_by_bit() {
        for count in [0, 1, 7, 8, 9, 400] {
            let right = (0..count).map(|i| i % 3 == 0 || i % 7 == 0).collect();
            let kept = Outcomes { questions: "0f".into(), answers: Answers::ExactMatch(right) };
            assert_eq!(round_trip(&kept), kept);
        }
        let text = serde_json::to_string(&Outcomes {
            questions: "0f".into(),
            answers: Answers::ExactMatch(vec![true, false, true, true]),
        });
        assert_eq!(text.unwrap(), r#"{"questions":"0f","count":4,"exact_match":"DQ"}"#);
    }

    #[test]
    fn the_mean_of_the_losses_is_the_evaluations() {
        // 2, 6 and 1 nats over 1, 4 and 1 tokens: 1.5 nats per token.
        let losses = Losses::of(&[2.0, 6.0, 1.0], &[1, 4, 1]).unwrap();
        let values: Vec<f64> = losses.values().collect();
        assert!((values.iter().sum::<f64>() / 3.0 - 1.5).abs() < 1e-5, "{values:?}");
        // The middle one has exactly the ratio, whatever its length.
        assert!((values[1] - 1.5).abs() < 1e-5 && (values[0] - 1.75).abs() < 1e-5);
        let kept = Outcomes { questions: "0f".into(), answers: Answers::Nll(losses) };
        assert_eq!(round_trip(&kept), kept);
        assert_eq!(Losses::of(&[f64::INFINITY], &[1]), None);
        assert_eq!(Losses::of(&[], &[]), None);
        let level = Losses::of(&[0.5, 0.5], &[1, 1]).unwrap();
        assert_eq!(level.values().collect::<Vec<_>>(), [0.5, 0.5]);
    }

    #[test]
    fn coarse_losses_are_near_and_come_back_from_their_letters() {
        let sums: Vec<f64> = (0..1000_u32).map(|i| 1.0 + f64::from(i * i % 997) / 500.0).collect();
        let exact = Losses::of(&sums, &[1; 1000]).unwrap();
        let mut coarse = exact.clone();
        coarse.coarsen();
        let half = (exact.high - exact.low) / 85.0 / 2.0;
        for (exact, coarse) in exact.values().zip(coarse.values()) {
            assert!((exact - coarse).abs() <= 1.001 * half, "{exact} {coarse}");
        }
        let mut twice = coarse.clone();
        twice.coarsen();
        assert_eq!(twice, coarse);
        // Every step has a letter of its own.
        let all =
            Losses { low: 0.0, high: 1.0, steps: (0..=85).map(|index| index * 771).collect() };
        for losses in [coarse, all] {
            let kept = Outcomes { questions: "0f".into(), answers: Answers::Nll(losses) };
            let text = serde_json::to_string(&kept).unwrap();
            assert!(text.contains("coarse_nll") && !text.contains('\\'), "{text}");
            assert_eq!(round_trip(&kept), kept);
        }
        // As records had them before.
        let old = r#"{"questions":"0f","count":2,"nll":"AAD//w","low":1.0,"high":3.0}"#;
        let old: Outcomes = serde_json::from_str(old).unwrap();
        assert_eq!(old.answers.values(), [1.0, 3.0]);
    }

    #[test]
    fn damaged_outcomes_are_refused_with_the_reason() {
        for (text, reason) in [
            (r#"{"questions":"0f","count":9,"exact_match":"DQ"}"#, "1 bytes, expected 2"),
            (r#"{"questions":"0f","count":4,"exact_match":"D?"}"#, "not base64"),
            (r#"{"questions":"0f","count":4}"#, "either"),
            (r#"{"questions":"0f","count":1,"nll":"AAA"}"#, "either"),
            (
                r##"{"questions":"0f","count":2,"coarse_nll":"#","low":1,"high":2}"##,
                "expected 2 letters",
            ),
            (
                r#"{"questions":"0f","count":1,"coarse_nll":"~","low":1,"high":2}"#,
                "`~`, expected 1 letters",
            ),
            (r#"{"questions":"0f","count":1,"exact_match":"AQ","more":1}"#, "unknown field `more`"),
        ] {
            let error = serde_json::from_str::<Outcomes>(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
