//! Autoregressive generation with a key-value cache.

use std::time::Instant;

use anyhow::{Result, bail, ensure};
use burn::tensor::Device;
use pe_zoo::attention::Weights;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use pe_zoo::model::{Cache, Decoder, Dropout};
use train::run::scored::{read, token_ids};

/// Method that chooses the next token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sampling {
    /// The token with the largest logit; the first among equals.
    Greedy,
    /// Nucleus sampling from the predicted distribution.
    Sampled {
        /// Divisor of the logits, above 0.
        temperature: f64,
        /// Probability mass of the nucleus, above 0 and at most 1.
        top_p: f64,
    },
}

impl Sampling {
    /// Checks that the settings are in range.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn check(self) -> Result<()> {
        let Self::Sampled { temperature, top_p } = self else { return Ok(()) };
        ensure!(
            temperature.is_finite() && temperature > 0.0,
            "temperature is {temperature}, expected a number above 0; leave out --temperature for greedy decoding"
        );
        ensure!(
            top_p > 0.0 && top_p <= 1.0,
            "top_p is {top_p}, expected a number above 0 and at most 1; change --top-p"
        );
        Ok(())
    }

    /// Chooses the next token by its logits.
    pub fn choose(self, logits: &[f32], rng: &mut ChaCha8Rng) -> u32 {
        match self {
            Self::Greedy => {
                let better = |best: usize, next: usize| {
                    if logits[next] > logits[best] { next } else { best }
                };
                (0..logits.len()).reduce(better).unwrap_or(0) as u32
            }
            Self::Sampled { temperature, top_p } => sample(logits, temperature, top_p, rng),
        }
    }
}

fn sample(logits: &[f32], temperature: f64, top_p: f64, rng: &mut ChaCha8Rng) -> u32 {
    let mut ranked = (0_u32..).zip(logits.iter().map(|l| f64::from(*l))).collect::<Vec<_>>();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let largest = ranked.first().map_or(0.0, |(_, logit)| *logit);
    for (_, logit) in &mut ranked {
        *logit = ((*logit - largest) / temperature).exp();
    }
    let total = ranked.iter().map(|(_, weight)| weight).sum::<f64>();
    let mut kept = 0.0;
    let nucleus = ranked.iter().take_while(|(_, weight)| {
        let before = kept;
        kept += weight;
        before < top_p * total
    });
    let nucleus = nucleus.copied().collect::<Vec<_>>();
    let mut left = rng.random::<f64>() * nucleus.iter().map(|(_, weight)| weight).sum::<f64>();
    for (token, weight) in &nucleus {
        left -= weight;
        if left < 0.0 {
            return *token;
        }
    }
    // Rounding may leave a small remainder.
    nucleus.last().map_or(0, |(token, _)| *token)
}

/// Generation in progress: a model with its cache.
#[derive(Debug)]
pub struct Generation<'a> {
    model: &'a Decoder,
    id: &'a str,
    device: Device,
    cache: Cache,
}

impl<'a> Generation<'a> {
    /// Creates a generation with an empty cache.
    pub fn new(model: &'a Decoder, id: &'a str, device: &Device) -> Self {
        Self { model, id, device: device.clone(), cache: Cache::new(model.layers()) }
    }

    /// Appends tokens and returns the logits of the next token, `[V]`.
    ///
    /// # Errors
    /// If `tokens` is empty, a token is not in the vocabulary or the encoding has no positions.
    pub fn read(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        ensure!(!tokens.is_empty(), "the prompt is empty, expected at least one token");
        if let Some(token) = tokens.iter().find(|t| **t as usize >= self.model.vocabulary()) {
            bail!(
                "the prompt contains token {token}, expected less than {}, the size of the vocabulary",
                self.model.vocabulary()
            );
        }
        let at = self.model.positions(self.id, self.cache.len(), tokens.len())?;
        let ids = token_ids(tokens, &self.device).unsqueeze_dim::<2>(0);
        let pass =
            self.model.forward(ids, &at, Some(&mut self.cache), Dropout::off(), Weights::Drop);
        let last = pass.hidden.slice_dim(1, tokens.len() - 1..tokens.len()).squeeze_dim::<2>(1);
        read(self.model.logits(last))
    }
}

