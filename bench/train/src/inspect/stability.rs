//! Change of attention when all positions shift, as in Table 8 of TAPE (Zhu et al. 2025, arXiv 2501.00712).
//!
//! Attention that depends on distances alone is the same wherever a text begins. The authors' measure is not published in
//! detail; the measures here are
//!
//! - *attention*: the total variation distance between the weights of a row without and with the shift,
//!   `1/2 (sum_j |a'_ij - a_ij| + mass of a' on the added tokens)`, 0 to 1, mean over samples, heads and rows;
//! - *products*: the relative change of the products of positions alone ([`TraceKind::PositionProducts`]),
//!   `sum |p'_ij - p_ij| / sum |p_ij|` over the original columns that rows see.

use anyhow::Result;
use burn::tensor::{Device, Int, Tensor};
use pe_zoo::Positions;
use pe_zoo::attention::TraceKind;
use pe_zoo::erased::check_limit;
use serde::Serialize;

use crate::run::scored::token_ids;
use crate::run::{AttentionMap, Look, Observed, observe_at};
use pe_zoo::model::Decoder;

/// Shift of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    /// Copies of a token are prepended.
    Prepend {
        /// Id of the prepended token.
        token: u32,
        /// Number of copies.
        count: usize,
    },
    /// Positions start at this number instead of 0.
    Offset(usize),
}

/// Change of one layer under a shift.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LayerStability {
    /// Index of the layer, from 0.
    pub layer: usize,
    /// Total variation distance of the attention weights, 0 to 1.
    pub attention: f64,
    /// Relative change of the products of positions; `None` if the encoding does not transform queries and keys.
    pub products: Option<f64>,
}

/// Measures the change of each layer of a model under a shift of the sequences.
///
/// # Errors
/// If the encoding has no positions for the shifted sequences.
pub fn stability(
    model: &Decoder,
    id: &str,
    sequences: &[Vec<u32>],
    shift: Shift,
    device: &Device,
) -> Result<Vec<LayerStability>> {
    let mut layers: Vec<ShiftSums> = Vec::new();
    for tokens in sequences {
        let before = observe_at(model, inputs(tokens, device), &at(model, id, tokens.len(), 0)?)?;
        let (tokens, offset) = match shift {
            Shift::Prepend { token, count } => ([vec![token; count], tokens.clone()].concat(), 0),
            Shift::Offset(offset) => (tokens.clone(), offset),
        };
        let at = at(model, id, tokens.len(), offset)?;
        let after = observe_at(model, inputs(&tokens, device), &at)?;
        layers.resize(before.layers.len(), ShiftSums::default());
        for (layer, sum) in layers.iter_mut().enumerate() {
            sum.add(layer, &before, &after);
        }
    }
    Ok(layers.iter().enumerate().map(|(layer, sum)| sum.mean(layer)).collect())
}

/// Returns the encoding's positions, shifted by an offset.
fn at(model: &Decoder, id: &str, tokens: usize, offset: usize) -> Result<Positions> {
    let at = model.positions(id, 0, tokens)?.shifted(offset);
    check_limit(&model.encoding, id, &at)?;
    Ok(at)
}

fn inputs(tokens: &[u32], device: &Device) -> Tensor<2, Int> {
    token_ids(tokens, device).unsqueeze()
}

#[derive(Debug, Clone, Copy, Default)]
struct ShiftSums {
    attention: f64,
    rows: u64,
    /// Sums of the changes and of the absolute values of the products.
    products: Option<[f64; 2]>,
}

impl ShiftSums {
    fn add(&mut self, layer: usize, before: &Observed, after: &Observed) {
        let both = |look| Some((of(before, layer, look)?, of(after, layer, look)?));
        if let Some((before, after)) = both(Look::Attention) {
            for (before, after) in rows(before, after) {
                self.attention += total_variation(before, after);
                self.rows += 1;
            }
        }
        if let Some((before, after)) = both(Look::Trace(TraceKind::PositionProducts)) {
            for (before, after) in rows(before, after) {
                let [change, size] = self.products.get_or_insert_default();
                *change += distance(before, &after[after.len() - before.len()..]);
                *size += before.iter().map(|value| f64::from(value.abs())).sum::<f64>();
            }
        }
    }

    fn mean(&self, layer: usize) -> LayerStability {
        LayerStability {
            layer,
            attention: self.attention / self.rows.max(1) as f64,
            products: self.products.map(|[change, size]| change / size.max(f64::MIN_POSITIVE)),
        }
    }
}

fn of(seen: &Observed, layer: usize, look: Look) -> Option<&AttentionMap> {
    seen.layers[layer].iter().find(|map| map.look == look)
}

