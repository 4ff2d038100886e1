//! Evaluation by split and length: exact match, token accuracy and likelihood, in total and by slice.

mod labels;
mod outcomes;
mod slices;

use std::time::Instant;

use anyhow::Result;
use burn::tensor::Device;
use pe_zoo::Positions;
use pe_zoo::ops::cross_entropy;
use records::EvalPoint;
use tasks::{Batch, EvaluatedSplit, Sample, Task};

use crate::run::scored::{Scored, read, reused};
use labels::Labels;
pub use outcomes::chance;
use outcomes::{QuestionAnswer, Questions};
use pe_zoo::model::Decoder;
use slices::BySlice;

/// Request for an evaluation at one split and length.
#[derive(Debug, Clone, Copy)]
pub struct EvalRequest<'a> {
    /// Split of the task.
    pub split: &'a str,
    /// Length, in the task's unit.
    pub len: usize,
    /// Number of evaluated sequences.
    pub samples: usize,
    /// Number of sequences per pass.
    pub batch_size: usize,
    /// Seed of the evaluation data.
    pub seed: u64,
    /// Length of the training sequences.
    pub train_len: usize,
    /// Whether results are also given by slice and for the questions that training cannot draw.
    pub slices: bool,
}

#[derive(Default)]
struct Totals {
    samples: u64,
    tokens: u64,
    exact: u64,
    right: u64,
    nll: f64,
    questions: Questions,
    slices: Option<BySlice>,
}

/// Evaluates a model on one split at one length.
///
/// # Errors
/// If the encoding has no positions at this length, or the task rejects the split, length or number of samples.
pub fn evaluate(
    model: &Decoder,
    id: &str,
    task: &dyn Task,
    request: EvalRequest<'_>,
    device: &Device,
) -> Result<EvalPoint> {
    let start = Instant::now();
    let samples = task.eval_set(request.split, request.len, request.samples, request.seed)?;
    let bytes: Option<u64> = samples.iter().map(|sample| task.scored_bytes(sample)).sum();
    let mut totals = Totals { slices: request.slices.then(BySlice::default), ..Totals::default() };
    let mut last_at = None;
    let mut answers: Vec<SampleAnswers> =
        samples.iter().map(|_| SampleAnswers::default()).collect();
    for places in batches(&samples, request.batch_size) {
        let batch: Vec<Sample> = places.iter().map(|place| samples[*place].clone()).collect();
        let collated = Batch::collate(&batch);
        let at = reused(&mut last_at, model.positions(id, 0, collated.len)?);
        let found = answers_of(model, &collated, &batch, &at, device)?;
        for (place, found) in places.into_iter().zip(found) {
            answers[place] = found;
        }
    }
    for (samples, answers) in
        samples.chunks(request.batch_size).zip(answers.chunks(request.batch_size))
    {
        totals.add(task, samples, answers);
    }
    let evaluation = EvaluatedSplit::new(task, request.split, request.len, request.train_len)?;
    let headline = task.meta().headline;
    let labels = if request.slices {
        Labels::of(&evaluation, headline, &samples)
    } else {
        Labels::default()
    };
    let tokens = totals.tokens.max(1) as f64;
    let nll = totals.nll / tokens;
    let bytes_per_token = bytes.map(|bytes| bytes as f64 / tokens).or(task.bytes_per_token());
    Ok(EvalPoint {
        split: request.split.to_owned(),
        in_distribution: evaluation.in_distribution(),
        trained_split: Some(evaluation.split.in_distribution),
        len: request.len as u64,
        samples: totals.samples,
        scored_tokens: totals.tokens,
        exact_match: totals.exact as f64 / totals.samples.max(1) as f64,
        token_accuracy: totals.right as f64 / tokens,
        nll,
        perplexity: nll.exp(),
        bits_per_byte: bytes_per_token.map(|bytes| nll / std::f64::consts::LN_2 / bytes),
        seconds: start.elapsed().as_secs_f64(),
        chance: chance(headline, &samples),
        unseen: labels
            .marks
            .map(|marks| totals.questions.unseen(marks, labels.chance, task, &samples)),
        ceiling: labels.ceiling,
        outcomes: totals.questions.outcomes(headline, &samples),
        slices: totals.slices.map(BySlice::columns).unwrap_or_default(),
    })
}

/// Answers to the scored tokens of one sample, in order.
#[derive(Default)]
struct SampleAnswers {
    right: Vec<bool>,
    losses: Vec<f32>,
}

/// Places of the samples of each batch, at most `size` in one. All samples of a batch have the same number of tokens, because
/// positions may depend on it (`randomized`, dynamic NTK) and the result of a sample must not depend on its batch.
fn batches(samples: &[Sample], size: usize) -> Vec<Vec<usize>> {
    let mut places: Vec<usize> = (0..samples.len()).collect();
    places.sort_by_key(|place| samples[*place].tokens.len());
    let same = places.chunk_by(|a, b| samples[*a].tokens.len() == samples[*b].tokens.len());
    same.flat_map(|places| places.chunks(size)).map(<[usize]>::to_vec).collect()
}

fn answers_of(
    model: &Decoder,
    batch: &Batch,
    samples: &[Sample],
    at: &Positions,
    device: &Device,
) -> Result<Vec<SampleAnswers>> {
    let scored = Scored::of(batch, device);
    let (mut right, mut losses) = (Vec::new(), Vec::new());
    for (logits, labels) in scored.in_pieces(model, at) {
        let chosen = logits.clone().argmax(1).squeeze_dim::<1>(1);
        let hits = chosen.equal(labels.clone()).float();
        right.extend(read(hits)?);
        losses.extend(read(cross_entropy(logits, labels))?);
    }
    let mut begin = 0;
    let of = |sample: &Sample| {
        let own = begin..begin + sample.scored.iter().filter(|scored| **scored).count();
        begin = own.end;
        let right = right[own.clone()].iter().map(|hit| *hit > 0.5).collect();
        SampleAnswers { right, losses: losses[own].to_vec() }
    };
    Ok(samples.iter().map(of).collect())
}

impl Totals {
    fn add(&mut self, task: &dyn Task, samples: &[Sample], answers: &[SampleAnswers]) {
        let losses = answers.iter().flat_map(|answers| &answers.losses);
        self.nll += losses.map(|loss| f64::from(*loss)).sum::<f64>();
        for (sample, SampleAnswers { right, losses }) in samples.iter().zip(answers) {
            let asked = right.len();
            let hits = right.iter().filter(|hit| **hit).count();
            self.samples += 1;
            self.tokens += asked as u64;
            self.right += hits as u64;
            self.exact += u64::from(hits == asked);
            let loss = losses.iter().map(|loss| f64::from(*loss)).sum();
            self.questions.add(QuestionAnswer {
                exact: hits == asked,
                right: hits as u64,
                tokens: asked as u64,
                loss,
            });
            if let Some(slices) = &mut self.slices {
                slices.add(sample, &task.token_slices(sample), right, losses);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_batch_have_the_same_number_of_tokens_and_none_is_left_out() {
        let of = |tokens: usize| Sample::scored_from(1, vec![0; tokens], Vec::new());
        let samples = [3, 5, 3, 3, 4, 5].map(of);
        assert_eq!(batches(&samples, 2), [vec![0, 2], vec![3], vec![4], vec![1, 5]]);
        let equal = [4; 5].map(of);
        assert_eq!(batches(&equal, 2), [vec![0, 1], vec![2, 3], vec![4]]);
    }
}
