//! The forms of a modifier as operands.

use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use burn::backend::{Dispatch, DispatchTensor};
use burn::tensor::{Tensor, TensorData};

use super::super::reference::LogitInputs;
use super::endless;
use crate::count::CountedMatmul;
use crate::kernels::cpu::forms::chunk_maps;
use crate::kernels::forms::Forms;
use crate::kernels::spec::{FormSpec, MixerSpec};
use crate::score::{HeadMlp, PositionMlp, TokenPrice};
use crate::{Positions, ScoreMod};

/// At most one form of each kind.
#[derive(Default)]
pub(super) struct FormParts {
    operands: Option<Forms<Dispatch>>,
    spec: FormSpec,
    kinds: Vec<Discriminant<ScoreMod>>,
}

impl FormParts {
    /// Takes a modifier in, unless the kernels have no form for it beside what is there already.
    pub(super) fn add(&mut self, modifier: &ScoreMod, row: &LogitInputs<'_>) -> bool {
        let kind = discriminant(modifier);
        if self.kinds.contains(&kind) {
            return false;
        }
        let empty = || Forms::all(&Tensor::<1>::zeros([0], &row.device).into_dispatch());
        let operands = self.operands.get_or_insert_with(empty);
        match modifier {
            ScoreMod::PositionMlp(mlp) => {
                let Curve { bends, lines, distances, rows } = Curve::of(mlp, row.at);
                self.spec.bends = bends;
                operands.curve_lines = lines;
                operands.curve_distances = distances;
                operands.curve_rows = rows;
            }
            ScoreMod::TokenPrice(TokenPrice { rate, keys, queries }) => {
                let [heads] = rate.dims();
                let rate = rate.clone().neg().reshape([1, heads, 1]);
                let per_token = |gates: &Tensor<4>| {
                    (gates.clone().squeeze_dim::<3>(3) * rate.clone()).into_dispatch()
                };
                if let Some(keys) = keys {
                    operands.price_keys = per_token(keys);
                }
                if let Some(queries) = queries {
                    operands.price_queries = per_token(queries);
                }
            }
            ScoreMod::StepPrices(prices) => {
                operands.step_queries = prices.queries.clone().into_dispatch();
                operands.step_keys = prices.keys.clone().into_dispatch();
                operands.step_slopes = prices.slopes.clone().into_dispatch();
            }
            ScoreMod::Reflected(reflections) => {
                let directions = reflections.directions.clone();
                let maps =
                    chunk_maps(row.k.clone(), directions.clone(), reflections.strengths.clone());
                operands.directions = directions.into_dispatch();
                operands.chunk_maps = maps.into_dispatch();
            }
            ScoreMod::HeadMlp(mlp) => match add_mixer(operands, mlp, row) {
                Some(mixer) => self.spec.mixer = Some(mixer),
                None => return false,
            },
            _ => return false,
        }
        self.kinds.push(kind);
        true
    }

    /// Whether maps stand in for the products of queries and keys.
    pub(super) fn replaces_products(&self) -> bool {
        let empty = |tensor: &DispatchTensor| {
            burn::backend::TensorMetadata::shape(tensor).num_elements() == 0
        };
        self.operands.as_ref().is_some_and(|operands| !empty(&operands.chunk_maps))
    }

    /// The operands, absent ones taken from `empty`, and everything else.
    pub(super) fn prepared(self, empty: &DispatchTensor) -> (Forms<Dispatch>, FormSpec) {
        (self.operands.unwrap_or_else(|| Forms::all(empty)), self.spec)
    }
}

