//! Attention and its gradients in f64, by the formulas and pair by pair.

use burn::tensor::bf16;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::row::RowProblem;
use crate::init::standard_normal;
use crate::kernels::gpu::mma::config::{AlongRow, MmaConfig};
use crate::kernels::operands::Sizes;
use crate::score::TracedTerm;

/// Entries of the distance table.
const ENTRIES: usize = 90;

/// Operands of one attention, all in row-major order.
pub(super) struct SimulatedProblem {
    pub(super) config: MmaConfig,
    pub(super) sizes: Sizes,
    pub(super) scale: f32,
    pub(super) gate_scale: f32,
    pub(super) max_position: f32,
    /// `[B, H, T, D]`.
    pub(super) q: Vec<f32>,
    /// `[B, H, S, D]`.
    pub(super) k: Vec<f32>,
    /// `[B, H, S, E]`.
    pub(super) values: Vec<f32>,
    /// `[H]`.
    pub(super) slopes: Vec<f32>,
    /// `[H, N]`; the last entry holds for all greater distances. With pieces, a number for each distance, `[S]`.
    pub(super) distance: Vec<f32>,
    /// Ends of the pieces but the last, ascending.
    pub(super) piece_ends: Vec<f32>,
    /// Slopes of the pieces, then their values at 0, `[H, 2 pieces]`.
    pub(super) piece_lines: Vec<f32>,
    /// `[T]`.
    pub(super) row_factors: Vec<f32>,
    /// `[B, H, S]`.
    pub(super) decay: Vec<f32>,
    /// `[B, H, S]`.
    pub(super) decay_residual: Vec<f32>,
    /// `[B, H, S, D]`; empty unless channels decay.
    pub(super) channel_sums: Vec<f32>,
    /// `[B, H, T, entries]`.
    pub(super) tables: Vec<f32>,
    /// `[H, P]`.
    pub(super) term_params: Vec<f32>,
    /// `[B, H, S, K]`.
    pub(super) term_state: Vec<f32>,
    /// `[H]`; minus infinity without sinks.
    pub(super) sinks: Vec<f32>,
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
    pub(super) piece_lines: Vec<F>,
    pub(super) row_factors: Vec<F>,
    pub(super) decay: Vec<F>,
    pub(super) channel_sums: Vec<F>,
    pub(super) tables: Vec<F>,
    pub(super) term_params: Vec<F>,
    pub(super) term_state: Vec<F>,
}

