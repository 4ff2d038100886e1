//! What a suite asks of the report on its records: criteria, the base of an ablation, planned comparisons, claims of papers.

mod question;

use serde::{Deserialize, Serialize};

pub use self::question::{ExpectedResult, PaperClaim, Question, Region, UseCase};

/// Error of the settings of a report.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The question of the report or a comparison of its claims is invalid.
    #[error("the planned questions of the report: {reason}")]
    Question {
        /// Problem, with what was expected.
        reason: String,
    },
    /// A setting is outside its range.
    #[error("the report setting `{field}` is {value}, expected {expected}")]
    Setting {
        /// Name of the setting.
        field: &'static str,
        /// Value that was given.
        value: f64,
        /// Values that are allowed.
        expected: &'static str,
    },
}

/// Criteria of a report. METHODOLOGY.md lists the defaults; pages show the values that were used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Smallest exact match at which a seed counts as having solved training: mean over all evaluations in
    /// distribution, above 0, at most 1. Default 0.99.
    pub solved_exact_match: f64,
    /// Loss, in nats per scored token, that defines the time to solve: the first point of the training curve with at
    /// most this loss, for seeds that solved training. Above 0. Default 0.05, which is a probability of 95% for the
    /// correct token.
    pub solved_loss: f64,
    /// Exact match that defines the effective length: the largest length up to which exact match is at least this value
    /// at every evaluated length. Above 0, at most 1. Default 0.9.
    pub effective_exact_match: f64,
    /// Name of the base encoding of an ablation, with which all others are compared. Default: none.
    pub ablation_base: Option<String>,
    /// Comparison that the suite defines in advance. Default: none.
    pub question: Option<Question>,
    /// Claims of papers with which the report compares the results. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<PaperClaim>,
    /// Whether Holm's correction covers the comparisons of each claim alone, as for comparisons that a plan defines one
    /// by one. Default: false, so that the correction covers the comparisons of all claims.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub correct_each_claim: bool,
    /// Uses of encodings; the report lists the best encodings for each use. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<UseCase>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            solved_exact_match: 0.99,
            solved_loss: 0.05,
            effective_exact_match: 0.9,
            ablation_base: None,
            question: None,
            claims: Vec::new(),
            correct_each_claim: false,
            uses: Vec::new(),
        }
    }
}

impl Settings {
    /// Iterates over the question and the comparisons of the claims, in this order.
    pub fn questions(&self) -> impl Iterator<Item = &Question> {
        self.question.iter().chain(self.claims.iter().flat_map(|claim| &claim.comparisons))
    }

    /// Checks that all settings are in range.
    ///
    /// # Errors
    /// [`SettingsError::Setting`], which names the field.
    pub fn check(&self) -> Result<(), SettingsError> {
        for question in self.questions() {
            question.check().map_err(|reason| SettingsError::Question { reason })?;
        }
        let share = "a share above 0 and at most 1";
        let fields = [
            ("solved_exact_match", self.solved_exact_match, 1.0, share),
            ("effective_exact_match", self.effective_exact_match, 1.0, share),
            ("solved_loss", self.solved_loss, f64::MAX, "a number of nats above 0"),
        ];
        for (field, value, most, expected) in fields {
            if !(value > 0.0 && value <= most) {
                return Err(SettingsError::Setting { field, value, expected });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_pass_and_nonsense_is_refused_by_name() {
        assert!(Settings::default().check().is_ok());
        let told = |settings: Settings| settings.check().unwrap_err().to_string();
        let text = told(Settings { solved_exact_match: 99.0, ..Settings::default() });
        assert!(text.contains("solved_exact_match") && text.contains("99"), "{text}");
        let text = told(Settings { effective_exact_match: f64::NAN, ..Settings::default() });
        assert!(text.contains("effective_exact_match"), "{text}");
        let text = told(Settings { solved_loss: 0.0, ..Settings::default() });
        assert!(text.contains("solved_loss"), "{text}");
    }

    #[test]
    fn an_unknown_key_is_refused_and_a_missing_one_has_its_default() {
        let error = serde_json::from_str::<Settings>(r#"{"solved": 1}"#).unwrap_err().to_string();
        assert!(error.contains("`solved`") && error.contains("solved_loss"), "{error}");
        let settings: Settings = serde_json::from_str(r#"{"ablation_base": "rope"}"#).unwrap();
        assert_eq!(
            settings,
            Settings { ablation_base: Some("rope".into()), ..Settings::default() }
        );
    }
}
