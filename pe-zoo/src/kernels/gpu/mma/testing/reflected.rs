//! The kernels of queries that change from block to block in the simulation, compared with the formulas in f64.

use burn::tensor::bf16;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::compare::{ROUNDED, close};
use super::kernels;
use super::memory::{BLOCK, Order, strides, swapped, unwritten};
use crate::init::standard_normal;
use crate::kernels::gpu::mma::config::{AlongRow, MmaConfig, OWNED, padded};
use crate::kernels::gpu::mma::pack::PACKED;
use crate::kernels::gpu::testing::simulated::kernel::{CompiledKernel, Scalars};
use crate::kernels::operands::Sizes;

/// Operands of one attention, all in row-major order.
struct ReflectedProblem {
    config: MmaConfig,
    sizes: Sizes,
    scale: f32,
    q: Vec<f32>,
    k: Vec<f32>,
    values: Vec<f32>,
    directions: Vec<f32>,
    updates: Vec<f32>,
    /// Products with the columns of a row's block, `[B, H, T, 64]`.
    products: Vec<f32>,
    decay: Vec<f32>,
    grad: Vec<f32>,
}

/// Output and gradients, in row-major order.
struct ReflectedSolution<F> {
    output: Vec<F>,
    q: Vec<F>,
    k: Vec<F>,
    values: Vec<F>,
    directions: Vec<F>,
    updates: Vec<F>,
    products: Vec<F>,
    decay: Vec<F>,
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

/// Adds a multiple of a vector.
fn add(to: &mut [f64], factor: f64, vector: &[f64]) {
    to.iter_mut().zip(vector).for_each(|(to, x)| *to += factor * x);
}

impl ReflectedProblem {
    /// Random operands whose factors bf16 represents exactly.
    fn random(config: MmaConfig, sizes: Sizes) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let Sizes { batch, heads, rows, head_dim, value_dim, .. } = sizes;
        let tokens = batch * heads * rows;
        let mut exact = |count: usize, factor: f32| {
            let numbers = (0..count).map(|_| standard_normal(&mut rng) as f32 * factor);
            numbers.map(|number| bf16::from_f32(number).to_f32()).collect::<Vec<_>>()
        };
        let unit = (head_dim as f32).sqrt().recip();
        let mut decay = exact(tokens, 0.3);
        for plane in decay.chunks_mut(rows) {
            for at in 1..rows {
                plane[at] = plane[at - 1] - plane[at].abs();
            }
        }
        Self {
            config,
            sizes,
            scale: unit,
            q: exact(tokens * head_dim, 1.0),
            k: exact(tokens * head_dim, 1.0),
            values: exact(tokens * value_dim, 1.0),
            directions: exact(tokens * head_dim, unit),
            updates: exact(tokens * head_dim, unit),
            products: exact(tokens * OWNED, unit.recip()),
            decay,
            grad: exact(tokens * value_dim, 1.0),
        }
    }

    fn solve(&self) -> ReflectedSolution<f64> {
        let Sizes { batch, heads, rows, head_dim, value_dim, .. } = self.sizes;
        let zeros = |like: &[f32]| vec![0.0; like.len()];
        let mut of = ReflectedSolution {
            output: zeros(&self.grad),
            q: zeros(&self.q),
            k: zeros(&self.k),
            values: zeros(&self.values),
            directions: zeros(&self.directions),
            updates: zeros(&self.updates),
            products: zeros(&self.products),
            decay: zeros(&self.decay),
        };
        let scale = f64::from(self.scale);
        let line = |from: &[f32], token: usize, width: usize| {
            from[token * width..][..width].iter().map(|x| f64::from(*x)).collect::<Vec<_>>()
        };
        for (token, row) in
            (0..batch * heads).flat_map(|plane| (0..rows).map(move |row| (plane * rows + row, row)))
        {
            let first = token - row;
            let own = row / OWNED;
            let columns = |block: usize| block * OWNED..((block + 1) * OWNED).min(row + 1);
            // Queries as they meet each block on the left, that of the first block first.
            let mut met = vec![line(&self.q, token, head_dim)];
            for block in (1..own).rev() {
                let mut next = met[0].clone();
                for column in columns(block) {
                    let direction = line(&self.directions, first + column, head_dim);
                    let update = line(&self.updates, first + column, head_dim);
                    add(&mut next, -dot(&met[0], &direction), &update);
                }
                met.insert(0, next);
            }
            let logits = (0..=row).map(|column| {
                let product = match column / OWNED {
                    block if block == own => {
                        f64::from(self.products[token * OWNED + column % OWNED])
                    }
                    block => dot(&met[block], &line(&self.k, first + column, head_dim)),
                };
                let bias = f64::from(self.decay[token]) - f64::from(self.decay[first + column]);
                product * scale + if self.config.decay { bias } else { 0.0 }
            });
            let logits = logits.collect::<Vec<_>>();
            let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights = logits.iter().map(|x| (x - largest).exp()).collect::<Vec<_>>();
            let total = weights.iter().sum::<f64>();
            let weights = weights.iter().map(|x| x / total).collect::<Vec<_>>();
            let grad = line(&self.grad, token, value_dim);
            let of_weights = (0..=row)
                .map(|column| dot(&grad, &line(&self.values, first + column, value_dim)))
                .collect::<Vec<_>>();
            let share = dot(&weights, &of_weights);
            let of_logit = |column: usize| weights[column] * (of_weights[column] - share);
            for column in 0..=row {
                let values = line(&self.values, first + column, value_dim);
                add(&mut of.output[token * value_dim..][..value_dim], weights[column], &values);
                let at = (first + column) * value_dim;
                add(&mut of.values[at..][..value_dim], weights[column], &grad);
                of.decay[token] += of_logit(column);
                of.decay[first + column] -= of_logit(column);
            }
            let mut behind = vec![0.0; head_dim];
            for block in 0..own {
                let mut gradient = behind.clone();
                for column in columns(block) {
                    let at = (first + column) * head_dim;
                    if block > 0 {
                        let direction = line(&self.directions, first + column, head_dim);
                        let update = line(&self.updates, first + column, head_dim);
                        let product = dot(&met[block], &direction);
                        let of_product = -dot(&behind, &update);
                        add(&mut of.updates[at..][..head_dim], -product, &behind);
                        add(&mut of.directions[at..][..head_dim], of_product, &met[block]);
                        add(&mut gradient, of_product, &direction);
                    }
                    let of_product = scale * of_logit(column);
                    add(&mut of.k[at..][..head_dim], of_product, &met[block]);
                    add(&mut gradient, of_product, &line(&self.k, first + column, head_dim));
                }
                behind = gradient;
            }
            of.q[token * head_dim..][..head_dim].copy_from_slice(&behind);
            for column in columns(own) {
                of.products[token * OWNED + column % OWNED] = scale * of_logit(column);
            }
        }
        of
    }
}