/// Where a pair is in a piecewise linear function.
struct PieceAt {
    /// Index of the slope; the value at 0 follows the slopes of all pieces.
    line: usize,
    input: f64,
    slope: f64,
    start: f64,
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
        let distance = match config.pieces {
            0 => exact(heads * ENTRIES),
            _ => (0..columns).map(|away| (0.3 * away as f32).ln_1p()).collect(),
        };
        let piece_lines = exact(heads * 2 * config.pieces);
        // Of distances, from 0 to 1; of contextual positions, some close together and some past the largest position.
        let piece_ends = match config.along {
            AlongRow::ContextualPieces => {
                (1..config.all_pieces()).map(|end| (end * end) as f32 * 0.023 - 0.1).collect()
            }
            _ => (1..config.pieces)
                .map(|end| end as f32 / config.pieces as f32 * 1.5 - 0.3)
                .collect(),
        };
        let own = (0..rows).map(|row| 0.3 * (columns - rows + row).max(20) as f32);
        let row_factors = own.map(|own| own.ln_1p().recip()).collect();
        // Running sums whose last digits are only in the residual.
        let decay = exact(planes * columns).iter().map(|step| 1000.0 + step * 2.0).collect();
        let decay_residual = exact(planes * columns).iter().map(|rest| rest * 0.3).collect();
        let mut tables = exact(planes * rows * config.entries);
        if config.along == AlongRow::ContextualPieces {
            // Slopes are multiplied by positions.
            tables.iter_mut().for_each(|number| *number *= 0.2);
        }
        let state = config.term_numbers(false);
        let params = config.term_numbers(true) - state;
        let term_params = exact(heads * params).iter().map(|x| x.abs() * 0.3 + 0.1).collect();
        let term_state = exact(planes * columns * state).iter().map(|x| x * 0.5 + 1.0).collect();
        // Channels that hardly decay, that decay within the sequence, and that forget all but the own token.
        let mut channel_sums = match config.decays_channels() {
            true => exact(planes * columns * head_dim),
            false => Vec::new(),
        };
        for (at, step) in channel_sums.iter_mut().enumerate() {
            *step *= -step.signum() * [0.003, 0.05, 0.5, 20.0][at % head_dim % 4];
        }
        for plane in channel_sums.chunks_mut(columns * head_dim) {
            for at in head_dim..plane.len() {
                plane[at] += plane[at - head_dim];
            }
        }
        let scale = 1.0 / (head_dim as f32).sqrt();
        // Between two entries of a table with an odd number of them, at the last one otherwise.
        let below = if config.entries % 2 == 0 { 1.0 } else { 1.7 };
        let entries = match config.along {
            AlongRow::Contextual | AlongRow::QueryDistance => config.entries,
            _ => 14,
        };
        Self {
            config,
            sizes,
            scale,
            gate_scale: 1.3 * scale,
            max_position: entries as f32 - below,
            q,
            k,
            values,
            slopes,
            distance,
            piece_ends,
            piece_lines,
            row_factors,
            decay,
            decay_residual,
            channel_sums,
            tables,
            term_params,
            term_state,
            sinks: vec![f32::NEG_INFINITY; heads],
            grad,
        }
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
        if self.config.pieces > 0 {
            let at = self.piece_at(plane, own, column);
            bias += at.slope * at.input + at.start;
        }
        if self.config.decay {
            bias += between(&self.decay);
        }
        if self.config.decay_residual {
            bias += between(&self.decay_residual);
        }
        bias
    }

    /// Where a pair is in the piecewise linear function.
    fn piece_at(&self, plane: usize, own: usize, column: usize) -> PieceAt {
        let Sizes { heads, rows, columns, .. } = self.sizes;
        let (number, factor) =
            (self.distance[own - column], self.row_factors[own + rows - columns]);
        let piece = self.piece_ends.partition_point(|end| *end < number * factor);
        let line = plane % heads * 2 * self.config.pieces + piece;
        PieceAt {
            line,
            input: f64::from(number) * f64::from(factor),
            slope: f64::from(self.piece_lines[line]),
            start: f64::from(self.piece_lines[line + self.config.pieces]),
        }
    }

    /// Value of a pair term and its derivatives.
    fn term_results(
        &self,
        term: &TracedTerm,
        plane: usize,
        own: usize,
        column: usize,
        content: f64,
    ) -> Vec<f64> {
        let Sizes { heads, columns, .. } = self.sizes;
        let params = &self.term_params[plane % heads * term.params..][..term.params];
        let state =
            |at: usize| &self.term_state[(plane * columns + at) * term.state..][..term.state];
        let numbers = [params, state(own), state(column)].concat();
        let numbers = numbers.iter().map(|number| f64::from(*number));
        let inputs = [content, (own - column) as f64].into_iter().chain(numbers);
        term.evaluate(&term.derivatives, &inputs.collect::<Vec<_>>())
    }

    pub(super) fn solve(&self) -> Solution<f64> {
        let Sizes { batch, heads, rows, columns, head_dim, value_dim } = self.sizes;
        let content_dim = head_dim - self.config.second_dim;
        let zeros = |len: usize| vec![0.0; len];
        let mut solution = Solution {
            output: zeros(self.grad.len()),
            q: zeros(self.q.len()),
            k: zeros(self.k.len()),
            values: zeros(self.values.len()),
            slopes: zeros(heads),
            distance: zeros(self.distance.len()),
            piece_lines: zeros(self.piece_lines.len()),
            row_factors: zeros(rows),
            decay: zeros(batch * heads * columns),
            channel_sums: zeros(self.channel_sums.len()),
            tables: zeros(self.tables.len()),
            term_params: zeros(self.term_params.len()),
            term_state: zeros(self.term_state.len()),
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
                let key = |column: usize| &self.k[at(column, head_dim)..][..head_dim];
                // Factors of the channels of a product.
                let decays = |column: usize| {
                    let sums = |token: usize| &self.channel_sums[at(token, head_dim)..][..head_dim];
                    let apart = |(new, old): (&f32, &f32)| f64::from(*new) - f64::from(*old);
                    match self.config.decays_channels() {
                        true => {
                            sums(own).iter().zip(sums(column)).map(|x| apart(x).exp()).collect()
                        }
                        false => vec![1.0; head_dim],
                    }
                };
                let first = |column: usize| {
                    let decayed = q.iter().zip(decays(column)).map(|(q, decay)| q * decay);
                    dot(&decayed.collect::<Vec<_>>()[..content_dim], &key(column)[..content_dim])
                };
                let second = |column: usize| match self.config.second_dim {
                    0 => first(column),
                    _ => dot(&q[content_dim..], &key(column)[content_dim..]),
                };
                let is_far = |column: usize| {
                    self.config.far_pairs().is_some_and(|pairs| column < pairs.first_near(own))
                };
                let products = (0..=own)
                    .map(|column| if is_far(column) { second(column) } else { first(column) })
                    .collect::<Vec<_>>();
                // Value and derivatives of a pair term, by column.
                let of_pairs = self.config.term().map(|term| {
                    let pairs = products.iter().enumerate();
                    let pair = |(column, product): (usize, &f64)| {
                        self.term_results(term, plane, own, column, scale * product)
                    };
                    pairs.map(pair).collect::<Vec<_>>()
                });
                let logits = products.iter().enumerate().map(|(column, product)| {
                    let logit = match &of_pairs {
                        Some(of_pairs) => of_pairs[column][0],
                        None => scale * product,
                    };
                    logit + self.bias(plane, own, column)
                });
                let logits = logits.collect::<Vec<_>>();
                let gate_scale = f64::from(self.gate_scale);
                let gate_logits = (0..=own).map(|column| gate_scale * second(column));
                let of_weights = (0..=own)
                    .map(|column| dot(&grad, &self.values[at(column, value_dim)..][..value_dim]))
                    .collect::<Vec<_>>();
                let entries = self.config.entries;
                let table = at_row(&self.tables, entries);
                let solved = RowProblem {
                    along: self.config.along,
                    logits: &logits,
                    gate_logits: &gate_logits.collect::<Vec<_>>(),
                    table: &table,
                    slope: f64::from(self.slopes[plane % heads]),
                    ends: &self.piece_ends,
                    max_position: f64::from(self.max_position),
                    sink: f64::from(self.sinks[plane % heads]),
                    of_weights: &of_weights,
                }
                .solve();
                solution.tables[line * entries..][..entries].copy_from_slice(&solved.table);
                solution.slopes[plane % heads] += solved.slope;
                for column in 0..=own {
                    let (weight, gradient) = (solved.weights[column], solved.logits[column]);
                    // Of the content's product and of the second one.
                    let of_gate = gate_scale * solved.gate_logits[column];
                    let [mut content, of_second] = match self.config.second_dim {
                        0 => [scale * gradient + of_gate, 0.0],
                        _ if is_far(column) => [0.0, scale * gradient],
                        _ => [scale * gradient, of_gate],
                    };
                    if let (Some(of_pairs), Some(term)) = (&of_pairs, self.config.term()) {
                        let [of_content, rest @ ..] = &of_pairs[column][1..] else {
                            unreachable!()
                        };
                        content *= of_content;
                        let (params, rest) = rest.split_at(term.params);
                        let (of_row, of_column) = rest.split_at(term.state);
                        let head = plane % heads * term.params;
                        let token = |at: usize| (plane * columns + at) * term.state;
                        for (at, derivative) in params.iter().enumerate() {
                            solution.term_params[head + at] += gradient * derivative;
                        }
                        for (first, derivatives) in
                            [(token(own), of_row), (token(column), of_column)]
                        {
                            for (at, derivative) in derivatives.iter().enumerate() {
                                solution.term_state[first + at] += gradient * derivative;
                            }
                        }
                    }
                    for channel in 0..value_dim {
                        let of_column = at(column, value_dim) + channel;
                        let value = f64::from(self.values[of_column]);
                        solution.output[line * value_dim + channel] += weight * value;
                        solution.values[of_column] += weight * grad[channel];
                    }
                    for (channel, decay) in decays(column).into_iter().enumerate() {
                        let of_column = at(column, head_dim) + channel;
                        let key = f64::from(self.k[of_column]);
                        let of_product =
                            decay * if channel < content_dim { content } else { of_second };
                        if self.config.decays_channels() {
                            let of_sums = of_product * key * q[channel];
                            solution.channel_sums[at(own, head_dim) + channel] += of_sums;
                            solution.channel_sums[of_column] -= of_sums;
                        }
                        solution.q[line * head_dim + channel] += of_product * key;
                        solution.k[of_column] += of_product * q[channel];
                    }
                    if self.config.slopes {
                        solution.slopes[plane % heads] -= gradient * (own - column) as f64;
                    }
                    if self.config.pieces > 0 {
                        let at = self.piece_at(plane, own, column);
                        solution.piece_lines[at.line] += gradient * at.input;
                        solution.piece_lines[at.line + self.config.pieces] += gradient;
                        let through = gradient * at.slope;
                        let factor = f64::from(self.row_factors[row]);
                        solution.distance[own - column] += through * factor;
                        solution.row_factors[row] +=
                            through * f64::from(self.distance[own - column]);
                    } else {
                        let entry = plane % heads * ENTRIES + (own - column).min(ENTRIES - 1);
                        solution.distance[entry] += gradient;
                    }
                    solution.decay[plane * columns + own] += gradient;
                    solution.decay[plane * columns + column] -= gradient;
                }
            }
        }
        solution
    }
}