/// Iterates over the rows of the original tokens, without and with the shift. Shifted rows may have additional
/// columns in front.
fn rows<'a>(
    before: &'a AttentionMap,
    after: &'a AttentionMap,
) -> impl Iterator<Item = (&'a [f32], &'a [f32])> + 'a {
    before.heads.iter().zip(&after.heads).flat_map(|(before, after)| {
        let added = after.len() - before.len();
        before.iter().zip(&after[added..]).map(|(before, after)| (&before[..], &after[..]))
    })
}

fn distance(before: &[f32], after: &[f32]) -> f64 {
    before.iter().zip(after).map(|(b, a)| (f64::from(*a) - f64::from(*b)).abs()).sum()
}

fn total_variation(before: &[f32], after: &[f32]) -> f64 {
    let (added, kept) = after.split_at(after.len() - before.len());
    let added = added.iter().map(|weight| f64::from(*weight)).sum::<f64>();
    0.5 * (added + distance(before, kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Stream, stream};
    use pe_zoo::Combination;
    use pe_zoo::model::ModelConfig;

    #[test]
    fn weights_that_move_to_added_tokens_count_like_those_that_move_elsewhere() {
        assert!(total_variation(&[0.25, 0.75], &[0.25, 0.75]).abs() < 1e-12);
        assert!((total_variation(&[0.25, 0.75], &[0.75, 0.25]) - 0.5).abs() < 1e-7);
        assert!((total_variation(&[0.5, 0.5], &[1.0, 0.0, 0.0]) - 1.0).abs() < 1e-7);
        assert!((total_variation(&[0.5, 0.5], &[0.5, 0.25, 0.25]) - 0.5).abs() < 1e-7);
    }

    fn measured(encoding: &str, shift: Shift) -> Vec<LayerStability> {
        let device = crate::backend::device("flex").unwrap();
        let encoding = Combination::parse(encoding).unwrap();
        let config = ModelConfig::default();
        let model = Decoder::new(
            &config,
            7,
            &encoding,
            &config.dims(16, 32),
            &mut stream(1, Stream::Model),
            &mut stream(1, Stream::Encoding),
            &device,
        )
        .unwrap();
        let tokens = (0..16).map(|n| n * n % 7).collect::<Vec<u32>>();
        stability(&model, "test", &[tokens.clone(), tokens[3..].to_vec()], shift, &device).unwrap()
    }

    #[test]
    fn what_tells_distances_alone_does_not_notice_an_offset() {
        for encoding in ["nope", "rope", "alibi", "cope", "t5-bias"] {
            for layer in measured(encoding, Shift::Offset(3)) {
                assert!(layer.attention < 1e-5, "{encoding}: {layer:?}");
                assert!(layer.products.is_none_or(|change| change < 1e-5), "{encoding}: {layer:?}");
                assert_eq!(layer.products.is_some(), encoding == "rope");
            }
        }
        let absolute = measured("sinusoidal", Shift::Offset(3));
        assert!(absolute.iter().all(|layer| layer.attention > 1e-3), "{absolute:?}");
    }

    #[test]
    fn added_tokens_take_weight_and_move_no_product_of_a_rotation() {
        let added = measured("rope", Shift::Prepend { token: 0, count: 3 });
        for layer in &added {
            assert!(layer.attention > 1e-2 && layer.attention < 1.0, "{layer:?}");
            assert!(layer.products.unwrap() < 1e-5, "{layer:?}");
        }
        // TAPE's positions are contextual: prepended tokens change them from the second layer on.
        let tape = measured("tape", Shift::Prepend { token: 0, count: 3 });
        assert!(tape.iter().all(|layer| layer.products.is_some()), "{tape:?}");
    }

    #[test]
    fn products_of_the_original_columns_are_compared() {
        let seen = |rows: &[&[f32]]| {
            let heads = vec![rows.iter().map(|row| row.to_vec()).collect()];
            let look = Look::Trace(TraceKind::PositionProducts);
            Observed { layers: vec![vec![AttentionMap { look, heads }]] }
        };
        let mut sums = ShiftSums::default();
        let after = seen(&[&[9.0], &[9.0, 2.0], &[9.0, 0.5, -0.5]]);
        sums.add(0, &seen(&[&[2.0], &[1.0, -1.0]]), &after);
        assert_eq!(sums.mean(0).products, Some(0.25));
    }

    #[test]
    fn an_encoding_that_ends_is_refused_past_its_end() {
        let device = crate::backend::device("flex").unwrap();
        let encoding = Combination::parse("learned-absolute").unwrap();
        let config = ModelConfig::default();
        let model = Decoder::new(
            &config,
            7,
            &encoding,
            &config.dims(16, 16),
            &mut stream(1, Stream::Model),
            &mut stream(1, Stream::Encoding),
            &device,
        )
        .unwrap();
        let tokens = vec![vec![1; 16]];
        let said = stability(&model, "learned-absolute", &tokens, Shift::Offset(1), &device);
        assert!(said.unwrap_err().to_string().contains("learned-absolute"));
    }
}
