//! Scalar reference of RoPE with its scalings, learned frequencies, imaginary heads and far distances.

use super::{Far, Pairs, Rope, Scaling};
use crate::reference::rope::ScalarRotation;
use crate::reference::{Heads, ScalarInput, ScalarReference, dot, rope_scaling, values_f64};
use crate::settings::learned;

impl Rope {
    /// Computes frequencies and attention factor at a length by each source's equation.
    pub(super) fn equations(&self, len: usize) -> (Vec<f64>, f64) {
        use rope_scaling as eq;
        let (base, dim) = (self.config.base, self.turning);
        let original = |given: Option<usize>| given.unwrap_or(self.train_len);
        let each = |frequency: &dyn Fn(eq::ScalarPair) -> f64| {
            (0..dim / 2).map(|m| frequency(eq::ScalarPair { base, dim, m })).collect()
        };
        let plain = 1.0;
        match &self.config.scaling {
            Scaling::None => (each(&eq::plain), plain),
            Scaling::Linear { factor } => (each(&|pair| eq::linear(pair, *factor)), plain),
            Scaling::Ntk { factor } => (each(&|pair| eq::ntk(pair, *factor)), plain),
            Scaling::Dynamic { factor, original_max_position_embeddings } => {
                let original = original(*original_max_position_embeddings);
                (each(&|pair| eq::dynamic(pair, *factor, len, original)), plain)
            }
            Scaling::Yarn(yarn) => {
                let ramp = eq::ScalarRamp {
                    fast: yarn.beta_fast,
                    slow: yarn.beta_slow,
                    original: original(yarn.original_max_position_embeddings),
                    truncate: yarn.truncate,
                };
                let extrapolation = yarn.extrapolation_factor.unwrap_or(1.0);
                let frequency = |pair| eq::yarn(pair, yarn.factor(), extrapolation, ramp);
                let mscales = yarn.mscale.zip(yarn.mscale_all_dim).map(|(a, b)| [a, b]);
                let attention = yarn
                    .attention_factor
                    .unwrap_or_else(|| eq::yarn_attention(yarn.factor(), mscales));
                (each(&frequency), attention)
            }
            Scaling::PartNtk(part) => {
                let original = original(part.original_max_position_embeddings);
                let frequency = |pair| {
                    eq::part_ntk(
                        pair,
                        part.factor,
                        part.ntk_factor,
                        part.extrapolation_factor,
                        original,
                    )
                };
                (each(&frequency), plain)
            }
            // A sequence of scalings has no equation of its own; `fixtures/options.json` has numbers of it.
            Scaling::Composed { .. } => {
                let spectrum = self.config.scaling.spectrum(base, dim, self.train_len, len);
                (spectrum.frequencies, spectrum.attention_factor)
            }
            Scaling::LongRope(long) => {
                let original = original(long.original_max_position_embeddings);
                let divisors = if len > original { &long.long_factor } else { &long.short_factor };
                let attention = long.attention_factor.unwrap_or_else(|| {
                    eq::longrope_attention(long.factor.unwrap_or(1.0), original)
                });
                (each(&|pair| eq::longrope(pair, divisors)), attention)
            }
            Scaling::Llama3(llama) => {
                let original = llama.original_max_position_embeddings;
                let (low, high) = (llama.low_freq_factor, llama.high_freq_factor);
                (each(&|pair| eq::llama3(pair, llama.factor, low, high, original)), plain)
            }
            Scaling::Proportional { partial_rotary_factor, factor } => {
                (each(&|pair| eq::proportional(pair, *partial_rotary_factor, *factor)), plain)
            }
            Scaling::Clipped { pairs, hard } => {
                (each(&|pair| eq::clipped(pair, (*pairs).min(pair.dim / 2), *hard)), plain)
            }
            Scaling::HighFrequency { original_max_position_embeddings } => {
                let original = original(*original_max_position_embeddings);
                (each(&|pair| eq::high_frequency(pair, original)), plain)
            }
        }
    }
}

impl Rope {
    fn scalar_rotation(&self, input: &ScalarInput) -> ScalarRotation {
        let last = input.positions.len().checked_sub(1).map(|last| input.position(last));
        let (mut frequencies, factor) = self.equations(last.map_or(0, |last| last as usize + 1));
        if let Some(logs) = learned(&self.log_factors, input.layer) {
            let logs = values_f64(logs);
            frequencies.iter_mut().zip(logs).for_each(|(f, log)| *f *= log.exp());
        }
        let interleaved = self.config.layout == Pairs::Interleaved;
        ScalarRotation { frequencies, factor, interleaved }
    }

    /// The problem with each second head reading query and key of the head before it, if heads are imaginary.
    fn shared(&self, input: &ScalarInput) -> ScalarInput {
        let mut shared = input.clone();
        if self.config.imaginary {
            for vectors in [&mut shared.q, &mut shared.k] {
                for head in (1..vectors.len()).step_by(2) {
                    let (before, own) = vectors.split_at_mut(head);
                    own[0].clone_from(&before[head - 1]);
                }
            }
        }
        shared
    }

    /// Angle that the query of a head is turned by in addition to that of its position.
    fn phase(&self, head: usize) -> f64 {
        let turned = self.config.imaginary && head % 2 == 1;
        if turned { -std::f64::consts::FRAC_PI_2 } else { 0.0 }
    }
}

impl ScalarReference for Rope {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        let rotation = self.scalar_rotation(input);
        self.shared(input).changed(
            |head, u, column| rotation.turned(u, input.position(column), self.phase(head)),
            |_, u, column| rotation.turned(u, input.position(column), 0.0),
        )
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        if self.config.far == Far::default() {
            return self.scalar_transformed(input).plain();
        }
        // The key stays at 0, and the query is turned by the distance that counts.
        let (rotation, shared) = (self.scalar_rotation(input), self.shared(input));
        let root = (input.head_dim() as f64).sqrt();
        input.map(|head, row, i, j| {
            let (at_row, at_column) = (input.position(i), input.position(j));
            let exact = at_row - at_column;
            let distance = match self.config.far {
                Far::Grouped { window, group } if exact >= window as f64 => {
                    let group_of = |position: f64| (position / group as f64).floor();
                    let shift = window - window / group;
                    group_of(at_row) - group_of(at_column) + shift as f64
                }
                Far::Constant { window } if exact >= window as f64 => window as f64,
                Far::Chunks { chunk, window } => {
                    let of = |position: f64| (position / chunk as f64).floor();
                    let within = |position: f64| position - of(position) * chunk as f64;
                    let most = (chunk + window - 1) as f64;
                    match of(at_row) - of(at_column) {
                        0.0 => exact,
                        1.0 => (chunk as f64 + within(at_row)).min(most) - within(at_column),
                        _ => most - within(at_column),
                    }
                }
                _ => exact,
            };
            let query = rotation.turned(&shared.q[head][row], distance, self.phase(head));
            dot(&query, &rotation.turned(&shared.k[head][j], 0.0, 0.0)) / root
        })
    }
}
