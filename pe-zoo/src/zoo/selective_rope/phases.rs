//! Steps of the angles that one layer computes from its tokens.

use burn::module::{Module, Param};
use burn::tensor::activation::sigmoid;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use super::settings::{ConvActivation, Filter, Gate, Map, SelectiveRopeConfig};
use crate::count::CountedMatmul;
use crate::ops::{causal_convolution, linear, unit_norm};
use crate::parts::by_head;
use crate::reference::{Heads, Tokens, rope as scalar, table_f64, values_f64};
use crate::{Dims, init};

/// Term added to the squared length of a slice, as in the authors' library.
const EPSILON: f64 = 1e-6;

/// Linear map, optionally of low rank.
#[derive(Module, Debug)]
pub struct Projection {
    /// First factor, `[C, rank]`; `None` for a map of full rank.
    pub down: Option<Param<Tensor<2>>>,
    /// Second factor or the whole map, `[C or rank, outputs]`.
    pub up: Param<Tensor<2>>,
    /// Bias of the outputs, `[outputs]`.
    pub offset: Option<Param<Tensor<1>>>,
}

/// Linear map of each head's slice, with columns of length 1.
#[derive(Module, Debug)]
pub struct PerHead {
    /// Weights before normalisation, `[H, D, D/2]`.
    pub weight: Param<Tensor<3>>,
    /// Scale of each head's map, `[H]`.
    pub multiplier: Param<Tensor<1>>,
}

/// Map from tokens to steps, the increments of the angles.
#[derive(Module, Debug)]
pub enum PhaseMap {
    /// Low-rank map of the whole model width.
    LowRank(Projection),
    /// One map for the slice of each head.
    FullRank(PerHead),
}

/// Learned parameters of the angles of one layer.
#[derive(Module, Debug)]
pub struct Phases {
    /// Map from tokens to steps.
    pub map: PhaseMap,
    /// Taps of the convolution, `[H D/2, kernel]`, the last one for the token itself.
    pub taps: Option<Param<Tensor<2>>>,
    /// Logarithm of the added step, `[H, D/2]`.
    pub bias: Option<Param<Tensor<2>>>,
    /// Map to the logits of the gate that multiplies the steps.
    pub gate: Option<Projection>,
    #[module(skip)]
    activation: ConvActivation,
    #[module(skip)]
    heads: usize,
}

impl Projection {
    fn new(
        inputs: usize,
        outputs: usize,
        rank: Option<usize>,
        offset: bool,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Self {
        let bound = |inputs: usize| (inputs as f64).powf(-0.5);
        let middle = rank.unwrap_or(inputs);
        Self {
            down: rank.map(|rank| init::uniform(bound(inputs), [inputs, rank], rng, device)),
            up: init::uniform(bound(middle), [middle, outputs], rng, device),
            offset: offset.then(|| init::uniform(bound(middle), [outputs], rng, device)),
        }
    }

    /// Applies the map, `[B, T, C] -> [B, T, outputs]`.
    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let x = match &self.down {
            Some(down) => linear(x, down.val(), None),
            None => x,
        };
        linear(x, self.up.val(), self.offset.as_ref().map(Param::val))
    }

    fn scalar(&self, x: &[f64]) -> Vec<f64> {
        let narrow = self.down.as_ref().map(|down| scalar::project(x, &table_f64(down)));
        let mut out = scalar::project(narrow.as_deref().unwrap_or(x), &table_f64(&self.up));
        if let Some(offset) = &self.offset {
            out.iter_mut().zip(values_f64(offset)).for_each(|(value, offset)| *value += offset);
        }
        out
    }
}

impl PerHead {
    /// Map with normalised and scaled columns, `[H, D, D/2]`.
    fn normalised(&self) -> Tensor<3> {
        let weight = self.weight.val();
        let [heads, _inputs, _outputs] = weight.dims();
        let length = (weight.clone() * weight.clone()).sum_dim(1).sqrt().clamp_min(1e-12);
        weight / length * self.multiplier.val().reshape([heads, 1, 1])
    }

    fn scalar(&self, head: usize, slice: &[f64]) -> Vec<f64> {
        let [_heads, inputs, outputs] = self.weight.val().dims();
        let all = values_f64(&self.weight);
        let weight = &all[head * inputs * outputs..(head + 1) * inputs * outputs];
        let multiplier = values_f64(&self.multiplier)[head];
        (0..outputs)
            .map(|output| {
                let column = (0..inputs).map(|i| weight[i * outputs + output]).collect::<Vec<_>>();
                let length = column.iter().map(|w| w * w).sum::<f64>().sqrt();
                let product = column.iter().zip(slice).map(|(w, x)| w * x).sum::<f64>();
                multiplier * product / length
            })
            .collect()
    }
}

