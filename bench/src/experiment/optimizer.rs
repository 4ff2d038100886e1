//! Settings of AdamW and its learning-rate schedule.

use serde::{Deserialize, Serialize};

use super::error::ExperimentError;

/// Decay of the learning rate after the warm-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decay {
    /// Linear decay of the learning rate.
    #[default]
    Linear,
    /// Decay along half a period of a cosine.
    Cosine,
    /// Constant learning rate without decay.
    Constant,
}

/// Settings of AdamW and its learning-rate schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerConfig {
    /// Learning rate after the warm-up.
    pub learning_rate: f64,
    /// Number of warm-up steps, in which the learning rate rises linearly from 0.
    pub warmup_steps: usize,
    /// Decay of the learning rate after the warm-up.
    pub decay: Decay,
    /// Final learning rate as a share of the peak.
    pub final_share: f64,
    /// Decay rates of the two moments.
    pub betas: [f64; 2],
    /// Constant added to the root of the second moment.
    pub epsilon: f64,
    /// Decoupled weight decay, on all parameters.
    pub weight_decay: f64,
    /// Maximum global norm of the gradient; `None`: no clipping.
    pub clip_norm: Option<f64>,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self {
            learning_rate: 1e-3,
            warmup_steps: 50,
            decay: Decay::Linear,
            final_share: 0.0,
            betas: [0.9, 0.999],
            epsilon: 1e-8,
            weight_decay: 0.01,
            clip_norm: Some(1.0),
        }
    }
}

impl OptimizerConfig {
    /// Checks that all numbers are in range.
    ///
    /// # Errors
    /// [`ExperimentError::Number`], which names the field.
    pub fn check(&self) -> Result<(), ExperimentError> {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let share = |x: f64| (0.0..1.0).contains(&x);
        let not_negative = |x: f64| x.is_finite() && x >= 0.0;
        let checks = [
            ("train.optimizer.learning_rate", self.learning_rate, positive(self.learning_rate)),
            (
                "train.optimizer.final_share",
                self.final_share,
                (0.0..=1.0).contains(&self.final_share),
            ),
            ("train.optimizer.betas", self.betas[0], share(self.betas[0])),
            ("train.optimizer.betas", self.betas[1], share(self.betas[1])),
            ("train.optimizer.epsilon", self.epsilon, positive(self.epsilon)),
            ("train.optimizer.weight_decay", self.weight_decay, not_negative(self.weight_decay)),
            (
                "train.optimizer.clip_norm",
                self.clip_norm.unwrap_or(1.0),
                self.clip_norm.is_none_or(positive),
            ),
        ];
        match checks.into_iter().find(|(_, _, fine)| !fine) {
            None => Ok(()),
            Some((field, value, _)) => Err(ExperimentError::Number {
                field,
                value: value.to_string(),
                expected: "a finite number in range (rates above 0, shares in 0..1)".to_owned(),
            }),
        }
    }

    /// Learning rate of step `step` (from 0) of `steps`.
    pub fn learning_rate_at(&self, step: usize, steps: usize) -> f64 {
        if step < self.warmup_steps {
            return self.learning_rate * (step + 1) as f64 / self.warmup_steps as f64;
        }
        let left = steps.saturating_sub(self.warmup_steps).max(1) as f64;
        let done = (step - self.warmup_steps) as f64 / left;
        let share = match self.decay {
            Decay::Linear => 1.0 - done,
            Decay::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * done).cos()),
            Decay::Constant => 1.0,
        };
        self.learning_rate * (self.final_share + (1.0 - self.final_share) * share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_rises_peaks_and_falls_to_its_final_share() {
        let config = OptimizerConfig { warmup_steps: 10, ..OptimizerConfig::default() };
        assert!((config.learning_rate_at(0, 110) - 1e-4).abs() < 1e-12);
        assert!((config.learning_rate_at(9, 110) - 1e-3).abs() < 1e-12);
        assert!((config.learning_rate_at(10, 110) - 1e-3).abs() < 1e-12);
        assert!((config.learning_rate_at(60, 110) - 5e-4).abs() < 1e-12);
        assert!(config.learning_rate_at(109, 110) < 1.1e-5);
        let cosine = OptimizerConfig { decay: Decay::Cosine, final_share: 0.1, ..config.clone() };
        assert!((cosine.learning_rate_at(60, 110) - 5.5e-4).abs() < 1e-12);
        let constant = OptimizerConfig { decay: Decay::Constant, ..config };
        assert!((constant.learning_rate_at(109, 110) - 1e-3).abs() < 1e-12);
    }

    #[test]
    fn a_rate_of_zero_is_refused_by_name() {
        let config = OptimizerConfig { learning_rate: 0.0, ..OptimizerConfig::default() };
        assert!(config.check().unwrap_err().to_string().contains("train.optimizer.learning_rate"));
    }
}
