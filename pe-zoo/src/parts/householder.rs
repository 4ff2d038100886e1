//! Dot products of queries and keys through products of Householder-like maps, computed in chunks.
//!
//! With `H_t = I - beta_t w_t w_t^T`, the product of row `i` and column `j` is `q_i . H_i ...
//! H_{j+1} k_j`. Within a chunk of columns it has a closed form (the UT transform of Joffrain et
//! al. 2006, as used by Yang et al. 2025): with `L[m, n] = beta_m w_m . w_n` for `n < m` and `X =
//! (I + L)^-1`,
//!
//! `q_i . H_i ... H_{j+1} k_j = q_i . k_j - sum over m <= i, n > j of (q_i . w_m) X[m, n] beta_n
//! (w_n . k_j)`
//!
//! and for earlier chunks the query of a later row is replaced by `q - sum of (q . w_m) X[m, n]
//! beta_n w_n`. Every intermediate is a product of maps of norm at most 1 (for `beta <= 2`), so
//! that nothing grows and nothing is divided: the form is exact and stable.

use burn::tensor::{Device, Tensor, TensorData};

use crate::Positions;
use crate::count::CountedMatmul;
use crate::score::Reflected;

/// Number of columns per chunk.
pub(crate) const CHUNK: usize = Reflected::CHUNK;

/// Householder-like maps and keys of all columns.
#[derive(Debug)]
pub(crate) struct HouseholderMaps {
    /// Keys, `[B, H, S, D]`.
    pub(crate) k: Tensor<4>,
    /// Directions of length at most 1, `[B, H, S, D]`.
    pub(crate) w: Tensor<4>,
    /// Strengths from 0 to 2, `[B, H, S, 1]`.
    pub(crate) beta: Tensor<4>,
}

/// Computes products `q_i . H_i ... H_{j+1} k_j`, `[B, H, T, S]`; where `j > i` the result is
/// finite but undefined.
///
/// Rows `q`, `[B, H, T, D]`, are the last `T` of the `S` columns.
pub(crate) fn products(
    q: &Tensor<4>,
    path: HouseholderMaps,
    at: &Positions,
    chunk: usize,
) -> Tensor<4> {
    let [batch, heads, rows, head_dim] = q.dims();
    let columns = at.cols().len();
    let device = q.device();
    let visible = at.visible(&device);
    let parts = Chunks::new(path, at, chunk, &device);
    let q = q.clone().reshape([batch * heads, rows, head_dim]);

    // Iterates from the last chunk to the first; `query` holds the rows so far, multiplied by
    // the maps of the later chunks.
    let mut query: Option<Tensor<3>> = None;
    let mut met = rows;
    let mut blocks = Vec::new();
    for index in (0..columns.div_ceil(chunk)).rev() {
        let range = index * chunk..columns.min((index + 1) * chunk);
        let first = range.start.saturating_sub(at.first_row());
        let mut moving = query.take();
        if first < met {
            let entering = q.clone().slice_dim(1, first..met);
            moving = Some(match moving {
                Some(later) => Tensor::cat(vec![entering, later], 1),
                None => entering,
            });
            met = first;
        }
        let Some(moving) = moving else { continue };
        let part = parts.get(index, range.len());
        let seen = visible.clone().slice_dim(0, first..rows).slice_dim(1, range.clone());
        let along = moving.clone().counted_matmul(part.w.swap_dims(1, 2)) * seen.unsqueeze::<3>();
        let block = moving.clone().counted_matmul(part.k.swap_dims(1, 2))
            - along.clone().counted_matmul(part.to_key);
        blocks.push(if first == 0 {
            block
        } else {
            let hidden = Tensor::zeros([batch * heads, first, range.len()], &device);
            Tensor::cat(vec![hidden, block], 1)
        });
        query =
            Some(if index == 0 { moving } else { moving - along.counted_matmul(part.to_query) });
    }
    blocks.reverse();
    Tensor::cat(blocks, 2).reshape([batch, heads, rows, columns])
}

/// Operands of products with keys of earlier chunks, and the products within chunks of `K` columns. Every column is a row.
#[cfg(feature = "cube")]
#[derive(Debug)]
pub(crate) struct EdgeProducts {
    /// Queries multiplied by the maps of their chunk, `[B, H, S, D]`.
    pub(crate) q: Tensor<4>,
    /// Keys changed by the later maps of their chunk, `[B, H, S, D]`.
    pub(crate) k: Tensor<4>,
    /// Vectors that the maps of a chunk subtract from a later query, each times the query's product with a direction, `[B, H, S, D]`.
    pub(crate) updates: Tensor<4>,
    /// Products of the rows with the keys of their chunk, `[B, H, S, K]`, finite where the key is later.
    pub(crate) products: Tensor<4>,
}