struct SimulatedReflections {
    config: MmaConfig,
    pack: CompiledKernel,
    pack_maps: CompiledKernel,
    pack_upstream: CompiledKernel,
    forward: CompiledKernel,
    backward: CompiledKernel,
}

impl SimulatedReflections {
    fn new(config: MmaConfig) -> Self {
        let build = |kernel: Box<_>| CompiledKernel::build(&*kernel);
        let MmaConfig { head_dim, value_dim, .. } = config;
        Self {
            config,
            pack: build(kernels::pack(config)),
            pack_maps: build(kernels::pack(MmaConfig { value_dim: head_dim, ..config })),
            pack_upstream: build(kernels::pack_upstream(value_dim, config.value_width())),
            forward: build(kernels::forward(config)),
            backward: build(kernels::reflected(config)),
        }
    }

    /// Runs the kernels with this many cubes of a plane in the backward kernel.
    fn run(&self, problem: &ReflectedProblem, cubes: usize) -> ReflectedSolution<f32> {
        let Self { config, .. } = self;
        let Sizes { batch, heads, rows, head_dim, value_dim, .. } = problem.sizes;
        let planes = batch * heads;
        let (width, value_width) = (config.width(), config.value_width());
        let packed = |width: usize| unwritten(planes * padded(rows) * width / 2);
        let pack = |kernel: &CompiledKernel, from: [&Vec<f32>; 3], of_values, padded_rows| {
            let [q, k, values] = from.map(Clone::clone);
            let to_values = packed(if of_values == value_dim { value_width } else { width });
            let mut buffers = [q, k, values, packed(width), packed(width), to_values];
            let mut sizes = Vec::new();
            for dim in [head_dim, head_dim, of_values] {
                sizes.extend([heads, rows]);
                sizes.extend(strides(Order::ByHead, heads, rows, dim));
            }
            sizes.extend([padded_rows, padded(rows)]);
            let grid = [(padded_rows + 2 * padded(rows)) / PACKED, planes];
            kernel.run(&mut buffers, Scalars { sizes: &sizes, factors: &[] }, grid, BLOCK);
            let [_, _, _, q, k, values] = buffers;
            [q, k, values]
        };
        let ReflectedProblem { directions, updates, .. } = problem;
        let [q, k, values] =
            pack(&self.pack, [&problem.q, &problem.k, &problem.values], value_dim, padded(rows));
        let [_, directions, updates] =
            pack(&self.pack_maps, [directions, directions, updates], head_dim, 0);
        let none = Vec::new;
        let inputs = || {
            let ReflectedProblem { decay, products, .. } = problem;
            let of_maps =
                [q.clone(), k.clone(), values.clone(), directions.clone(), updates.clone()];
            let of_biases = [none(), none(), none(), none(), none(), decay.clone(), none(), none()];
            let mut inputs = [of_maps.to_vec(), of_biases.to_vec()].concat();
            inputs.extend([products.clone(), none(), none()]);
            inputs
        };
        let sizes = [heads, rows, rows, 0, 1];
        let factors = [problem.scale, problem.scale, 1.0];
        let scalars = Scalars { sizes: &sizes, factors: &factors };
        let count = inputs().len();

        let mut buffers = inputs();
        buffers.push(unwritten(planes * rows * value_dim));
        buffers.push(unwritten(planes * padded(rows)));
        buffers.push(none());
        self.forward.run(&mut buffers, scalars, [rows.div_ceil(OWNED), planes], BLOCK);
        let [output, log, _far] = buffers.split_off(count).try_into().unwrap();

        let mut buffers = vec![problem.grad.clone(), output.clone(), log];
        buffers.push(packed(value_width));
        buffers.push(unwritten(planes * padded(rows) * 2));
        let [gb, gh, gt] = strides(Order::ByHead, heads, rows, value_dim);
        let [ob, oh, ot] = strides(Order::ByToken, heads, rows, value_dim);
        let strided = [heads, rows, gb, gh, gt, heads, rows, ob, oh, ot];
        let grid = [padded(rows) / PACKED, planes];
        self.pack_upstream.run(
            &mut buffers,
            Scalars { sizes: &strided, factors: &[] },
            grid,
            BLOCK,
        );
        let statistics = buffers.remove(4);
        let grad = buffers.remove(3);

        let mut buffers = inputs();
        buffers.extend([grad, statistics, none()]);
        let count = buffers.len();
        let of_columns = |width: usize| vec![0.0; cubes * planes * padded(rows) * width];
        buffers.push(unwritten(planes * rows * head_dim));
        buffers.extend([width, value_width, width, width, 1].map(of_columns));
        buffers.push(unwritten(planes * rows));
        buffers.push(unwritten(planes * rows * OWNED));
        buffers.push(unwritten(cubes * planes * padded(rows) * width / 2));
        self.backward.run(&mut buffers, scalars, [cubes, planes], BLOCK);
        let of: [Vec<f32>; 9] = buffers.split_off(count).try_into().unwrap();
        let [of_q, k, values, directions, updates, of_columns, of_rows, products, _met] = of;
        let whole = |sums: &[f32], width: usize, dim: usize| {
            let mut to = vec![0.0; planes * rows * dim];
            for (line, numbers) in sums.chunks(width).enumerate() {
                let (plane, row) = (line / padded(rows) % planes, line % padded(rows));
                if row < rows {
                    let to = &mut to[(plane * rows + row) * dim..][..dim];
                    to.iter_mut().zip(numbers).for_each(|(to, x)| *to += x);
                }
            }
            to
        };
        let of_columns = whole(&of_columns, 1, 1);
        ReflectedSolution {
            output: swapped(&output, [batch, rows, heads, value_dim]),
            q: swapped(&of_q, [batch, rows, heads, head_dim]),
            k: whole(&k, width, head_dim),
            values: whole(&values, value_width, value_dim),
            directions: whole(&directions, width, head_dim),
            updates: whole(&updates, width, head_dim),
            products,
            decay: match config.decay {
                true => of_rows.iter().zip(of_columns).map(|(row, column)| row - column).collect(),
                false => of_columns,
            },
        }
    }
}

