//! Broken rotations of queries and keys: the first two channels of each head are rotated by the
//! position.

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;

use super::super::{BROKEN, Choice};
use crate::card::Card;
use crate::encoding::LayerContext;
use crate::reference::{Heads, ScalarInput, ScalarReference};
use crate::testkit::Check;
use crate::{Dims, PeError, PositionEncoding};

#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) enum Fault {
    #[default]
    None,
    /// Rotated queries and keys are computed but discarded.
    RotationDiscarded,
    /// Keys are rotated by the negative of their position.
    KeysTurnBackwards,
    /// Only keys are rotated, not queries.
    KeysAlone,
    /// Columns from the cache are rotated by the angles of the rows.
    CachedKeysUnturned,
    /// The same, once more than [`LONG_CACHE`] tokens are cached.
    LongCacheUnturned,
    /// Keys are said to be fixed, although their angles change with the length.
    FixedThoughTheyGrow,
    /// Keys are said to be fixed, although each head has an angle of its own.
    FixedThoughHeadsDiffer,
    /// Keys that several heads share are rotated further.
    SharedKeysTurnFurther,
}

pub(super) const FAULTS: &[(Fault, Check)] = &[
    (Fault::RotationDiscarded, Check::EqualsReference),
    (Fault::KeysTurnBackwards, Check::EqualsReference),
    (Fault::KeysAlone, Check::EqualsReference),
    (Fault::CachedKeysUnturned, Check::DecodesAsFullPass),
    (Fault::LongCacheUnturned, Check::DecodesAsFullPass),
    (Fault::FixedThoughTheyGrow, Check::DecodesAsFullPass),
    (Fault::FixedThoughHeadsDiffer, Check::DecodesAsFullPass),
    (Fault::SharedKeysTurnFurther, Check::ModelSettings),
];

/// Tokens after which [`Fault::LongCacheUnturned`] begins.
const LONG_CACHE: usize = 48;

/// Angle in radians per position.
const SPEED: f64 = 0.4;

#[derive(Module, Debug)]
pub(super) struct Rotated {
    #[module(skip)]
    fault: Fault,
}

/// Rotates the first two channels of each token of `u` by its angle.
fn turn(u: &Tensor<4>, angles: impl Iterator<Item = f64>) -> Tensor<4> {
    let (sin, cos): (Vec<f32>, Vec<f32>) =
        angles.map(|angle| (angle.sin() as f32, angle.cos() as f32)).unzip();
    let [_batch, _heads, tokens, head_dim] = u.dims();
    let table =
        |values| Tensor::<4>::from_data(TensorData::new(values, [1, 1, tokens, 1]), &u.device());
    let (sin, cos) = (table(sin), table(cos));
    let channel = |n: usize| u.clone().slice_dim(3, n..n + 1);
    let first = channel(0) * cos.clone() - channel(1) * sin.clone();
    let second = channel(0) * sin + channel(1) * cos;
    Tensor::cat(vec![first, second, u.clone().slice_dim(3, 2..head_dim)], 3)
}

impl PositionEncoding for Rotated {
    type Settings = Choice<Fault>;

    const CARD: Card = BROKEN;

    fn build(
        settings: &Choice<Fault>,
        _: &Dims,
        _: &mut ChaCha8Rng,
        _: &Device,
    ) -> Result<Self, PeError> {
        Ok(Rotated { fault: settings.fault })
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        let angle = |position: &usize| SPEED * *position as f64;
        let rows = ctx.at.rows().iter().map(angle);
        let cols = ctx.at.cols().iter().map(angle);
        let rotated = (turn(&q, rows.clone()), turn(&k, cols.clone()));
        match self.fault {
            Fault::None => rotated,
            Fault::LongCacheUnturned if ctx.at.first_row() <= LONG_CACHE => rotated,
            Fault::RotationDiscarded => (q, k),
            Fault::KeysTurnBackwards => (rotated.0, turn(&k, cols.map(|angle| -angle))),
            Fault::KeysAlone => (q, rotated.1),
            Fault::CachedKeysUnturned | Fault::LongCacheUnturned => {
                let cached = ctx.at.first_row();
                let cols = cols.enumerate();
                let fresh = cols.map(|(n, angle)| if n < cached { 0.0 } else { angle });
                (rotated.0, turn(&k, fresh))
            }
            Fault::FixedThoughTheyGrow => {
                let len = ctx.at.cols().last().map_or(1, |last| last + 1) as f64;
                let slower = |angle: f64| angle / len;
                (turn(&q, rows.map(slower)), turn(&k, cols.map(slower)))
            }
            Fault::FixedThoughHeadsDiffer => {
                let [_batch, heads, _tokens, _head_dim] = k.dims();
                let of_head = |head: usize| {
                    let faster = cols.clone().map(move |angle| angle * (head + 1) as f64);
                    turn(&k.clone().slice_dim(1, head..head + 1), faster)
                };
                (rotated.0, Tensor::cat((0..heads).map(of_head).collect(), 1))
            }
            Fault::SharedKeysTurnFurther => {
                let ([_, heads, ..], [_, key_heads, ..]) = (q.dims(), k.dims());
                (rotated.0, turn(&k, cols.map(|angle| angle * (heads / key_heads) as f64)))
            }
        }
    }

    fn fixed_keys(&self) -> bool {
        matches!(
            self.fault,
            Fault::FixedThoughTheyGrow
                | Fault::FixedThoughHeadsDiffer
                | Fault::SharedKeysTurnFurther
        )
    }
}

impl ScalarReference for Rotated {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        let rotated = |_head: usize, u: &[f64], column: usize| {
            let (sin, cos) = (SPEED * input.positions[column] as f64).sin_cos();
            let mut out = u.to_vec();
            out[0] = u[0] * cos - u[1] * sin;
            out[1] = u[0] * sin + u[1] * cos;
            out
        };
        input.changed(rotated, rotated)
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        self.scalar_transformed(input).plain()
    }
}
