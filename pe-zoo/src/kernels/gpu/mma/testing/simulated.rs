//! The kernels' CUDA source run on the processor.

use super::channels::{ChannelSolution, SimulatedChannels};
use super::kernels;
use super::memory::{BLOCK, Order, strides, swapped, unwritten};
use super::reference::{SimulatedProblem, Solution};
use crate::kernels::gpu::mma::bands::BAND;
use crate::kernels::gpu::mma::config::{MmaConfig, MmaPass, OWNED, UNITS, padded};
use crate::kernels::gpu::mma::pack::PACKED;
use crate::kernels::gpu::mma::table::bands;
use crate::kernels::gpu::testing::simulated::kernel::{CompiledKernel, Scalars};
use crate::kernels::operands::Sizes;

/// The kernels of one configuration.
pub(super) struct Simulated {
    config: MmaConfig,
    channels: Option<SimulatedChannels>,
    pack: CompiledKernel,
    pack_upstream: CompiledKernel,
    forward: CompiledKernel,
    dq: CompiledKernel,
    /// Kernels of keys, one after the other.
    dkv: Vec<CompiledKernel>,
    bands: Option<CompiledKernel>,
    table: CompiledKernel,
}

/// Adds the sinks to the results of the forward kernel, as the launch does; returns their gradients.
fn add_sinks(problem: &SimulatedProblem, output: &mut [f32], log: &mut [f32]) -> Vec<f32> {
    let Sizes { heads, rows, value_dim, .. } = problem.sizes;
    let mut gradients = vec![0.0; heads];
    for (line, output) in output.chunks_mut(value_dim).enumerate() {
        let (row, head) = (line / heads, line % heads);
        let plane = row / rows * heads + head;
        let log = &mut log[plane * padded(rows) + row % rows];
        let sink = problem.sinks[head] * std::f32::consts::LOG2_E;
        let ratio = (sink - *log).exp2();
        *log += (1.0 + ratio).log2();
        output.iter_mut().for_each(|number| *number /= 1.0 + ratio);
        let grad = &problem.grad[(plane * rows + row % rows) * value_dim..];
        let share = output.iter().zip(grad).map(|(out, grad)| out * grad).sum::<f32>();
        gradients[head] -= ratio / (1.0 + ratio) * share;
    }
    gradients
}

/// Buffers of the operands, and those that the backward kernels have in addition.
const INPUTS: usize = 16;
const UPSTREAM: usize = 3;

impl Simulated {
    pub(super) fn new(config: MmaConfig) -> Self {
        let value_dim = config.value_dim;
        let build = |kernel: Box<_>| CompiledKernel::build(&*kernel);
        Self {
            config,
            channels: config.decays_channels().then(|| SimulatedChannels::new(config)),
            pack: build(kernels::pack(config)),
            pack_upstream: build(kernels::pack_upstream(value_dim, config.value_width())),
            forward: build(kernels::forward(config)),
            dq: build(kernels::dq(config)),
            dkv: if config.by_rows() {
                let kernels = config.of_keys().iter();
                kernels.map(|of| build(kernels::dkv_rows(*of, config))).collect()
            } else {
                vec![build(kernels::dkv(config))]
            },
            bands: config.by_distance().then(|| build(kernels::bands(config))),
            table: build(kernels::table()),
        }
    }