#[cfg(feature = "cube")]
impl EdgeProducts {
    /// Operands for queries `[B, H, S, D]`.
    pub(crate) fn new(q: &Tensor<4>, path: HouseholderMaps, at: &Positions, chunk: usize) -> Self {
        let [batch, heads, tokens, _head_dim] = q.dims();
        let Chunks { k, w, to_key, to_query } = Chunks::new(path, at, chunk, &q.device());
        let q = into_chunks(q.clone(), chunk);
        let own = at.memo(&format!("householder-own-{chunk}"), &q.device(), || {
            mask(chunk, &|m, n| n <= m, &q.device())
        });
        let along = q.clone().counted_matmul(w.clone().swap_dims(2, 3)) * own;
        let products = q.clone().counted_matmul(k.clone().swap_dims(2, 3))
            - along.clone().counted_matmul(to_key.clone());
        let whole = |u: Tensor<4>| {
            let [_heads, chunks, _chunk, width] = u.dims();
            u.reshape([batch, heads, chunks * chunk, width]).slice_dim(2, 0..tokens)
        };
        Self {
            q: whole(q - along.counted_matmul(to_query.clone())),
            k: whole(k - to_key.swap_dims(2, 3).counted_matmul(w)),
            updates: whole(to_query),
            products: whole(products),
        }
    }
}

/// Precomputed products of all chunks: `N` chunks of `K` columns.
struct Chunks {
    /// Keys of the chunks, `[B H, N, K, D]`.
    k: Tensor<4>,
    /// Directions of the chunks, `[B H, N, K, D]`.
    w: Tensor<4>,
    /// `X (beta W K^T)` below the diagonal, `[B H, N, K, K]`.
    to_key: Tensor<4>,
    /// `X (beta W)`, `[B H, N, K, D]`.
    to_query: Tensor<4>,
}

/// Products of one chunk of [`Chunks`], without the chunk axis.
struct ChunkProducts {
    k: Tensor<3>,
    w: Tensor<3>,
    to_key: Tensor<3>,
    to_query: Tensor<3>,
}

impl Chunks {
    fn new(path: HouseholderMaps, at: &Positions, chunk: usize, device: &Device) -> Self {
        let (k, w) = (into_chunks(path.k, chunk), into_chunks(path.w, chunk));
        let scaled = w.clone() * into_chunks(path.beta, chunk);
        let (below, levels) =
            at.memo(&format!("householder-{chunk}"), device, || masks(chunk, device));
        let lower = scaled.clone().counted_matmul(w.clone().swap_dims(2, 3)) * below.clone();
        let inverse = inverse(&lower, &levels);
        let keys = scaled.clone().counted_matmul(k.clone().swap_dims(2, 3)) * below;
        Self {
            to_key: inverse.clone().counted_matmul(keys),
            to_query: inverse.counted_matmul(scaled),
            k,
            w,
        }
    }

    /// Returns the chunk at `index`, of which the first `len` columns exist.
    fn get(&self, index: usize, len: usize) -> ChunkProducts {
        let take = |u: &Tensor<4>| {
            let u = u.clone().slice_dim(1, index..index + 1).squeeze_dim::<3>(1);
            u.slice_dim(1, 0..len)
        };
        ChunkProducts {
            k: take(&self.k),
            w: take(&self.w),
            to_key: take(&self.to_key).slice_dim(2, 0..len),
            to_query: take(&self.to_query),
        }
    }
}

/// Reshapes `[B, H, S, E]` to `[B H, N, K, E]`, padded with zeros (a strength of 0 is the
/// identity).
fn into_chunks(u: Tensor<4>, chunk: usize) -> Tensor<4> {
    let [batch, heads, columns, width] = u.dims();
    let chunks = columns.div_ceil(chunk);
    let missing = chunks * chunk - columns;
    let u = if missing == 0 {
        u
    } else {
        let nothing = Tensor::zeros([batch, heads, missing, width], &u.device());
        Tensor::cat(vec![u, nothing], 2)
    };
    u.reshape([batch * heads, chunks, chunk, width])
}

