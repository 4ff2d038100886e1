//! Decoding with a cache, and what the length of the sequence has to do with it.

use burn::tensor::Device;

use super::checks::Outcome;
use super::close::{self, F32_REORDERED, numbers};
use super::passes::{DIMS, chunk, embedded, full_pass};
use super::problem::Problem;
use crate::attention::LayerCache;
use crate::{EncodingConfig, PositionEncoding, Positions};

/// Each step gives what the full pass over the tokens so far gives its rows.
///
/// That is what decoding means for every encoding. Where later tokens change nothing of earlier
/// ones, which [`length_dependence`] checks, it makes all steps together equal to one full pass.
/// Some steps lie beyond the training length, where encodings may begin to change.
pub(super) fn decodes_as_full_pass<P: PositionEncoding>(encoding: &P, device: &Device) -> Outcome {
    let tokens = DIMS.train_len + 4;
    let problem = Problem::random(2, tokens, &DIMS, 1);
    for step in [1, 3] {
        let mut cache = LayerCache::default();
        for start in (0..tokens).step_by(step) {
            let end = (start + step).min(tokens);
            let range = start..end;
            let failed =
                |e: String| format!("{step} token(s) at a time, tokens {start}..{end}: {e}");
            let whole = Positions::contiguous(0, end);
            let at = Positions::contiguous(start, end - start);
            let expected = full_pass(encoding, &problem, &whole, 1, device);
            let expected = numbers(expected.slice_dim(2, range.clone()));
            let output = chunk(encoding, &problem, &at, range.clone(), 1, Some(&mut cache), device);
            close::compare(&numbers(output), &expected, F32_REORDERED).map_err(failed)?;
            let expected = embedded(encoding, &problem, &whole, device).slice_dim(1, range);
            let embedding = numbers(embedded(encoding, &problem, &at, device));
            close::compare(&embedding, &numbers(expected), F32_REORDERED)
                .map_err(|e| failed(format!("embedding: {e}")))?;
        }
    }
    Ok(())
}

/// A pass over more tokens gives the first ones what a pass over them alone gives, unless the
/// encoding says that it depends on the length; then some length must show it.
pub(super) fn length_dependence<C: EncodingConfig>(
    encoding: &C::Encoding,
    config: &C,
    device: &Device,
) -> Outcome {
    let longest = DIMS.max_len;
    let problem = Problem::random(1, longest, &DIMS, 10);
    let pass = |len: usize| {
        let at = Positions::contiguous(0, len);
        let output = full_pass(encoding, &problem, &at, 0, device);
        (output, embedded(encoding, &problem, &at, device))
    };
    let (output, embedding) = pass(longest);
    let mut changed = None;
    for len in [1, 7, DIMS.train_len, DIMS.train_len + 1, longest / 2, longest - 1] {
        let (short, short_embedding) = pass(len);
        let first = numbers(output.clone().slice_dim(2, 0..len));
        let first_embedding = numbers(embedding.clone().slice_dim(1, 0..len));
        let same = close::compare(&numbers(short), &first, F32_REORDERED).and_then(|()| {
            close::compare(&numbers(short_embedding), &first_embedding, F32_REORDERED)
        });
        changed = changed.or(same.err().map(|e| format!("{len} tokens of {longest}: {e}")));
    }
    match (config.meta().claims.depends_on_length, changed) {
        (false, Some(found)) => Err(format!("claims to ignore the length, but {found}")),
        (true, None) => Err("claims to depend on the length, but no length changed".to_owned()),
        _ => Ok(()),
    }
}
