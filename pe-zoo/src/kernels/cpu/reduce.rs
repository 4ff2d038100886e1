//! Sums that several tasks contribute to, added up in the order of the tasks.

use super::contextual;
use super::distance;
use super::kernel::Grads;
use super::problem::Head;
use super::view::{Matrix, MatrixMut, Shape};
use crate::kernels::forms::FormSums;

/// What one task contributes; empty where it has nothing to say.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) slope: [f32; 1],
    pub(super) contextual_slope: [f32; 1],
    /// `[1, N]`.
    pub(super) distance: Vec<f32>,
    /// `[D, N]`.
    pub(super) query_distance: Vec<f32>,
    /// `[D, N]`.
    pub(super) table: Vec<f32>,
    /// `[2, N]`.
    pub(super) hidden: Vec<f32>,
    /// `[S, 1]`.
    pub(super) decay: Vec<f32>,
    /// `[seen, D]`, where several tasks share a head.
    pub(super) k: Vec<f32>,
    /// `[seen, E]`, likewise.
    pub(super) values: Vec<f32>,
    /// `[seen, D]`, likewise.
    pub(super) gate_keys: Vec<f32>,
    pub(super) forms: FormSums,
}

/// Gradients that one task writes to directly, the head being its own.
#[derive(Debug)]
pub(super) struct OwnGrads<'a> {
    pub(super) k: MatrixMut<'a>,
    pub(super) values: MatrixMut<'a>,
    pub(super) gate_keys: Option<MatrixMut<'a>>,
}

fn zeros(matrix: Option<Matrix<'_>>) -> Vec<f32> {
    matrix.map_or_else(Vec::new, |m| vec![0.0; m.shape().rows * m.shape().columns])
}

fn writable<'a>(data: &'a mut [f32], like: Option<Matrix<'_>>) -> Option<MatrixMut<'a>> {
    like.map(|m| MatrixMut::new(data, Shape::dense(m.shape().rows, m.shape().columns)))
}

fn table<'a>(head: &Head<'a>) -> Option<Matrix<'a>> {
    head.contextual.and_then(|contextual| contextual.function.table())
}

fn hidden<'a>(head: &Head<'a>) -> Option<Matrix<'a>> {
    head.contextual.and_then(|contextual| contextual.function.hidden())
}

fn gate_keys<'a>(head: &Head<'a>, seen: usize) -> Option<Matrix<'a>> {
    head.contextual.and_then(|contextual| contextual.gate_keys).map(|keys| keys.rows(0, seen))
}

impl Sums {
    /// Room for a task whose last row sees `seen` columns; `alone` says that keys, values and gate
    /// keys are written to directly.
    pub(super) fn new(head: &Head<'_>, seen: usize, alone: bool) -> Self {
        let unless_alone = |matrix| zeros(if alone { None } else { matrix });
        Self {
            distance: zeros(head.distance),
            query_distance: zeros(head.query_distance),
            table: zeros(table(head)),
            hidden: zeros(hidden(head)),
            decay: zeros(head.decay),
            k: unless_alone(Some(head.k.rows(0, seen))),
            values: unless_alone(Some(head.values.rows(0, seen))),
            gate_keys: unless_alone(gate_keys(head, seen)),
            ..Self::default()
        }
    }

    /// Where the kernel is to add its gradients.
    pub(super) fn grads<'a>(&'a mut self, head: &Head<'_>, own: Option<OwnGrads<'a>>) -> Grads<'a> {
        let own = own.unwrap_or_else(|| {
            let (k, values) = (self.k.as_mut_slice(), self.values.as_mut_slice());
            let dims = |m: Matrix<'_>| (m.shape().columns, Shape::dense);
            let rows = |data: &[f32], columns: usize| data.len() / columns.max(1);
            let ((key_dim, dense), (value_dim, _)) = (dims(head.k), dims(head.values));
            let seen = rows(k, key_dim);
            OwnGrads {
                k: MatrixMut::new(k, dense(seen, key_dim)),
                values: MatrixMut::new(values, dense(seen, value_dim)),
                gate_keys: writable(&mut self.gate_keys, gate_keys(head, seen)),
            }
        });
        let [slope] = &mut self.slope;
        let [contextual_slope] = &mut self.contextual_slope;
        Grads {
            k: own.k,
            values: own.values,
            distance: distance::Grads {
                slope,
                distance: writable(&mut self.distance, head.distance),
                query_distance: writable(&mut self.query_distance, head.query_distance),
            },
            contextual: head.contextual.is_some().then(|| contextual::Grads {
                gate_keys: own.gate_keys,
                table: writable(&mut self.table, table(head)),
                hidden: writable(&mut self.hidden, hidden(head)),
                slope: contextual_slope,
            }),
            decay: writable(&mut self.decay, head.decay),
            forms: self.forms.grads(&head.forms),
        }
    }
}

/// Adds up what tasks contribute to `groups` groups of equal size, one group after the other.
pub(super) fn grouped(
    sums: &[Sums],
    groups: usize,
    group_of: &dyn Fn(usize) -> usize,
    pick: &dyn Fn(&Sums) -> &[f32],
) -> Vec<f32> {
    let len = sums.first().map_or(0, |sum| pick(sum).len());
    let mut total = vec![0.0; groups * len];
    for (task, sum) in sums.iter().enumerate() {
        let group = &mut total[group_of(task) * len..][..len];
        for (total, value) in group.iter_mut().zip(pick(sum)) {
            *total += value;
        }
    }
    total
}

/// Adds what the pieces of each head contribute, `[seen, width]`, into `[batch, token, head, width]`.
pub(super) fn pieces(
    out: &mut [f32],
    sums: &[Sums],
    pieces: usize,
    [_batch, tokens, heads, width]: [usize; 4],
    pick: fn(&Sums) -> &[f32],
) {
    for (task, sum) in sums.iter().enumerate() {
        let plane = task / pieces;
        let offset = (plane / heads) * tokens * heads * width + (plane % heads) * width;
        for (token, row) in pick(sum).chunks(width).enumerate() {
            let out = &mut out[offset + token * heads * width..][..width];
            for (out, value) in out.iter_mut().zip(row) {
                *out += value;
            }
        }
    }
}
