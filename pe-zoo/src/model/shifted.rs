//! Attention within shifted groups, for training on long sequences.
//!
//! The sequence is split into groups. Half of the heads attend within these, the other half within groups shifted by
//! half a group, so that the next layer connects tokens that one layer separates (Chen et al. 2023, "LongLoRA", arXiv
//! 2309.12307). Queries and keys are first rotated by their positions in the whole sequence. The authors roll the
//! sequence, so that its first tokens may see its last ones; here the half groups at both ends are groups of their
//! own.

use crate::attention::{LayerInput, LayerOutput, Weights, repeated};
use crate::compose::Combined;
use crate::encoding::{LayerContext, StateContext};
use crate::{Hooks, Positions, ScoreMod};
use burn::tensor::Tensor;

/// Computes one layer's attention within `groups` shifted groups, without a cache; only for encodings that act on
/// queries and keys alone.
///
/// # Panics
///
/// If twice the groups do not divide the tokens.
pub(super) fn layer(encoding: &Combined, input: LayerInput<'_>, groups: usize) -> LayerOutput {
    let LayerInput { layer, at, x, q, k, v, carried, engine, attention_kind: _, precision } = input;
    let rows = encoding.state(&StateContext { layer, at, x, carried });
    let ctx = LayerContext { layer, at, rows: &rows, cols: &rows };
    let [_batch, heads, tokens, head_dim] = q.dims();
    assert!(tokens.is_multiple_of(2 * groups), "{tokens} tokens in {groups} shifted groups");
    let (q, k) = encoding.transform_qk(q, repeated(k, heads), &ctx);
    let v = repeated(v, heads);
    let scale = 1.0 / (head_dim as f64).sqrt();
    let size = tokens / groups;
    // Tokens `from..to` of the heads `first..last`, in groups of `size` tokens.
    let within = |[first, last]: [usize; 2], [from, to]: [usize; 2], size: usize| {
        let [q, k, v] = [&q, &k, &v].map(|u| {
            let part = u.clone().slice_dim(1, first..last).slice_dim(2, from..to);
            apart(part, size)
        });
        let at = Positions::contiguous(0, size);
        let (values, modifier) = (v.clone(), ScoreMod::None);
        let weights = Weights::Drop;
        let mixed =
            engine.attend_of(precision, &q, &k, &v, values, &modifier, &at, scale, weights).output;
        together(mixed, (to - from) / size)
    };
    let (unshifted, half) = ([0, heads.div_ceil(2)], size / 2);
    let shifted = [heads.div_ceil(2), heads];
    let mut output = within(unshifted, [0, tokens], size);
    if heads > 1 {
        let mut parts = vec![within(shifted, [0, half], half)];
        if groups > 1 {
            parts.push(within(shifted, [half, tokens - half], size));
        }
        parts.push(within(shifted, [tokens - half, tokens], half));
        output = Tensor::cat(vec![output, Tensor::cat(parts, 2)], 1);
    }
    LayerOutput { output, carried: rows, weights: None, traces: Vec::new() }
}

/// Splits the sequence into groups, `[B, H, n size, D] -> [B n, H, size, D]`.
fn apart(u: Tensor<4>, size: usize) -> Tensor<4> {
    let [batch, heads, tokens, head_dim] = u.dims();
    let groups = tokens / size;
    u.reshape([batch, heads, groups, size, head_dim]).swap_dims(1, 2).reshape([
        batch * groups,
        heads,
        size,
        head_dim,
    ])
}

/// Joins the groups again, `[B n, H, size, D] -> [B, H, n size, D]`.
fn together(u: Tensor<4>, groups: usize) -> Tensor<4> {
    let [all, heads, size, head_dim] = u.dims();
    let batch = all / groups;
    u.reshape([batch, groups, heads, size, head_dim]).swap_dims(1, 2).reshape([
        batch,
        heads,
        groups * size,
        head_dim,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::{self, Engine};
    use crate::testkit::close::{self, F32_REORDERED, numbers};
    use crate::{Combination, Dims, TokenState, init};
    use burn::tensor::{Device, TensorData};
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    const HEADS: usize = 3;
    const TOKENS: usize = 16;

    /// Mask of the definition: 0 where a head's token may see another, and nearly minus infinity elsewhere.
    fn mask(groups: usize) -> Vec<f32> {
        let size = TOKENS / groups;
        let group = |head: usize, token: usize| {
            if head < HEADS.div_ceil(2) { token / size } else { (token + size / 2) / size }
        };
        let mut mask = Vec::new();
        for head in 0..HEADS {
            for row in 0..TOKENS {
                let seen = (0..TOKENS).map(|column| group(head, row) == group(head, column));
                mask.extend(seen.map(|seen| if seen { 0.0 } else { -1e30 }));
            }
        }
        mask
    }

    #[test]
    fn groups_are_full_attention_under_their_mask() {
        let device = Device::flex();
        let dims = Dims {
            layers: 1,
            width: HEADS * 4,
            heads: HEADS,
            head_dim: 4,
            train_len: TOKENS,
            max_len: TOKENS,
        };
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let encoding = Combination::parse("rope").unwrap().init(&dims, &mut rng, &device).unwrap();
        let mut draw = |heads: usize| {
            init::normal(1.0, [2 * heads * TOKENS, 4], &mut rng, &device)
                .val()
                .reshape([2, heads, TOKENS, 4])
        };
        // One head of keys and values serves all three.
        let [q, k, v] = [draw(HEADS), draw(1), draw(1)];
        let x = Tensor::<3>::zeros([2, TOKENS, 12], &device);
        let (at, carried) = (Positions::contiguous(0, TOKENS), TokenState::default());
        let input = || LayerInput {
            engine: Engine::Fused,
            ..LayerInput::new(0, &at, &x, [q.clone(), k.clone(), v.clone()], &carried)
        };
        let ctx = LayerContext { layer: 0, at: &at, rows: &carried, cols: &carried };
        let (turned_q, turned_k) =
            encoding.transform_qk(q.clone(), repeated(k.clone(), HEADS), &ctx);
        let values = repeated(v.clone(), HEADS);
        for groups in [1, 2, 4, 8] {
            let data = TensorData::new(mask(groups), [1, HEADS, TOKENS, TOKENS]);
            let modifier = ScoreMod::Dense(Tensor::from_data(data, &device));
            let [all, drop] = [values.clone(), values.clone()];
            let expected = attention::attend(
                &turned_q,
                &turned_k,
                &all,
                drop,
                &modifier,
                &at,
                0.5,
                Weights::Drop,
            );
            let found = layer(&encoding, input(), groups).output;
            close::compare(&numbers(found), &numbers(expected.output), F32_REORDERED)
                .unwrap_or_else(|e| panic!("{groups} groups: {e}"));
        }
    }
}
