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
mod tests {
    use pe_zoo::cost::InTable3;

    use super::config::{BUILT_IN, CostConfig};
    use super::*;

    /// Computes every row of every published table from the encodings' own formulas.
    #[test]
    fn published_tables_are_met_to_every_printed_digit() {
        let mut rows = 0;
        for (name, _) in BUILT_IN {
            let config = CostConfig::named(name).unwrap();
            for published in &config.published {
                let encoding = crate::encodings::parse(&published.encoding).unwrap();
                let bill = Bill::of(&config, &encoding).unwrap();
                let expected = [&published.flops, &published.macs, &published.params];
                assert_eq!(
                    bill.as_in_table_3().each_ref(),
                    expected,
                    "{name}: {}",
                    published.encoding
                );
                rows += 1;
            }
        }
        assert_eq!(rows, 4, "RoPE, FIRE, T5, TAPE");
    }

    /// Computes TAPE's table 3 from costs written down in this test, independently of the encodings' formulas.
    #[test]
    fn the_rules_of_counting_give_tapes_table_3() {
        let config = CostConfig::named("tape-155m").unwrap();
        let (layers, heads, width, n) = (12, 12, 768, 1024);
        let pairs = layers * n * n;
        let fire = Cost::none()
            .pair_product("1 -> 32 -> heads", pairs * (32 + 32 * heads))
            .pair_activation("ReLU", pairs * 32, 1)
            .pair_elementwise("logarithms and sum of logits", pairs * (4 + heads));
        let t5 = Cost::none().pair_elementwise("sum of logits", pairs * heads);
        let inner = 48;
        let tape = Cost::none()
            .pair_product("cosines and sines mixed by the attention", pairs * 2 * width)
            .product("W_X", layers * n * width * inner)
            .in_table_3(InTable3::Fitted { times: 2 })
            .contraction("W_U and W_D on cosines and sines", layers * n * 4 * inner * width)
            .contraction("W_A on cosines and sines", layers * n * 2 * heads * width)
            .activation("SiLU", layers * n * inner, 4);
        for (cost, more_params, expected) in [
            (Cost::none(), 0, ["321.10", "160.46", "154.89"]),
            (fire, 12 * (33 * 12 + 66), ["331.97", "165.69", "154.90"]),
            (t5, 12 * 32 * 12, ["321.10", "160.46", "154.90"]),
            (tape, 12 * (2 * 48 * 12 + 48 * 768 + 12 * 12), ["365.65", "180.69", "155.33"]),
        ] {
            let bill = Bill {
                cost: config.model.cost(config.vocabulary, n).and(cost),
                params: (config.model.param_count(config.vocabulary) + more_params) as u64,
                len: n,
            };
            assert_eq!(bill.as_in_table_3(), expected);
        }
    }

    #[test]
    fn the_honest_count_is_less_in_products_and_more_in_the_rest() {
        let config = CostConfig::named("tape-155m").unwrap();
        let bill = Bill::of(&config, &crate::encodings::parse("rope").unwrap()).unwrap();
        let (paper, honest) = (bill.cost.as_in_table_3(), bill.honest());
        // The attention's 19.3 G for all pairs become half of that and the diagonal.
        let saved = 2 * 1024 * 1024 * 768 * 12 - 1024 * 1025 * 768 * 12;
        assert_eq!(paper.macs - honest.macs, saved);
        assert!(honest.flops - 2 * honest.macs > paper.flops - 2 * paper.macs);
    }

    #[test]
    fn an_unknown_configuration_suggests_the_nearest() {
        let error = CostConfig::named("tape-155").unwrap_err().to_string();
        assert!(error.contains("did you mean `tape-155m`?"), "{error}");
        assert!(
            CostConfig::named("no/such.toml").unwrap_err().to_string().contains("no/such.toml")
        );
    }
}
