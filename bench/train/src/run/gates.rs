//! Agreement of gates with the tokens that a task counts.

use std::collections::BTreeMap;

use burn::tensor::Device;
use pe_zoo::attention::TraceKind;
use records::GateScore;
use stats::auc;
use tasks::{Sample, Task};

use super::observe::{AttentionMap, Look, observe};
use pe_zoo::model::Decoder;

/// Number of samples for the gate scores of a record.
pub const GATE_SAMPLES: usize = 32;

/// Sum of the areas under the ROC curves, and the number of rows.
#[derive(Default)]
struct AucSum {
    area: f64,
    rows: u64,
}

impl AucSum {
    fn add(&mut self, map: &AttentionMap, head: usize, sample: &Sample, counted: &[bool]) {
        // Row i predicts the token after it.
        for row in (0..sample.tokens.len() - 1).filter(|row| sample.scored[row + 1]) {
            // Stick-breaking shares cover only the tokens before that of the row.
            let end = if map.look == Look::Trace(TraceKind::Shares) { row } else { row + 1 };
            let gates = map.row(head, row, end);
            let of = |wanted: bool| -> Vec<f64> {
                let pairs = gates.iter().zip(counted).filter(|(_, counted)| **counted == wanted);
                pairs.map(|(gate, _)| f64::from(*gate)).collect()
            };
            if let Some(area) = auc(&of(true), &of(false)) {
                self.area += area;
                self.rows += 1;
            }
        }
    }
}

/// Evaluation samples that gate scores are computed on.
#[derive(Debug, Clone, Copy)]
pub struct GateSamples {
    /// Length of the samples.
    pub len: usize,
    /// Number of samples; fewer if the task has fewer.
    pub count: usize,
    /// Seed of the evaluation.
    pub seed: u64,
}

/// The gate scores of a model on evaluation samples of the split that it was trained on: by gate, layer, head.
///
/// In each row whose next token is scored, the gates are used as scores of a classifier for the tokens that `marked` marks,
/// such as those that the task counts. The result is the mean area under the ROC curve over rows with tokens of both
/// classes; empty if nothing is marked or the model has no gates.
///
/// # Errors
/// If the task rejects the length or number of samples, or the model cannot be evaluated.
pub fn gate_scores(
    model: &Decoder,
    id: &str,
    task: &dyn Task,
    marked: &dyn Fn(&Sample) -> Option<Vec<bool>>,
    samples: GateSamples,
    device: &Device,
) -> anyhow::Result<Vec<GateScore>> {
    let GateSamples { len, count, seed } = samples;
    let split = task.splits().first().map_or("", |split| split.name);
    let count = task.max_eval_samples(len).map_or(count, |most| most.min(count));
    let counts = task.eval_set(split, len, 1, seed)?.iter().any(|one| marked(one).is_some());
    if !counts {
        return Ok(Vec::new());
    }
    let samples = task.eval_set(split, len, count, seed)?;
    let mut sums: BTreeMap<(TraceKind, usize, usize), AucSum> = BTreeMap::new();
    for sample in &samples {
        let Some(counted) = marked(sample) else { return Ok(Vec::new()) };
        // One sample at a time, because maps of many long samples would dominate memory.
        let seen = observe(model, id, std::slice::from_ref(sample), device)?;
        let maps = seen.iter().flat_map(|seen| seen.layers.iter().enumerate());
        for (layer, map) in maps.flat_map(|(layer, maps)| maps.iter().map(move |map| (layer, map)))
        {
            let Look::Trace(kind) = map.look else { continue };
            if kind.is_gate() {
                for head in 0..map.heads.len() {
                    let sum = sums.entry((kind, layer, head)).or_default();
                    sum.add(map, head, sample, &counted);
                }
            }
        }
        if sums.is_empty() {
            return Ok(Vec::new());
        }
    }
    let score = |((kind, layer, head), sum): ((TraceKind, usize, usize), AucSum)| GateScore {
        gate: kind.id().to_owned(),
        layer: layer as u32,
        head: head as u32,
        auc: sum.area / sum.rows as f64,
        rows: sum.rows,
    };
    Ok(sums.into_iter().filter(|(_, sum)| sum.rows > 0).map(score).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(kind: TraceKind, rows: Vec<Vec<f32>>, counted: [bool; 4]) -> (f64, u64) {
        let map = AttentionMap { look: Look::Trace(kind), heads: vec![rows] };
        // The tokens at 3 and 4 are scored: rows 2 and 3 answer.
        let scored = vec![false, false, false, true, true];
        let sample = Sample { tokens: vec![0; 5], scored, slices: Vec::new() };
        let mut sum = AucSum::default();
        sum.add(&map, 0, &sample, &counted);
        (sum.area / sum.rows.max(1) as f64, sum.rows)
    }

    #[test]
    fn rows_that_answer_are_scored_on_the_columns_they_see() {
        // Row 2 sees 0.9 counted against 0.1 and 0.2: 1. Row 3 sees 0.1 counted against 0.5, 0.1, 0.4: (0 + 1/2 + 0) / 3.
        let rows = vec![vec![0.0], vec![0.0; 2], vec![0.9, 0.1, 0.2], vec![0.1, 0.5, 0.1, 0.4]];
        let (area, rows) = score(TraceKind::Gates, rows, [true, false, false, false]);
        assert!(rows == 2 && (area - f64::midpoint(1.0, 0.5 / 3.0)).abs() < 1e-12, "{area}");
    }

    #[test]
    fn gates_of_columns_alone_are_cut_to_what_a_row_sees() {
        let columns = vec![vec![0.9, 0.1, 0.2, 0.95]];
        // Row 2: 0.9 counted, above 0.1 and 0.2. Row 3: 0.9 against 0.1, 0.2 and 0.95: two of three.
        let (area, _) = score(TraceKind::Forgetting, columns, [true, false, false, false]);
        assert!((area - f64::midpoint(1.0, 2.0 / 3.0)).abs() < 1e-12, "{area}");
    }

    #[test]
    fn the_own_token_takes_no_share_and_rows_of_one_kind_say_nothing() {
        let rows = || vec![vec![0.0], vec![0.0; 2], vec![0.5; 3], vec![0.5; 4]];
        let (_, count) = score(TraceKind::Shares, rows(), [false, false, true, false]);
        assert_eq!(count, 1, "row 2 does not see its own token");
        assert_eq!(score(TraceKind::Gates, rows(), [true; 4]).1, 0);
    }
}
