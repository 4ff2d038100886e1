//! Attention and its gradients in f64, by the formulas and pair by pair.

use burn::tensor::bf16;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::init::standard_normal;
use crate::kernels::gpu::mma::config::MmaConfig;
use crate::kernels::operands::Sizes;

/// Entries of the distance table.
const ENTRIES: usize = 90;

/// Operands of one attention, all in row-major order.
pub(super) struct SimulatedProblem {
    pub(super) config: MmaConfig,
    pub(super) sizes: Sizes,
    pub(super) scale: f32,
    /// `[B, H, T, D]`.
    pub(super) q: Vec<f32>,
    /// `[B, H, S, D]`.
    pub(super) k: Vec<f32>,
    /// `[B, H, S, E]`.
    pub(super) values: Vec<f32>,
    /// `[H]`.
    pub(super) slopes: Vec<f32>,
    /// `[H, N]`; the last entry holds for all greater distances.
    pub(super) distance: Vec<f32>,
    /// `[B, H, S]`.
    pub(super) decay: Vec<f32>,
    /// `[B, H, S]`.
    pub(super) decay_residual: Vec<f32>,
    /// Gradient of the output, `[B, H, T, E]`.
    pub(super) grad: Vec<f32>,
}

/// Output and gradients, in the order of the operands.
pub(super) struct Solution<F> {
    pub(super) output: Vec<F>,
    pub(super) q: Vec<F>,
    pub(super) k: Vec<F>,
    pub(super) values: Vec<F>,
    pub(super) slopes: Vec<F>,
    pub(super) distance: Vec<F>,
    pub(super) decay: Vec<F>,
}

impl SimulatedProblem {
    /// Random operands whose factors bf16 represents exactly.
    pub(super) fn random(config: MmaConfig, sizes: Sizes) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let Sizes { batch, heads, rows, columns, head_dim, value_dim } = sizes;
        let planes = batch * heads;
        let mut exact = |count: usize| {
            let numbers = (0..count).map(|_| standard_normal(&mut rng) as f32);
            numbers.map(|number| bf16::from_f32(number).to_f32()).collect::<Vec<_>>()
        };
        let (q, k) = (exact(planes * rows * head_dim), exact(planes * columns * head_dim));
        let (values, grad) =
            (exact(planes * columns * value_dim), exact(planes * rows * value_dim));
        let slopes = exact(heads).iter().map(|slope| slope.abs() * 0.1).collect();
        let distance = exact(heads * ENTRIES);
        // Running sums whose last digits are only in the residual.
        let decay = exact(planes * columns).iter().map(|step| 1000.0 + step * 2.0).collect();
        let decay_residual = exact(planes * columns).iter().map(|rest| rest * 0.3).collect();
        let scale = 1.0 / (head_dim as f32).sqrt();
        Self { config, sizes, scale, q, k, values, slopes, distance, decay, decay_residual, grad }
    }

    fn bias(&self, plane: usize, own: usize, column: usize) -> f64 {
        let Sizes { heads, columns, .. } = self.sizes;
        let between = |sums: &[f32]| {
            f64::from(sums[plane * columns + own]) - f64::from(sums[plane * columns + column])
        };
        let mut bias = 0.0;
        if self.config.slopes {
            bias -= f64::from(self.slopes[plane % heads]) * (own - column) as f64;
        }
        if self.config.distance {
            let entry = plane % heads * ENTRIES + (own - column).min(ENTRIES - 1);
            bias += f64::from(self.distance[entry]);
        }
        if self.config.decay {
            bias += between(&self.decay);
        }
        if self.config.decay_residual {
            bias += between(&self.decay_residual);
        }
        bias
    }

    pub(super) fn solve(&self) -> Solution<f64> {
        let Sizes { batch, heads, rows, columns, head_dim, value_dim } = self.sizes;
        let zeros = |len: usize| vec![0.0; len];
        let mut solution = Solution {
            output: zeros(self.grad.len()),
            q: zeros(self.q.len()),
            k: zeros(self.k.len()),
            values: zeros(self.values.len()),
            slopes: zeros(heads),
            distance: zeros(heads * ENTRIES),
            decay: zeros(batch * heads * columns),
        };
        let scale = f64::from(self.scale);
        for plane in 0..batch * heads {
            for row in 0..rows {
                let own = columns - rows + row;
                let line = plane * rows + row;
                let at_row = |from: &[f32], width: usize| {
                    from[line * width..][..width].iter().map(|x| f64::from(*x)).collect::<Vec<_>>()
                };
                let (q, grad) = (at_row(&self.q, head_dim), at_row(&self.grad, value_dim));
                let at = |column: usize, width: usize| (plane * columns + column) * width;
                let dot = |left: &[f64], right: &[f32]| {
                    left.iter().zip(right).map(|(a, b)| a * f64::from(*b)).sum::<f64>()
                };
                let mut weights = (0..=own)
                    .map(|column| {
                        scale * dot(&q, &self.k[at(column, head_dim)..][..head_dim])
                            + self.bias(plane, own, column)
                    })
                    .collect::<Vec<_>>();
                let largest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                for logit in &mut weights {
                    *logit = (*logit - largest).exp();
                }
                let total = weights.iter().sum::<f64>();
                for weight in &mut weights {
                    *weight /= total;
                }
                let of_weights = (0..=own)
                    .map(|column| dot(&grad, &self.values[at(column, value_dim)..][..value_dim]))
                    .collect::<Vec<_>>();
                let share = weights.iter().zip(&of_weights).map(|(p, g)| p * g).sum::<f64>();
                for column in 0..=own {
                    let weight = weights[column];
                    let gradient = weight * (of_weights[column] - share);
                    for channel in 0..value_dim {
                        let of_column = at(column, value_dim) + channel;
                        let value = f64::from(self.values[of_column]);
                        solution.output[line * value_dim + channel] += weight * value;
                        solution.values[of_column] += weight * grad[channel];
                    }
                    for channel in 0..head_dim {
                        let of_column = at(column, head_dim) + channel;
                        let key = f64::from(self.k[of_column]);
                        solution.q[line * head_dim + channel] += scale * gradient * key;
                        solution.k[of_column] += scale * gradient * q[channel];
                    }
                    solution.slopes[plane % heads] -= gradient * (own - column) as f64;
                    let entry = plane % heads * ENTRIES + (own - column).min(ENTRIES - 1);
                    solution.distance[entry] += gradient;
                    solution.decay[plane * columns + own] += gradient;
                    solution.decay[plane * columns + column] -= gradient;
                }
            }
        }
        solution
    }
}