/// Inverts `I + lower` for a strictly lower triangular `lower` by doubling the block size: with `A`
/// and `C` inverted, `[[A, 0], [B, C]]^-1 = [[A^-1, 0], [-C^-1 B A^-1, C^-1]]`.
///
/// The series `I - L + L^2 - ...` would be shorter to write, but its powers grow like binomials
/// where directions are alike, and their differences lose every digit.
fn inverse(lower: &Tensor<4>, levels: &[Tensor<4>]) -> Tensor<4> {
    let [_heads, _chunks, chunk, _chunk] = lower.dims();
    let mut inverse = Tensor::<2>::eye(chunk, &lower.device()).unsqueeze::<4>();
    for (level, corners) in levels.iter().enumerate() {
        let corners = lower.clone() * corners.clone();
        inverse = if level == 0 {
            // Blocks of size 1 are their own inverses.
            inverse - corners
        } else {
            inverse.clone() - inverse.clone().counted_matmul(corners).counted_matmul(inverse)
        };
    }
    inverse.expand(lower.dims())
}

/// Returns masks of shape `[1, 1, K, K]`: 1 below the diagonal, then for each doubling of the block
/// size 1 in the new lower left corners.
fn masks(chunk: usize, device: &Device) -> (Tensor<4>, Vec<Tensor<4>>) {
    let mut levels = Vec::new();
    let mut size = 1;
    while size < chunk {
        let corner = |m: usize, n: usize| m / (2 * size) == n / (2 * size) && m / size > n / size;
        levels.push(mask(chunk, &corner, device));
        size *= 2;
    }
    (mask(chunk, &|m, n| n < m, device), levels)
}

/// Returns 1 at the pairs that hold and 0 elsewhere, `[1, 1, K, K]`.
fn mask(chunk: usize, holds: &dyn Fn(usize, usize) -> bool, device: &Device) -> Tensor<4> {
    let values = (0..chunk * chunk)
        .map(|n| f32::from(u8::from(holds(n / chunk, n % chunk))))
        .collect::<Vec<_>>();
    Tensor::from_data(TensorData::new(values, [1, 1, chunk, chunk]), device)
}

