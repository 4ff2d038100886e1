//! Attention problems with the same numbers in tensors and in scalars.

use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::init::standard_normal;
use crate::reference::{Heads, ScalarInput, Tokens};
use crate::{Dims, Positions};

/// Queries, keys, values, layer inputs and token ids of one batch.
#[derive(Debug, Clone)]
pub struct Problem {
    /// Queries of all heads, `[batch][head][token][D]`.
    pub q: Vec<Heads>,
    /// Keys of all heads, `[batch][head][token][D]`.
    pub k: Vec<Heads>,
    /// Values of all heads, `[batch][head][token][D]`.
    pub v: Vec<Heads>,
    /// Inputs of the layer, `[batch][token][C]`.
    pub x: Vec<Tokens>,
    /// Token ids, `[batch][token]`, from a small vocabulary, so that runs of digits occur.
    pub tokens: Vec<Vec<usize>>,
}

impl Problem {
    /// Draws standard normal numbers, and token ids below 19, the size of the addition task's
    /// vocabulary.
    pub fn random(batch: usize, tokens: usize, dims: &Dims, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut draw = |rows: usize, columns: usize| -> Tokens {
            // Rounded to f32 so that tensors and scalars start from the same numbers.
            let row = |rng: &mut ChaCha8Rng| {
                (0..columns).map(|_| f64::from(standard_normal(rng) as f32)).collect()
            };
            (0..rows).map(|_| row(&mut rng)).collect()
        };
        let heads = |draw: &mut dyn FnMut(usize, usize) -> Tokens| -> Vec<Heads> {
            (0..batch)
                .map(|_| (0..dims.heads).map(|_| draw(tokens, dims.head_dim)).collect())
                .collect()
        };
        let (q, k, v) = (heads(&mut draw), heads(&mut draw), heads(&mut draw));
        let x = (0..batch).map(|_| draw(tokens, dims.width)).collect();
        let ids = |rng: &mut ChaCha8Rng| (0..tokens).map(|_| rng.random_range(0..19)).collect();
        let tokens = (0..batch).map(|_| ids(&mut rng)).collect();
        Self { q, k, v, x, tokens }
    }

    /// Scalar problem of one batch entry; rows start at `at.first_row()`.
    pub fn scalar(&self, batch: usize, layer: usize, at: &Positions) -> ScalarInput {
        let rows = |heads: &Heads| -> Heads {
            heads.iter().map(|head| head[at.first_row()..at.cols().len()].to_vec()).collect()
        };
        let columns = |heads: &Heads| -> Heads {
            heads.iter().map(|head| head[..at.cols().len()].to_vec()).collect()
        };
        ScalarInput {
            layer,
            q: rows(&self.q[batch]),
            k: columns(&self.k[batch]),
            v: columns(&self.v[batch]),
            x: self.x[batch][..at.cols().len()].to_vec(),
            positions: at.cols().to_vec(),
            unit: at.unit(),
            first_row: at.first_row(),
        }
    }
}

/// Converts `[batch][head][token][D]` to a tensor.
pub fn tensor4(values: &[Heads], device: &Device) -> Tensor<4> {
    let shape = [values.len(), values[0].len(), values[0][0].len(), values[0][0][0].len()];
    let flat = values.iter().flatten().flatten().flatten().map(|x| *x as f32).collect::<Vec<_>>();
    Tensor::from_data(TensorData::new(flat, shape), device)
}

/// Converts `[batch][token][C]` to a tensor.
pub fn tensor3(values: &[Tokens], device: &Device) -> Tensor<3> {
    let shape = [values.len(), values[0].len(), values[0][0].len()];
    let flat = values.iter().flatten().flatten().map(|x| *x as f32).collect::<Vec<_>>();
    Tensor::from_data(TensorData::new(flat, shape), device)
}

/// Converts `[batch][token]` to a tensor of ids.
pub fn ids(values: &[Vec<usize>], device: &Device) -> Tensor<2, Int> {
    let shape = [values.len(), values[0].len()];
    let flat = values.iter().flatten().map(|id| *id as i64).collect::<Vec<_>>();
    Tensor::from_data(TensorData::new(flat, shape), device)
}
