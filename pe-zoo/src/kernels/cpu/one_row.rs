//! Attention of the last token alone under a plain softmax, as in decoding.
//!
//! Reading keys and values takes the time, so heads that share them are computed together, and long sequences are cut
//! into chunks of columns.

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use super::heads::plane;
use super::tensors::{in_order, in_token_order};
use super::view::Matrix;
use crate::kernels::operands::{Operands, Slot, present};
use crate::kernels::spec::{Spec, WeightRule};
use crate::math::{lanes, simd};

/// Number of columns of a chunk. It does not depend on the number of threads, and so neither do the sums.
const CHUNK: usize = 512;

/// Number of channels that are multiplied together.
const SIDE: usize = 16;

/// Returns the factor of the logits if a pass has one row and its logits are those of queries and keys.
pub(super) fn scale_of(operands: &Operands<Flex>, spec: &Spec) -> Option<f32> {
    let operand_count = operands.0.iter().filter(|operand| present(*operand)).count();
    let plain = operand_count == [Slot::Query, Slot::Key, Slot::Values].len()
        && spec.terms.is_empty()
        && spec.contextual.is_none()
        && spec.head_mlp.is_none()
        && spec.weights == WeightRule::Softmax;
    spec.content_scale.filter(|_| plain && operands.sizes().rows == 1)
}

/// Computes the output, `[B, H, 1, E]`, of queries `[B, H, 1, D]`, keys `[B, K, S, D]` and values `[B, K, S, E]`, where `K`
/// divides `H`.
pub(super) fn forward(operands: &Operands<Flex>, scale: f32) -> FlexTensor {
    let sizes = operands.sizes();
    let [query, keys, values] =
        [Slot::Query, Slot::Key, Slot::Values].map(|slot| in_order(operands[slot].clone()));
    let sharing = sizes.heads / keys.layout().shape()[1];
    let chunks = sizes.columns.div_ceil(CHUNK);
    let groups = sizes.batch * sizes.heads / sharing;
    let attend = |task: usize| {
        let (group, from) = (task / chunks, task % chunks * CHUNK);
        let count = CHUNK.min(sizes.columns - from);
        let [batch, head] = [group * sharing / sizes.heads, group % (sizes.heads / sharing)];
        let queries = (0..sharing).map(|n| plane(&query, batch, head * sharing + n));
        let queries = queries.filter_map(|query| query.row(0)).collect::<Vec<_>>();
        let [keys, values] = [&keys, &values].map(|u| plane(u, batch, head).rows(from, count));
        let mut parts = Vec::new();
        simd::dispatch(
            #[inline(always)]
            || parts = of_columns(&queries, keys, values, scale),
        );
        parts
    };
    let tasks = (0..groups * chunks).into_par_iter().with_max_len(1);
    let parts = tasks.map(attend).collect::<Vec<_>>();
    let heads = parts.chunks(chunks).flat_map(|chunks| (0..sharing).map(move |n| (chunks, n)));
    let output = heads.flat_map(|(chunks, n)| joined(chunks.iter().map(|parts| &parts[n])));
    in_token_order(output.collect(), [sizes.batch, sizes.heads, 1, sizes.value_dim])
}

/// Attention to some of the columns.
struct PartialAttention {
    /// Largest logit.
    largest: f32,
    /// Sum of the weights, relative to that of the largest logit.
    sum: f32,
    /// Values multiplied by these weights.
    output: Vec<f32>,
}

#[inline(always)]
fn of_columns(
    queries: &[&[f32]],
    keys: Matrix<'_>,
    values: Matrix<'_>,
    scale: f32,
) -> Vec<PartialAttention> {
    let columns = keys.shape().rows;
    let mut logits = vec![0.0; queries.len() * columns];
    for column in 0..columns {
        let key = keys.row(column).unwrap_or_default();
        for (n, query) in queries.iter().enumerate() {
            logits[n * columns + column] = scale * product(query, key);
        }
    }
    let mut parts = Vec::with_capacity(queries.len());
    for weights in logits.chunks_mut(columns) {
        let largest = weights.iter().copied().fold(f32::MIN, f32::max);
        for weight in weights.iter_mut() {
            *weight = lanes::weight(*weight - largest);
        }
        let sum = weights.iter().sum::<f32>();
        parts.push(PartialAttention { largest, sum, output: vec![0.0; values.shape().columns] });
    }
    for column in 0..columns {
        let row = values.row(column).unwrap_or_default();
        for (n, part) in parts.iter_mut().enumerate() {
            let weight = logits[n * columns + column];
            for (output, value) in part.output.iter_mut().zip(row) {
                *output += weight * value;
            }
        }
    }
    parts
}

/// Scalar product of two rows of equal length.
#[inline(always)]
fn product(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<SIDE>(), b.as_chunks::<SIDE>());
    let mut side = [0.0; SIDE];
    for (a, b) in a.iter().zip(b) {
        for n in 0..SIDE {
            side[n] += a[n] * b[n];
        }
    }
    // By halves: a sum from one end to the other would take longer than the products.
    let mut half = SIDE / 2;
    while half > 0 {
        for n in 0..half {
            side[n] += side[n + half];
        }
        half /= 2;
    }
    side[0] + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}

