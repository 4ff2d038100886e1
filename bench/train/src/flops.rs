//! Analytic cost of a model with an encoding. One multiply-accumulate is two operations, all pairs of tokens within the windows
//! of the layers are counted, and a training step counts as three forward passes.

pub mod config;

use burn::module::Module;
use pe_zoo::cost::CostTotals;
use pe_zoo::{Combination, Cost, Dims, PeError};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use records::{FlopCount, ParamCount};

use pe_zoo::model::ModelConfig;

/// Number of learned parameters of an encoding: by formula, or counted by building it.
fn params(encoding: &Combination, dims: &Dims) -> Result<usize, PeError> {
    if let Some(count) = encoding.param_count(dims) {
        return Ok(count);
    }
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    Ok(encoding.init(dims, &mut rng, &pe_zoo::probe::device())?.num_params())
}

/// A training step whose operations are counted.
#[derive(Debug, Clone, Copy)]
pub struct CountedStep<'a> {
    /// Encoding of the model.
    pub encoding: &'a Combination,
    /// Settings of the model.
    pub model: &'a ModelConfig,
    /// Sizes that the encoding is built for.
    pub dims: Dims,
    /// Size of the vocabulary.
    pub vocabulary: usize,
    /// Number of sequences of the step.
    pub sequences: usize,
    /// Number of tokens of each sequence.
    pub tokens: usize,
}

impl CountedStep<'_> {
    /// Whether the encoding has formulas for its parameters and its products.
    pub fn is_stated(&self) -> bool {
        let Self { encoding, dims, tokens, .. } = self;
        encoding.param_count(dims).is_some() && encoding.cost(dims, *tokens).is_some()
    }

    /// Operations by formula. Encodings without a formula count as 0.
    pub fn count(&self) -> FlopCount {
        self.with(&self.encoding.cost(&self.dims, self.tokens).unwrap_or_default())
    }

    /// Operations, with the products of the encoding counted by running it if it has no formula.
    ///
    /// # Errors
    /// [`PeError::Probe`] if they cannot be counted.
    pub fn measured(&self) -> Result<FlopCount, PeError> {
        Ok(self.with(&self.encoding.counted_cost(&self.dims, self.tokens)?))
    }

    /// Parameters of the model, of which the encoding has `own`.
    pub fn params(&self, own: usize) -> ParamCount {
        let total = (self.model.param_count(self.vocabulary) + own) as u64;
        ParamCount { total, encoding: own as u64 }
    }

    fn with(&self, own: &Cost) -> FlopCount {
        let model = self.model.cost(self.vocabulary, self.tokens);
        let model = model.within(&self.encoding.horizons(self.dims.layers));
        let macs = model.macs_within(self.tokens) + own.macs_within(self.tokens);
        FlopCount {
            train_step: 3 * 2 * macs * self.sequences as u64,
            forward_per_token: 2 * macs / (self.tokens as u64).max(1),
        }
    }
}

/// Cost of one pass over one sequence, with the number of parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bill {
    /// All items, the model's own first.
    pub cost: Cost,
    /// Number of learned parameters, including the encoding.
    pub params: u64,
    /// Number of tokens of the sequence.
    pub len: usize,
}

impl Bill {
    /// Cost of a model with an encoding.
    ///
    /// # Errors
    /// [`PeError`] if the encoding refuses the sizes.
    pub fn of(config: &config::CostConfig, encoding: &Combination) -> Result<Self, PeError> {
        let (dims, len) = (config.dims(), config.len);
        encoding.check(&dims)?;
        let params = config.model.param_count(config.vocabulary) + params(encoding, &dims)?;
        let own = config.model.cost(config.vocabulary, len);
        let own = own.within(&encoding.horizons(dims.layers));
        Ok(Self { cost: own.and(encoding.counted_cost(&dims, len)?), params: params as u64, len })
    }

    /// Cost in the format of table 3 of TAPE: `[FLOPs in 1e9, MACs in 1e9, parameters in 2^20]`.
    pub fn as_in_table_3(&self) -> [String; 3] {
        let CostTotals { macs, flops } = self.cost.as_in_table_3();
        let billions = |n: u64| format!("{:.2}", n as f64 / 1e9);
        [billions(flops), billions(macs), format!("{:.2}", self.params as f64 / f64::from(1 << 20))]
    }

    /// Operations that a causal model needs: each visible pair of tokens once, every operation counted.
    pub fn honest(&self) -> CostTotals {
        self.cost.causal(self.len)
    }
}

#[cfg(test)]
mod tests;