    pub(super) fn run(&self, problem: &SimulatedProblem) -> Solution<f32> {
        let Self { config, .. } = self;
        let Sizes { batch, heads, rows, columns, head_dim, value_dim } = problem.sizes;
        let planes = batch * heads;
        let (width, value_width) = (config.width(), config.value_width());
        // Two numbers of bf16 take the place of one of f32.
        let packed = |rows, width| unwritten(planes * padded(rows) * width / 2);
        let (order, [q, k]) = match &self.channels {
            Some(channels) => (Order::ByHead, channels.relative(problem)),
            None => {
                let q = swapped(&problem.q, [batch, heads, rows, head_dim]);
                (Order::ByToken, [q, problem.k.clone()])
            }
        };
        let mut buffers = vec![
            q,
            k,
            problem.values.clone(),
            packed(rows, width),
            packed(columns, width),
            packed(columns, value_width),
        ];
        let mut strided = Vec::new();
        for (order, rows, dim) in [
            (order, rows, head_dim),
            (Order::ByHead, columns, head_dim),
            (Order::ByHead, columns, value_dim),
        ] {
            strided.extend([heads, rows]);
            strided.extend(strides(order, heads, rows, dim));
        }
        strided.extend([padded(rows), padded(columns)]);
        let grid = [(padded(rows) + 2 * padded(columns)) / PACKED, planes];
        self.pack.run(&mut buffers, Scalars { sizes: &strided, factors: &[] }, grid, BLOCK);
        let [q, k, values] = buffers.split_off(3).try_into().unwrap();
        let unused = Vec::new();
        let SimulatedProblem { slopes, distance, decay, decay_residual, .. } = problem;
        let channel_sums = &problem.channel_sums;
        let near = self.channels.as_ref().map(|channels| channels.near(problem));
        let tables = near.as_ref().unwrap_or(&problem.tables);
        let SimulatedProblem { term_params, term_state, .. } = problem;
        let SimulatedProblem { piece_ends, piece_lines, row_factors, .. } = problem;
        let entries = if config.pieces > 0 { columns } else { distance.len() / heads };
        let inputs = || {
            [
                &q,
                &k,
                &values,
                &unused,
                &unused,
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
            ]
            .map(Clone::clone)
            .to_vec()
        };
        let sizes = [heads, rows, columns, columns - rows, entries];
        let factors = [problem.scale, problem.gate_scale, problem.max_position];
        let scalars = Scalars { sizes: &sizes, factors: &factors };
        let by_rows = |pass| [rows.div_ceil(config.of(pass).owned()), planes];

        let mut buffers = inputs();
        buffers.push(unwritten(planes * rows * value_dim));
        buffers.push(unwritten(planes * padded(rows)));
        buffers.push(unwritten(planes * padded(rows) / OWNED));
        self.forward.run(&mut buffers, scalars, by_rows(MmaPass::Forward), BLOCK);
        let [mut output, mut log, far_blocks] = buffers.split_off(INPUTS).try_into().unwrap();
        let of_sinks = add_sinks(problem, &mut output, &mut log);

        let mut buffers = vec![
            problem.grad.clone(),
            output.clone(),
            log,
            unwritten(planes * padded(rows) * value_width / 2),
            unwritten(planes * padded(rows) * 2),
        ];
        let [gb, gh, gt] = strides(Order::ByHead, heads, rows, value_dim);
        let [ob, oh, ot] = strides(Order::ByToken, heads, rows, value_dim);
        let strided = [heads, rows, gb, gh, gt, heads, rows, ob, oh, ot];
        let grid = [padded(rows) / PACKED, planes];
        let packing = Scalars { sizes: &strided, factors: &[] };
        self.pack_upstream.run(&mut buffers, packing, grid, BLOCK);
        let statistics = buffers.remove(4);
        let grad = buffers.remove(3);

        let with_upstream = || {
            let upstream = [&grad, &statistics, &far_blocks];
            inputs().into_iter().chain(upstream.map(Clone::clone)).collect::<Vec<_>>()
        };
        let mut buffers = with_upstream();
        buffers.push(unwritten(planes * rows * head_dim));
        buffers.extend([(); 3].map(|()| unwritten(planes * rows)));
        buffers.push(unwritten(tables.len()));
        buffers.push(unwritten(planes * rows * config.term_numbers(true)));
        buffers.push(unwritten(planes * padded(columns) / OWNED * padded(rows) * 2));
        self.dq.run(&mut buffers, scalars, by_rows(MmaPass::Rows), BLOCK);
        let [of_q, of_slopes, of_factors, of_rows, of_tables, term_rows, edges] =
            buffers.split_off(INPUTS + UPSTREAM).try_into().unwrap();

        let (mut of_distance, mut of_lines) = (Vec::new(), vec![0.0; piece_lines.len()]);
        if let Some(kernel) = &self.bands {
            // A table has the gradient of its last entry from the others.
            let summed = if config.pieces > 0 { entries } else { entries - 1 };
            let count = bands(rows, columns - rows, summed);
            let mut buffers = with_upstream();
            buffers.push(unwritten(planes * count * BAND));
            buffers.push(unwritten(planes * count * config.pieces * 2));
            kernel.run(&mut buffers, scalars, [count, planes], BLOCK);
            for (at, gradient) in buffers.remove(INPUTS + UPSTREAM + 1).iter().enumerate() {
                let (line, piece) = (at / 2 / config.pieces, at / 2 % config.pieces);
                let head = (line / count % heads * 2 + at % 2) * config.pieces;
                of_lines[head + piece] += gradient;
            }
            let mut buffers = [buffers.remove(INPUTS + UPSTREAM), unwritten(heads * summed)];
            let sizes = [planes, heads, count, summed, columns - rows];
            let grid = [(heads * summed).div_ceil(UNITS), 1];
            self.table.run(&mut buffers, Scalars { sizes: &sizes, factors: &[] }, grid, BLOCK);
            let [_, near] = buffers;
            let lines = near.chunks(summed);
            of_distance = if config.pieces > 0 {
                (0..summed).map(|at| lines.clone().map(|line| line[at]).sum()).collect()
            } else {
                let others = lines.zip(&of_sinks);
                let last = |near: &[f32], of_sink: f32| -(near.iter().sum::<f32>() + of_sink);
                others
                    .flat_map(|(near, of_sink)| [near, &[last(near, *of_sink)]].concat())
                    .collect()
            };
        }

        let mut buffers = with_upstream();
        if config.by_rows() {
            buffers.push(edges);
        }
        let outputs = buffers.len();
        buffers.push(unwritten(planes * columns * head_dim));
        buffers.push(unwritten(planes * columns * value_dim));
        buffers.push(unwritten(planes * columns));
        buffers.push(unwritten(planes * columns * config.term_numbers(false)));
        for kernel in &self.dkv {
            let count = columns.div_ceil(config.of(MmaPass::Keys).owned());
            kernel.run(&mut buffers, scalars, [count, planes], BLOCK);
        }
        let [of_k, of_values, mut of_decay, mut of_state] =
            buffers.split_off(outputs).try_into().unwrap();
        let ChannelSolution { q: of_q, k: of_k, sums: of_channels } = match &self.channels {
            Some(channels) => channels.gradients(problem, [of_q, of_k], &of_tables),
            None => ChannelSolution {
                q: swapped(&of_q, [batch, rows, heads, head_dim]),
                k: swapped(&of_k, [batch, columns, heads, head_dim]),
                sums: Vec::new(),
            },
        };

        let mut of_heads = vec![0.0; heads];
        for (at, gradient) in of_slopes.iter().enumerate() {
            of_heads[at / rows % heads] += gradient;
        }
        let mut of_row_factors = vec![0.0; rows];
        for (at, gradient) in of_factors.iter().enumerate() {
            of_row_factors[at % rows] += gradient;
        }
        for (at, gradient) in of_rows.iter().enumerate() {
            of_decay[at / rows * columns + columns - rows + at % rows] += gradient;
        }
        let state = config.term_numbers(false);
        let params = config.term_numbers(true) - state;
        let mut of_params = vec![0.0; heads * params];
        for (line, numbers) in term_rows.chunks((params + state).max(1)).enumerate() {
            let (of_row, of_token) = numbers.split_at(params);
            for (at, gradient) in of_row.iter().enumerate() {
                of_params[line / rows % heads * params + at] += gradient;
            }
            let token = line / rows * columns + columns - rows + line % rows;
            for (at, gradient) in of_token.iter().enumerate() {
                of_state[token * state + at] += gradient;
            }
        }
        Solution {
            term_params: of_params,
            term_state: of_state,
            output: swapped(&output, [batch, rows, heads, value_dim]),
            q: of_q,
            k: of_k,
            values: swapped(&of_values, [batch, columns, heads, value_dim]),
            slopes: of_heads,
            distance: of_distance,
            piece_lines: of_lines,
            row_factors: of_row_factors,
            decay: of_decay,
            channel_sums: of_channels,
            tables: if self.channels.is_some() { Vec::new() } else { of_tables },
        }
    }
}
