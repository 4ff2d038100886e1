//! One row of attention and its gradients in f64, column by column from the definitions.

use crate::kernels::gpu::mma::config::AlongRow;

/// Numbers of one row.
pub(super) struct RowProblem<'a> {
    pub(super) along: AlongRow,
    /// Content logits of the columns that the row sees, of which the last is its own token, with all biases but the table's.
    pub(super) logits: &'a [f64],
    /// Logits of the gates.
    pub(super) gate_logits: &'a [f64],
    pub(super) table: &'a [f64],
    /// Slope of the contextual position.
    pub(super) slope: f64,
    /// Ends of the pieces but the last.
    pub(super) ends: &'a [f32],
    pub(super) max_position: f64,
    /// Logit in the denominator of the softmax to which no value belongs.
    pub(super) sink: f64,
    /// Gradients of the weights.
    pub(super) of_weights: &'a [f64],
}

/// Weights of one row and its gradients.
pub(super) struct RowSolution {
    pub(super) weights: Vec<f64>,
    /// Gradients of the logits.
    pub(super) logits: Vec<f64>,
    /// Gradients of the gates' logits.
    pub(super) gate_logits: Vec<f64>,
    pub(super) table: Vec<f64>,
    /// Gradient of the slope of the contextual position.
    pub(super) slope: f64,
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

impl RowProblem<'_> {
    pub(super) fn solve(&self) -> RowSolution {
        match self.along {
            // The logits are the values of the function already.
            AlongRow::Nothing
            | AlongRow::FarProducts(_)
            | AlongRow::ChannelDecay
            | AlongRow::Reflected
            | AlongRow::Term(_) => self.softmax(self.logits),
            AlongRow::StepPrices => self.step_prices(),
            AlongRow::Sticks { strict } => self.sticks(strict),
            AlongRow::Contextual => self.contextual(),
            AlongRow::ContextualSlope => self.contextual_slope(),
            AlongRow::ContextualPieces => self.contextual_pieces(),
            AlongRow::QueryDistance => self.distances(),
        }
    }

    fn softmax(&self, logits: &[f64]) -> RowSolution {
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let powers = logits.iter().map(|logit| (logit - largest).exp()).collect::<Vec<_>>();
        let total = powers.iter().sum::<f64>() + (self.sink - largest).exp();
        let weights = powers.iter().map(|power| power / total).collect::<Vec<_>>();
        let share = weights.iter().zip(self.of_weights).map(|(p, g)| p * g).sum::<f64>();
        let gradients = weights.iter().zip(self.of_weights).map(|(p, g)| p * (g - share)).collect();
        RowSolution {
            logits: gradients,
            gate_logits: vec![0.0; weights.len()],
            table: vec![0.0; self.table.len()],
            slope: 0.0,
            weights,
        }
    }

    fn sticks(&self, strict: bool) -> RowSolution {
        let seen = self.logits.len() - usize::from(strict);
        let share = |column: usize| sigmoid(self.logits[column]);
        let mut weights = vec![0.0; self.logits.len()];
        let mut left = 1.0;
        for column in (0..seen).rev() {
            weights[column] = left * share(column);
            left *= 1.0 - share(column);
        }
        let mut logits = vec![0.0; self.logits.len()];
        for column in 0..seen {
            let term = |column: usize| weights[column] * self.of_weights[column];
            let older = (0..column).map(term).sum::<f64>();
            logits[column] = term(column) * (1.0 - share(column)) - share(column) * older;
        }
        let gate_logits = vec![0.0; weights.len()];
        RowSolution { weights, logits, gate_logits, table: Vec::new(), slope: 0.0 }
    }

    /// Gates, and their sums from each column to the row's own.
    fn counted(&self) -> [Vec<f64>; 2] {
        let gates = self.gate_logits.iter().copied().map(sigmoid).collect::<Vec<_>>();
        let counts = (0..gates.len()).map(|from| gates[from..].iter().sum::<f64>());
        let counts = counts.collect();
        [gates, counts]
    }