fn add_mixer(
    operands: &mut Forms<Dispatch>,
    mlp: &HeadMlp,
    row: &LogitInputs<'_>,
) -> Option<MixerSpec> {
    let mut bends = Arc::from([]);
    match mlp.base.as_deref() {
        None => {}
        Some(ScoreMod::Slope(slopes)) => {
            let table = slopes.clone().neg().unsqueeze_dim::<2>(1)
                * every_distance(row.at, &row.device).unsqueeze::<2>();
            operands.base_table = table.into_dispatch();
        }
        Some(ScoreMod::Distance { table, beyond }) => {
            operands.base_table = endless(table, *beyond).into_dispatch();
        }
        Some(ScoreMod::PositionMlp(base)) => {
            let curve = Curve::of(base, row.at);
            bends = curve.bends;
            operands.base_lines = curve.lines;
            operands.base_distances = curve.distances;
            operands.base_rows = curve.rows;
        }
        Some(_) => return None,
    }
    operands.mixer_inner = mlp.w1.clone().into_dispatch();
    operands.mixer_inner_bias = mlp.c1.clone().into_dispatch();
    operands.mixer_outer = mlp.w2.clone().into_dispatch();
    operands.mixer_outer_bias = mlp.c2.clone().into_dispatch();
    Some(MixerSpec {
        taps: mlp.taps,
        scale: mlp.scale as f32,
        negative_slope: mlp.negative_slope as f32,
        bends,
    })
}

/// Every distance from 0 to the longest.
fn every_distance(at: &Positions, device: &burn::tensor::Device) -> Tensor<1> {
    at.memo("every-distance", device, || {
        let values = (0..=at.longest_distance()).map(|n| n as f32).collect::<Vec<_>>();
        Tensor::from_data(values.as_slice(), device)
    })
}

/// A perceptron of one number whose activation is piecewise linear, as the piecewise linear function
/// that it is.
struct Curve {
    bends: Arc<[f32]>,
    /// `[H, 2 N]`.
    lines: DispatchTensor,
    /// `[N]`.
    distances: DispatchTensor,
    /// `[T]`.
    rows: DispatchTensor,
}

impl Curve {
    fn of(mlp: &PositionMlp, at: &Positions) -> Self {
        let device = mlp.w1.device();
        let positions = at.memo("row-positions-flat", &device, || {
            let values = at.rows().iter().map(|n| *n as f32).collect::<Vec<_>>();
            Tensor::<1>::from_data(values.as_slice(), &device)
        });
        let (bends, slopes) = pieces(&host(&mlp.w1), &host(&mlp.b1), mlp.negative_slope as f32);
        let pieces = bends.len() + 1;
        let units = slopes.len() / pieces;
        let slopes = TensorData::new(slopes, [pieces, units]);
        let slopes = Tensor::<2>::from_data(slopes, &device).transpose();
        let row = |x: &Tensor<1>| x.clone().unsqueeze::<2>();
        let rises = (mlp.w2.clone() * row(&mlp.w1)).counted_matmul(slopes.clone());
        let starts = (mlp.w2.clone() * row(&mlp.b1)).counted_matmul(slopes)
            + mlp.b2.clone().unsqueeze_dim::<2>(1);
        Self {
            bends,
            lines: Tensor::cat(vec![rises, starts], 1).into_dispatch(),
            distances: mlp.psi(every_distance(at, &device)).into_dispatch(),
            rows: mlp.normalisers(positions).recip().into_dispatch(),
        }
    }
}

/// Where hidden units of `w1 u + b1` bend for `u` of 0 and more, ascending, and the activation's slope
/// in each piece for each unit.
fn pieces(w1: &[f32], b1: &[f32], negative_slope: f32) -> (Arc<[f32]>, Vec<f32>) {
    let slope = |above: bool| if above { 1.0 } else { negative_slope };
    // A unit of falling input that bends at 0 is the same wherever it is read.
    let mut bends = (0..w1.len())
        .map(|unit| (-b1[unit] / w1[unit], unit))
        .filter(|(u, unit)| u.is_finite() && (*u > 0.0 || (*u == 0.0 && w1[*unit] > 0.0)))
        .collect::<Vec<_>>();
    bends.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut first = b1.iter().map(|b| slope(*b > 0.0)).collect::<Vec<_>>();
    for (_, unit) in &bends {
        first[*unit] = slope(w1[*unit] < 0.0);
    }
    let mut slopes = first.clone();
    let mut piece = first;
    for (_, unit) in &bends {
        piece[*unit] = slope(w1[*unit] > 0.0);
        slopes.extend_from_slice(&piece);
    }
    (bends.into_iter().map(|(u, _)| u).collect(), slopes)
}

fn host(x: &Tensor<1>) -> Vec<f32> {
    x.clone().into_data().convert::<f32>().try_into_vec().unwrap_or_default()
}