/// Joins the parts of one head.
fn joined<'a>(parts: impl Iterator<Item = &'a PartialAttention> + Clone) -> Vec<f32> {
    let largest = parts.clone().map(|part| part.largest).fold(f32::MIN, f32::max);
    let mut all = Vec::new();
    let mut sum = 0.0;
    for part in parts {
        let share = lanes::weight(part.largest - largest);
        all.resize(part.output.len(), 0.0);
        for (all, output) in all.iter_mut().zip(&part.output) {
            *all += share * output;
        }
        sum += share * part.sum;
    }
    for output in &mut all {
        *output /= sum;
    }
    all
}

#[cfg(test)]
mod tests {
    use burn::tensor::Shape;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::init::standard_normal;
    use crate::kernels::cpu::tensors::{contiguous, numbers};
    use crate::testkit::close::{self, F32_REORDERED};

    struct Sizes {
        batch: usize,
        heads: usize,
        groups: usize,
        columns: usize,
        dims: [usize; 2],
    }

    fn random(shape: [usize; 4], seed: u64) -> FlexTensor {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let count = shape.iter().product::<usize>();
        let values = (0..count).map(|_| 2.0 * standard_normal(&mut rng) as f32).collect();
        contiguous(values, Shape::from(shape))
    }

    fn operands(sizes: &Sizes) -> Operands<Flex> {
        let Sizes { batch, heads, groups, columns, dims: [head_dim, value_dim] } = *sizes;
        Operands(Slot::ALL.map(|slot| match slot {
            Slot::Query => random([batch, heads, 1, head_dim], 0),
            // In memory, columns come before heads, as after a projection.
            Slot::Key => random([batch, columns, groups, head_dim], 1).transpose(1, 2),
            // Channels are not adjacent.
            Slot::Values => random([batch, groups, value_dim, columns], 2).transpose(2, 3),
            _ => contiguous(Vec::new(), Shape::from([0])),
        }))
    }

    fn in_f64(operands: &Operands<Flex>, sizes: &Sizes, scale: f64) -> Vec<f64> {
        let Sizes { batch, heads, groups, columns, dims: [head_dim, value_dim] } = *sizes;
        let [q, k, v] = [Slot::Query, Slot::Key, Slot::Values].map(|slot| {
            let tensor = operands[slot].to_contiguous();
            numbers(&tensor).iter().map(|x| f64::from(*x)).collect::<Vec<_>>()
        });
        let mut output = Vec::new();
        for plane in 0..batch * heads {
            let group = plane / heads * groups + plane % heads * groups / heads;
            let logit = |column: usize| {
                let at = (group * columns + column) * head_dim;
                let terms = (0..head_dim).map(|c| q[plane * head_dim + c] * k[at + c]);
                scale * terms.sum::<f64>()
            };
            let weights = (0..columns).map(|column| logit(column).exp()).collect::<Vec<_>>();
            let sum = weights.iter().sum::<f64>();
            output.extend((0..value_dim).map(|c| {
                let of = |column: usize| v[(group * columns + column) * value_dim + c];
                (0..columns).map(|column| weights[column] * of(column)).sum::<f64>() / sum
            }));
        }
        output
    }

    #[test]
    fn outputs_are_those_of_the_formula_and_equal_on_any_number_of_threads() {
        for (columns, heads, groups, dims) in [
            (1, 1, 1, [4, 3]),
            (5, 6, 2, [17, 17]),
            (512, 9, 3, [64, 64]),
            (1300, 4, 4, [6, 70]),
            (1025, 3, 1, [33, 5]),
        ] {
            let sizes = Sizes { batch: 2, heads, groups, columns, dims };
            let operands = operands(&sizes);
            let on = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| numbers(&forward(&operands, 0.3).to_contiguous()).to_vec())
            };
            let output = on(1);
            let widened = output.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
            let expected = in_f64(&operands, &sizes, f64::from(0.3_f32));
            close::compare(&widened, &expected, F32_REORDERED).unwrap();
            for threads in [2, 5] {
                let bits = |numbers: &[f32]| numbers.iter().map(|x| x.to_bits()).collect();
                let (one, several): (Vec<u32>, Vec<u32>) = (bits(&output), bits(&on(threads)));
                assert!(one == several, "{columns} columns, {threads} threads");
            }
        }
    }

    #[test]
    fn a_number_that_is_none_stays_visible_in_the_heads_that_read_it() {
        let sizes = Sizes { batch: 1, heads: 4, groups: 2, columns: 700, dims: [8, 8] };
        let mut operands = operands(&sizes);
        let key = operands[Slot::Key].to_contiguous();
        let mut keys = numbers(&key).to_vec();
        keys[700 * 8 + 650 * 8] = f32::NAN;
        operands[Slot::Key] = contiguous(keys, Shape::from([1, 2, 700, 8]));
        let output = numbers(&forward(&operands, 1.0).to_contiguous()).to_vec();
        assert!(
            output[..16].iter().all(|x| x.is_finite()) && output[16..].iter().all(|x| x.is_nan())
        );
    }
}