    fn contextual_slope(&self) -> RowSolution {
        let [gates, counts] = self.counted();
        let position = |count: f64| count.min(self.max_position);
        let biased = self.logits.iter().zip(&counts);
        let biased = biased.map(|(logit, count)| logit + self.slope * position(*count));
        let mut solution = self.softmax(&biased.collect::<Vec<_>>());
        let mut through = 0.0;
        for (column, gate) in gates.iter().enumerate() {
            let (gradient, count) = (solution.logits[column], counts[column]);
            solution.slope += gradient * position(count);
            through += if count <= self.max_position { gradient * self.slope } else { 0.0 };
            solution.gate_logits[column] = through * gate * (1.0 - gate);
        }
        solution
    }

    fn step_prices(&self) -> RowSolution {
        let prices = self.gate_logits.iter().map(|x| sigmoid(*x).ln()).collect::<Vec<_>>();
        let paths = (0..prices.len()).map(|from| prices[from + 1..].iter().sum::<f64>());
        let paths = paths.collect::<Vec<_>>();
        let biased = self.logits.iter().zip(&paths).map(|(logit, path)| logit + self.slope * path);
        let mut solution = self.softmax(&biased.collect::<Vec<_>>());
        let mut further_left = 0.0;
        for (column, path) in paths.iter().enumerate() {
            let falls = 1.0 - sigmoid(self.gate_logits[column]);
            solution.gate_logits[column] = self.slope * further_left * falls;
            solution.slope += solution.logits[column] * path;
            further_left += solution.logits[column];
        }
        solution
    }

    fn contextual_pieces(&self) -> RowSolution {
        let [gates, counts] = self.counted();
        let pieces = self.table.len() / 2;
        let position = |count: f64| count.min(self.max_position);
        let piece = |count: f64| self.ends.partition_point(|end| f64::from(*end) < position(count));
        let biased = self.logits.iter().zip(&counts).map(|(logit, count)| {
            let at = piece(*count);
            logit + self.table[at] * position(*count) + self.table[at + pieces]
        });
        let mut solution = self.softmax(&biased.collect::<Vec<_>>());
        let mut through = 0.0;
        for (column, gate) in gates.iter().enumerate() {
            let (gradient, count) = (solution.logits[column], counts[column]);
            let at = piece(count);
            solution.table[at] += gradient * position(count);
            solution.table[at + pieces] += gradient;
            through += if count <= self.max_position { gradient * self.table[at] } else { 0.0 };
            solution.gate_logits[column] = through * gate * (1.0 - gate);
        }
        solution
    }

    fn contextual(&self) -> RowSolution {
        let [gates, counts] = self.counted();
        let entry = |at: usize| self.table[at.min(self.table.len() - 1)];
        let place = |count: f64| {
            let position = count.min(self.max_position);
            (position.floor() as usize, position - position.floor())
        };
        let rise = |count: f64| {
            let (whole, _) = place(count);
            if count <= self.max_position { entry(whole + 1) - entry(whole) } else { 0.0 }
        };
        let biased = self.logits.iter().zip(&counts).map(|(logit, count)| {
            let (whole, fraction) = place(*count);
            logit + entry(whole) * (1.0 - fraction) + entry(whole + 1) * fraction
        });
        let mut solution = self.softmax(&biased.collect::<Vec<_>>());
        for (gradient, count) in solution.logits.iter().zip(&counts) {
            let (whole, fraction) = place(*count);
            let last = self.table.len() - 1;
            solution.table[whole.min(last)] += gradient * (1.0 - fraction);
            solution.table[(whole + 1).min(last)] += gradient * fraction;
        }
        for (column, gate) in gates.iter().enumerate() {
            let of_counts = solution.logits.iter().zip(&counts).take(column + 1);
            let of_gate = of_counts.map(|(gradient, count)| gradient * rise(*count)).sum::<f64>();
            solution.gate_logits[column] = of_gate * gate * (1.0 - gate);
        }
        solution
    }

    fn distances(&self) -> RowSolution {
        let last = self.table.len() - 1;
        let entry = |column: usize| (self.logits.len() - 1 - column).min(last);
        let biased = self.logits.iter().enumerate();
        let biased = biased.map(|(column, logit)| logit + self.table[entry(column)]);
        let mut solution = self.softmax(&biased.collect::<Vec<_>>());
        for (column, gradient) in solution.logits.iter().enumerate() {
            solution.table[entry(column)] += gradient;
        }
        solution
    }
}
