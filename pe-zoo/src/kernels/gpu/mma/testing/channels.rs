//! The kernels of decaying channels beside those that walk over blocks, run on the processor.

use super::kernels;
use super::memory::{BLOCK, Order, strides, swapped, unwritten};
use super::reference::SimulatedProblem;
use crate::kernels::gpu::mma::config::{MmaConfig, NEAR, PLANES};
use crate::kernels::gpu::mma::pack::PACKED;
use crate::kernels::gpu::testing::simulated::kernel::{CompiledKernel, Scalars};
use crate::kernels::operands::Sizes;

/// Kernels for rows, then for keys.
pub(super) struct SimulatedChannels {
    relative: [CompiledKernel; 2],
    near: CompiledKernel,
    gradients: [CompiledKernel; 2],
}

/// Gradients of the operands, all in row-major order.
pub(super) struct ChannelSolution {
    pub(super) q: Vec<f32>,
    pub(super) k: Vec<f32>,
    pub(super) sums: Vec<f32>,
}

/// Sizes of a strided tensor with as many channels as heads have: queries, or keys and running sums.
fn strided(order: Order, heads: usize, tokens: usize, dim: usize) -> Vec<usize> {
    [vec![heads, tokens], strides(order, heads, tokens, dim).to_vec()].concat()
}

impl SimulatedChannels {
    pub(super) fn new(config: MmaConfig) -> Self {
        let build = |kernel: Box<_>| CompiledKernel::build(&*kernel);
        Self {
            relative: [true, false].map(|of_rows| build(kernels::relative(of_rows, config))),
            near: build(kernels::near(config)),
            gradients: [true, false].map(|of_rows| build(kernels::near_gradients(of_rows, config))),
        }
    }

    /// Queries and keys relative to the ends of their groups, in row-major order.
    pub(super) fn relative(&self, problem: &SimulatedProblem) -> [Vec<f32>; 2] {
        let Sizes { batch, heads, rows, columns, head_dim, .. } = problem.sizes;
        let sums = strided(Order::ByHead, heads, columns, head_dim);
        let q = swapped(&problem.q, [batch, heads, rows, head_dim]);
        let operands = [(q, Order::ByToken, rows), (problem.k.clone(), Order::ByHead, columns)];
        let mut kernels = self.relative.iter();
        operands.map(|(from, order, tokens)| {
            let to = unwritten(from.len());
            let mut buffers = [from, problem.channel_sums.clone(), to];
            let first_row = vec![columns - rows];
            let sizes = [strided(order, heads, tokens, head_dim), sums.clone(), first_row].concat();
            let scalars = Scalars { sizes: &sizes, factors: &[] };
            let grid = [tokens.div_ceil(PACKED), batch * heads];
            kernels.next().unwrap().run(&mut buffers, scalars, grid, BLOCK);
            let [_, _, to] = buffers;
            to
        })
    }

    /// Products of near pairs, `[B, H, T, 32]`.
    pub(super) fn near(&self, problem: &SimulatedProblem) -> Vec<f32> {
        let Sizes { batch, heads, rows, columns, head_dim, .. } = problem.sizes;
        let to = unwritten(batch * heads * rows * NEAR);
        let q = swapped(&problem.q, [batch, heads, rows, head_dim]);
        let mut buffers = [q, problem.k.clone(), problem.channel_sums.clone(), to];
        let of_columns = strided(Order::ByHead, heads, columns, head_dim);
        let of_rows = strided(Order::ByToken, heads, rows, head_dim);
        let sizes = [of_rows, of_columns.clone(), of_columns, vec![columns - rows]].concat();
        let scalars = Scalars { sizes: &sizes, factors: &[] };
        self.near.run(&mut buffers, scalars, [rows.div_ceil(PLANES), batch * heads], BLOCK);
        let [_, _, _, to] = buffers;
        to
    }

    /// Gradients from those of relative queries and keys, `[B, tokens, H, D]`, and of near products.
    pub(super) fn gradients(
        &self,
        problem: &SimulatedProblem,
        [of_q, of_k]: [Vec<f32>; 2],
        of_near: &[f32],
    ) -> ChannelSolution {
        let Sizes { batch, heads, rows, columns, head_dim, .. } = problem.sizes;
        let first_row = columns - rows;
        let sums = strided(Order::ByHead, heads, columns, head_dim);
        let q = swapped(&problem.q, [batch, heads, rows, head_dim]);
        let operands = [
            (problem.k.clone(), Order::ByHead, columns, of_q, rows),
            (q, Order::ByToken, rows, of_k, columns),
        ];
        let mut kernels = self.gradients.iter();
        let [q, k] = operands.map(|(other, order, others, gradients, tokens)| {
            let mut buffers = [other, problem.channel_sums.clone(), of_near.to_vec(), gradients];
            let other = strided(order, heads, others, head_dim);
            let sizes = [other, sums.clone(), vec![rows, first_row]].concat();
            let scalars = Scalars { sizes: &sizes, factors: &[problem.scale] };
            let grid = [tokens.div_ceil(PACKED), batch * heads];
            kernels.next().unwrap().run(&mut buffers, scalars, grid, BLOCK);
            let [_, _, _, gradients] = buffers;
            swapped(&gradients, [batch, tokens, heads, head_dim])
        });
        let mut of_sums = problem.k.iter().zip(&k).map(|(k, of_k)| -k * of_k).collect::<Vec<_>>();
        for (at, (q, of_q)) in problem.q.iter().zip(&q).enumerate() {
            let (row, channel) = (at / head_dim, at % head_dim);
            let token = row / rows * columns + first_row + row % rows;
            of_sums[token * head_dim + channel] += q * of_q;
        }
        ChannelSolution { q, k, sums: of_sums }
    }
}