/// Request for a generation: prompt, limits and end.
#[derive(Debug, Clone, Copy)]
pub struct GenerateRequest<'a> {
    /// Tokens of the prompt.
    pub prompt: &'a [u32],
    /// Maximum number of generated tokens.
    pub tokens: usize,
    /// Method that chooses each token.
    pub choice: Sampling,
    /// Tokens that end the generation; they are not part of the result.
    pub end: &'a [u32],
}

/// Generated tokens with the times of the passes.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratedText {
    /// The tokens after the prompt.
    pub tokens: Vec<u32>,
    /// Wall time of the forward pass over the prompt.
    pub prefill_seconds: f64,
    /// Wall time of all later forward passes.
    pub decode_seconds: f64,
    /// Number of later forward passes.
    pub decode_passes: usize,
}

/// Generates tokens after a prompt; `on_token` is called with each of them.
///
/// # Errors
/// If a setting or token is out of range, or the encoding has no positions.
pub fn generate(
    mut generation: Generation<'_>,
    request: GenerateRequest<'_>,
    rng: &mut ChaCha8Rng,
    on_token: &mut dyn FnMut(u32),
) -> Result<GeneratedText> {
    request.choice.check()?;
    let start = Instant::now();
    let mut logits = generation.read(request.prompt)?;
    let prefill_seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let (mut tokens, mut decode_passes) = (Vec::new(), 0);
    while tokens.len() < request.tokens {
        let token = request.choice.choose(&logits, rng);
        if request.end.contains(&token) {
            break;
        }
        tokens.push(token);
        on_token(token);
        if tokens.len() < request.tokens {
            logits = generation.read(&[token])?;
            decode_passes += 1;
        }
    }
    let decode_seconds = start.elapsed().as_secs_f64();
    Ok(GeneratedText { tokens, prefill_seconds, decode_seconds, decode_passes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    const LOGITS: [f32; 4] = [0.0, 2.0, 1.0, 2.0];

    fn shares(choice: Sampling) -> [f64; 4] {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut counts = [0.0; 4];
        for _ in 0..20_000 {
            counts[choice.choose(&LOGITS, &mut rng) as usize] += 1.0 / 20_000.0;
        }
        counts
    }

    #[test]
    fn greedy_takes_the_first_of_the_likeliest() {
        assert_eq!(shares(Sampling::Greedy).map(|s| s > 0.0), [false, true, false, false]);
    }

    #[test]
    fn samples_have_the_softmax_at_the_temperature() {
        for temperature in [0.5, 1.0, 3.0] {
            let weights = LOGITS.map(|l| (f64::from(l) / temperature).exp());
            let total = weights.iter().sum::<f64>();
            let drawn = shares(Sampling::Sampled { temperature, top_p: 1.0 });
            for (share, weight) in drawn.iter().zip(weights) {
                // Five deviations of a share among 20,000 draws.
                assert!((share - weight / total).abs() < 0.018, "{temperature}: {drawn:?}");
            }
        }
    }

    #[test]
    fn the_nucleus_is_the_fewest_tokens_with_the_share() {
        // Probabilities: 0.05, 0.4, 0.15, 0.4.
        let alive = |top_p| shares(Sampling::Sampled { temperature: 1.0, top_p }).map(|s| s > 0.0);
        assert_eq!(alive(0.3), [false, true, false, false]);
        assert_eq!(alive(0.5), [false, true, false, true]);
        assert_eq!(alive(0.9), [false, true, true, true]);
        assert_eq!(alive(1.0), [true; 4]);
    }

    #[test]
    fn numbers_that_cannot_work_are_refused_by_name() {
        let refused = |temperature, top_p| {
            Sampling::Sampled { temperature, top_p }.check().unwrap_err().to_string()
        };
        assert!(refused(0.0, 1.0).contains("temperature is 0"));
        assert!(refused(f64::NAN, 1.0).contains("temperature is NaN"));
        assert!(refused(1.0, 0.0).contains("top_p is 0") && refused(1.0, 1.1).contains("1.1"));
    }
}