/// Multiply-accumulates of [`products`] for one head and a whole sequence of `len` tokens.
pub(crate) fn macs(len: usize, head_dim: usize) -> usize {
    let levels = CHUNK.ilog2() as usize;
    let within = CHUNK * CHUNK * (3 * head_dim + CHUNK + 2 * (levels - 1) * CHUNK);
    let chunk = |start: usize| {
        let columns = CHUNK.min(len - start);
        // Rows that see the chunk are multiplied with its directions and keys, and transformed for
        // the previous chunk.
        let passed_on = if start > 0 { head_dim } else { 0 };
        (len - start) * columns * (2 * head_dim + columns + passed_on)
    };
    len.div_ceil(CHUNK) * within + (0..len).step_by(CHUNK).map(chunk).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dims;
    use crate::reference::{Heads, Tokens, path};
    use crate::testkit::close::{self, F32, Tolerance, numbers};
    use crate::testkit::problem::{Problem, tensor4};

    const TOKENS: usize = 23;

    struct Case {
        problem: Problem,
        w: Heads,
        beta: Tokens,
        dims: Dims,
    }

    impl Case {
        /// Draws random directions, and strengths from 0 to 2 with both ends included.
        fn random(tokens: usize) -> Self {
            let dims = Dims {
                layers: 1,
                width: 12,
                heads: 2,
                head_dim: 6,
                train_len: tokens,
                max_len: tokens,
            };
            let problem = Problem::random(1, tokens, &dims, 3);
            let unit = |u: &Vec<f64>| -> Vec<f64> {
                let norm = crate::reference::dot(u, u).sqrt();
                u.iter().map(|x| f64::from((x / norm) as f32)).collect()
            };
            let w = Problem::random(1, tokens, &dims, 4).k[0]
                .iter()
                .map(|head| head.iter().map(unit).collect())
                .collect();
            let beta = (0..dims.heads)
                .map(|h| (0..tokens).map(|t| ((t + h) % 5) as f64 * 0.5).collect())
                .collect();
            Self { problem, w, beta, dims }
        }

        /// Queries of all tokens, with the maps and keys.
        fn operands(&self) -> (Tensor<4>, HouseholderMaps) {
            let device = Device::flex();
            let beta = self
                .beta
                .iter()
                .map(|head| head.iter().map(|b| vec![*b]).collect())
                .collect::<Heads>();
            let path = HouseholderMaps {
                k: tensor4(&self.problem.k, &device),
                w: tensor4(std::slice::from_ref(&self.w), &device),
                beta: tensor4(&[beta], &device),
            };
            (tensor4(&self.problem.q, &device), path)
        }

        /// Computes undivided products with the tensor code, for rows from `first_row` on.
        fn tensor(&self, first_row: usize, chunk: usize) -> Vec<f64> {
            let tokens = self.problem.x[0].len();
            let at = Positions::contiguous(first_row, tokens - first_row);
            let (q, path) = self.operands();
            let q = q.slice_dim(2, first_row..tokens);
            let visible = at.visible(&q.device()).unsqueeze::<4>();
            numbers(products(&q, path, &at, chunk) * visible)
        }

        /// Computes the same products of all rows from [`EdgeProducts`], chunk by chunk to the left as the kernels of a GPU do.
        #[cfg(feature = "cube")]
        fn by_edges(&self, chunk: usize) -> Vec<f64> {
            let tokens = self.problem.x[0].len();
            let at = Positions::contiguous(0, tokens);
            let (q, path) = self.operands();
            let w = path.w.clone();
            let EdgeProducts { q, k, updates, products } = EdgeProducts::new(&q, path, &at, chunk);
            let width = q.dims()[3];
            let [q, k, w, updates, products] = [q, k, w, updates, products].map(numbers);
            let line =
                |of: &[f64], token: usize, width: usize| of[token * width..][..width].to_vec();
            let dot = crate::reference::dot;
            let mut result = vec![0.0; self.dims.heads * tokens * tokens];
            for (at, row) in result.chunks_mut(tokens).enumerate() {
                let (first, own) = (at - at % tokens, at % tokens / chunk);
                for column in own * chunk..=at % tokens {
                    row[column] = products[at * chunk + column % chunk];
                }
                let mut query = line(&q, at, width);
                for block in (0..own).rev() {
                    let columns = block * chunk..(block + 1) * chunk;
                    let met = query.clone();
                    for column in columns {
                        row[column] = dot(&met, &line(&k, first + column, width));
                        let along = dot(&met, &line(&w, first + column, width));
                        let update = line(&updates, first + column, width);
                        query.iter_mut().zip(update).for_each(|(x, of)| *x -= along * of);
                    }
                }
            }
            result
        }

        /// Computes the same products with a scalar loop.
        fn scalar(&self, first_row: usize) -> Vec<f64> {
            let tokens = self.problem.x[0].len();
            let at = Positions::contiguous(first_row, tokens - first_row);
            let root = (self.dims.head_dim as f64).sqrt();
            path::logits(&self.problem.scalar(0, 0, &at), &self.w, &self.beta)
                .into_iter()
                .flatten()
                .flat_map(|row| {
                    row.into_iter().map(|x| x * root).chain(std::iter::repeat(0.0)).take(tokens)
                })
                .collect()
        }
    }

    #[test]
    fn chunks_of_every_size_equal_the_naive_product() {
        let case = Case::random(TOKENS);
        for chunk in [1, 2, 3, 4, 7, 16, 23, 32] {
            for first_row in [0, 1, 8, 22] {
                close::compare(&case.tensor(first_row, chunk), &case.scalar(first_row), F32)
                    .unwrap_or_else(|e| panic!("chunks of {chunk}, rows from {first_row}: {e}"));
            }
        }
    }

    #[cfg(feature = "cube")]
    #[test]
    fn queries_that_pass_chunk_after_chunk_give_the_same_products() {
        for (tokens, chunk) in [(23, 4), (23, 16), (23, 32), (150, 64)] {
            let case = Case::random(tokens);
            let tolerance = Tolerance { absolute: 5e-5, relative: 5e-5 };
            close::compare(&case.by_edges(chunk), &case.scalar(0), tolerance)
                .unwrap_or_else(|e| panic!("{tokens} tokens in chunks of {chunk}: {e}"));
        }
    }

    #[test]
    fn equal_directions_reflected_again_and_again_lose_no_digits() {
        let mut case = Case::random(100);
        for head in 0..case.dims.heads {
            let first = case.w[head][0].clone();
            case.w[head].fill(first);
            case.beta[head].fill(2.0);
        }
        for chunk in [32, 64] {
            // A hundred reflections, each with its rounding.
            let tolerance = Tolerance { absolute: 5e-5, relative: 5e-5 };
            close::compare(&case.tensor(0, chunk), &case.scalar(0), tolerance).unwrap();
        }
    }

    #[test]
    fn a_thousand_maps_neither_grow_nor_drift() {
        let case = Case::random(1000);
        let tolerance = Tolerance { absolute: 2e-4, relative: 2e-4 };
        close::compare(&case.tensor(990, CHUNK), &case.scalar(990), tolerance).unwrap();
    }
}
