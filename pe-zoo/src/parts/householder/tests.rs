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

    /// Computes undivided products with the tensor code, for rows from `first_row` on.
    fn tensor(&self, first_row: usize, chunk: usize) -> Vec<f64> {
        let device = Device::flex();
        let tokens = self.problem.x[0].len();
        let at = Positions::contiguous(first_row, tokens - first_row);
        let beta =
            self.beta.iter().map(|head| head.iter().map(|b| vec![*b]).collect()).collect::<Heads>();
        let path = HouseholderMaps {
            k: tensor4(&self.problem.k, &device),
            w: tensor4(std::slice::from_ref(&self.w), &device),
            beta: tensor4(&[beta], &device),
        };
        let q = tensor4(&self.problem.q, &device).slice_dim(2, first_row..tokens);
        let products = products(&q, path, &at, chunk) * at.visible(&device).unsqueeze::<4>();
        numbers(products)
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
