//! Comparison of transformed queries and keys with the scalar reference.

use burn::tensor::{Device, Tensor};

use crate::encoding::{LayerContext, StateContext};
use crate::probe::close::{self, F32, numbers};
use crate::probe::passes::{DIMS, TOKENS};
use crate::probe::problem::{Problem, tensor3, tensor4};
use crate::reference::{Heads, ScalarReference};
use crate::testkit::Outcome;
use crate::{Combination, Combined, Hooks, Positions, TokenState};

/// Compares transformed queries and keys with the reference; `None` if there is none. Encodings
/// that stretch queries are exempt: their factors depend on all tokens and cancel only against
/// keys.
pub(super) fn check(encoding: &Combined, config: &Combination, device: &Device) -> Option<Outcome> {
    let reference = encoding.reference()?;
    let stretches = match config.properties() {
        Ok(properties) => properties.stretches_queries,
        Err(error) => return Some(Err(error.to_string())),
    };
    let mut layers = 0..encoding.layers;
    Some(layers.try_for_each(|layer| {
        check_layer(encoding, reference, layer, stretches, device)
            .map_err(|e| format!("layer {layer} (counted from 0): {e}"))
    }))
}

fn check_layer(
    encoding: &Combined,
    reference: &dyn ScalarReference,
    layer: usize,
    stretches: bool,
    device: &Device,
) -> Outcome {
    let at = Positions::contiguous(0, TOKENS);
    let problem = Problem::random(1, TOKENS, &DIMS, 16);
    let x = tensor3(&problem.x, device);
    let carried = TokenState::default();
    let rows = encoding.state(&StateContext { layer, at: &at, x: &x, carried: &carried });
    let ctx = LayerContext { layer, at: &at, rows: &rows, cols: &rows };
    let (q, k) = (tensor4(&problem.q, device), tensor4(&problem.k, device));
    let (q, k) = encoding.transform_qk(q, k, &ctx);
    let [_batch, _heads, _tokens, width] = q.dims();
    if width != DIMS.head_dim && width != 2 * DIMS.head_dim {
        return Err(format!(
            "transformed queries have {width} channels per head, expected {} or {}",
            DIMS.head_dim,
            2 * DIMS.head_dim
        ));
    }
    if stretches {
        return Ok(());
    }
    let transformed = reference.scalar_transformed(&problem.scalar(0, layer, &at));
    let same = |name: &str, tensor: &Tensor<4>, heads: &Heads| {
        let expected = heads.iter().flatten().flatten().copied().collect::<Vec<_>>();
        close::compare(&numbers(tensor.clone()), &expected, F32)
            .map_err(|e| format!("transformed {name} differ from `scalar_transformed`: {e}"))
    };
    same("queries", &q, &transformed.q)?;
    same("keys", &k, &transformed.k)
}