impl Phases {
    pub(super) fn new(
        config: &SelectiveRopeConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Self {
        let (width, heads, pairs) = (dims.width, dims.heads, dims.head_dim / 2);
        let channels = heads * pairs;
        let map = match config.map {
            Map::LowRank { rank } => {
                let rank = Some(rank);
                PhaseMap::LowRank(Projection::new(width, channels, rank, false, rng, device))
            }
            Map::FullRank {} => {
                // PyTorch takes the last axis of a matrix as its inputs, and the authors' code
                // does the same.
                let bound = (6.0 / pairs as f64).sqrt();
                PhaseMap::FullRank(PerHead {
                    weight: init::uniform(bound, [heads, dims.head_dim, pairs], rng, device),
                    multiplier: init::constant(1.0, [heads], device),
                })
            }
        };
        let taps = config.kernel().map(|kernel| {
            init::uniform((kernel as f64).powf(-0.5), [channels, kernel], rng, device)
        });
        let bias = config.bias.then(|| init::zeros([heads, pairs], device));
        let mut gate =
            |outputs, rank| Some(Projection::new(width, outputs, rank, true, rng, device));
        let gate = match config.gate {
            Gate::None {} => None,
            Gate::PerHead {} => gate(heads, None),
            Gate::PerHeadLowRank { rank } => gate(heads, Some(rank)),
            Gate::PerChannel { rank } => gate(channels, Some(rank)),
        };
        let activation = match config.filter {
            Filter::Convolution { activation, .. } => activation,
            Filter::Difference {} => ConvActivation::None,
        };
        Self { map, taps, bias, gate, activation, heads }
    }

    /// Steps of each token, `[B, H, T, D/2]`, followed by the gate, `[B, H, T, 1 or D/2]`, if there
    /// is one.
    pub(super) fn per_token(&self, x: &Tensor<3>) -> Vec<Tensor<4>> {
        let [batch, tokens, width] = x.dims();
        let heads = self.heads;
        let slices = x.clone().reshape([batch, tokens, heads, width / heads]);
        let slices = unit_norm(slices, EPSILON);
        let unit = slices.clone().reshape([batch, tokens, width]);
        let steps = match &self.map {
            PhaseMap::LowRank(map) => by_head(map.forward(unit.clone()), heads),
            PhaseMap::FullRank(map) => {
                slices.swap_dims(1, 2).counted_matmul(map.normalised().unsqueeze::<4>())
            }
        };
        let mut tensors = vec![steps];
        tensors.extend(self.gate.as_ref().map(|gate| sigmoid(by_head(gate.forward(unit), heads))));
        tensors
    }

    /// Increment of the angles at each column, `[B, H, S, D/2]`, from the results of
    /// [`Self::per_token`] for all columns.
    pub(super) fn phases(&self, columns: &[Tensor<4>]) -> Tensor<4> {
        let mut phases = self.filtered(&columns[0]);
        if let Some(bias) = &self.bias {
            let [heads, pairs] = bias.val().dims();
            phases = phases + bias.val().exp().reshape([1, heads, 1, pairs]);
        }
        match columns.get(1) {
            Some(gate) => phases * gate.clone(),
            None => phases,
        }
    }

    fn filtered(&self, steps: &Tensor<4>) -> Tensor<4> {
        let [batch, heads, tokens, pairs] = steps.dims();
        let channels = heads * pairs;
        let taps = match &self.taps {
            Some(taps) => taps.val().transpose(),
            None => Tensor::<2>::from_data([[-1.0], [1.0]], &steps.device()).expand([2, channels]),
        };
        let by_token = steps.clone().swap_dims(1, 2).reshape([batch, tokens, channels]);
        let silu = matches!(self.activation, ConvActivation::Silu);
        by_head(causal_convolution(by_token, taps, silu), heads)
    }

    /// Increment of the angles in scalar f64, `[head][column][pair]`.
    pub(super) fn scalar(&self, x: &Tokens, heads: usize) -> Heads {
        let width = x[0].len() / heads;
        let units = x.iter().map(|x| scalar::unit_slices(x, width)).collect::<Vec<_>>();
        let sigma = |z: f64| 1.0 / (1.0 + (-z).exp());
        (0..heads)
            .map(|h| {
                let steps = units.iter().map(|unit| match &self.map {
                    PhaseMap::LowRank(map) => {
                        let all = map.scalar(unit);
                        all[h * all.len() / heads..(h + 1) * all.len() / heads].to_vec()
                    }
                    PhaseMap::FullRank(map) => map.scalar(h, &unit[h * width..(h + 1) * width]),
                });
                let mut phases = self.scalar_filtered(h, &steps.collect());
                for (phase, unit) in phases.iter_mut().zip(&units) {
                    if let Some(bias) = &self.bias {
                        phase.iter_mut().zip(&table_f64(bias)[h]).for_each(|(p, b)| *p += b.exp());
                    }
                    if let Some(gate) = &self.gate {
                        let gates = gate.scalar(unit);
                        let head_gates =
                            &gates[h * gates.len() / heads..(h + 1) * gates.len() / heads];
                        let per_pair = head_gates.iter().cycle();
                        phase.iter_mut().zip(per_pair).for_each(|(p, gate)| *p *= sigma(*gate));
                    }
                }
                phases
            })
            .collect()
    }

    /// Filtered steps of one head, `[column][pair]`.
    fn scalar_filtered(&self, head: usize, steps: &Tokens) -> Tokens {
        let pairs = steps[0].len();
        let taps = self.taps.as_ref().map(table_f64);
        let mut out = vec![vec![0.0; pairs]; steps.len()];
        for m in 0..pairs {
            let channel = steps.iter().map(|step| step[m]).collect::<Vec<_>>();
            let filtered = match &taps {
                Some(taps) => scalar::filter(&channel, &taps[head * pairs + m]),
                None => scalar::filter(&channel, &[-1.0, 1.0]),
            };
            for (row, value) in out.iter_mut().zip(filtered) {
                row[m] = match self.activation {
                    ConvActivation::None => value,
                    ConvActivation::Silu => value / (1.0 + (-value).exp()),
                };
            }
        }
        out
    }
}