fn check(head_dim: usize, value_dim: usize, decay: bool) {
    let one = Sizes { batch: 1, heads: 1, rows: 1, columns: 1, head_dim, value_dim };
    let config =
        MmaConfig { along: AlongRow::Reflected, decay, native: false, ..MmaConfig::plain(one) };
    let simulated = SimulatedReflections::new(config);
    for (batch, rows, cubes) in [(1, 1, 1), (2, 40, 1), (1, 70, 2), (1, 200, 2)] {
        let sizes = Sizes { batch, heads: 2, rows, columns: rows, head_dim, value_dim };
        let problem = ReflectedProblem::random(config, sizes);
        let (simulated, again) = (simulated.run(&problem, cubes), simulated.run(&problem, cubes));
        let expected = problem.solve();
        let name = |what: &str| format!("{what} of {head_dim} channels, {rows} rows");
        for (what, numbers, again, expected) in [
            ("output", &simulated.output, &again.output, &expected.output),
            ("gradient of queries", &simulated.q, &again.q, &expected.q),
            ("gradient of keys", &simulated.k, &again.k, &expected.k),
            ("gradient of values", &simulated.values, &again.values, &expected.values),
            (
                "gradient of directions",
                &simulated.directions,
                &again.directions,
                &expected.directions,
            ),
            ("gradient of updates", &simulated.updates, &again.updates, &expected.updates),
            ("gradient of products", &simulated.products, &again.products, &expected.products),
        ] {
            close(&name(what), numbers, expected, ROUNDED);
            assert_eq!(numbers, again, "{} differs in a second run", name(what));
        }
        if decay {
            close(&name("gradient of running sums"), &simulated.decay, &expected.decay, ROUNDED);
            assert_eq!(simulated.decay, again.decay, "running sums differ in a second run");
        }
    }
}

#[test]
fn queries_that_change_from_block_to_block() {
    check(64, 64, false);
    check(32, 40, true);
}

#[test]
fn wide_queries_that_change() {
    check(128, 96, true);
}
