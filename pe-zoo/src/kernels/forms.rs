//! The tensors of one attention that belong to a form; one that is absent has no element.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, ExtensionType};

/// Which tasks share an operand: its gradient is summed over them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum By {
    /// All.
    All,
    /// Those of one head.
    Head,
    /// Those of one head of one sequence.
    Plane,
}

macro_rules! forms {
    ($($(#[$doc:meta])* $name:ident: $by:ident,)*) => {
        /// The operands.
        #[derive(Debug, Clone, ExtensionType)]
        pub(crate) struct Forms<B: Backend> {
            $($(#[$doc])* pub $name: FloatTensor<B>,)*
        }

        /// Number of operands.
        pub(crate) const FORMS: usize = [$(stringify!($name)),*].len();

        /// Which tasks share each.
        pub(crate) const SHARED_BY: [By; FORMS] = [$(By::$by),*];

        impl<B: Backend> Forms<B> {
            /// All of them from one value.
            pub(crate) fn all(value: &FloatTensor<B>) -> Self {
                Self { $($name: value.clone(),)* }
            }

            /// In the order of the fields.
            pub(crate) fn into_array(self) -> [FloatTensor<B>; FORMS] {
                [$(self.$name),*]
            }

            /// From the order of the fields.
            pub(crate) fn from_array([$($name),*]: [FloatTensor<B>; FORMS]) -> Self {
                Self { $($name),* }
            }
        }

        /// Gradients of the operands that one task contributes; empty where there is no operand.
        #[derive(Debug, Default)]
        pub(crate) struct FormSums {
            $(pub $name: Vec<f32>,)*
        }

        impl FormSums {
            /// In the order of the fields.
            pub(crate) fn as_array(&self) -> [&[f32]; FORMS] {
                [$(&self.$name),*]
            }
        }
    };
}

forms! {
    /// Slopes of the pieces of a curve, then their values at 0, `[H, 2 N]`.
    curve_lines: Head,
    /// Scaled distances at which the curve is read, `[N]`.
    curve_distances: All,
    /// What they are multiplied with in each row, `[T]`.
    curve_rows: All,
    /// What each key adds per unit of distance, `[B, H, S]`.
    price_keys: Plane,
    /// What each query adds per unit of distance, `[B, H, T]`.
    price_queries: Plane,
    /// Queries of the steps' prices, `[B, H, T, E]`.
    step_queries: Plane,
    /// Keys of the steps' prices, `[B, H, S, E]`.
    step_keys: Plane,
    /// What sums of prices are multiplied with, `[H]`.
    step_slopes: Head,
    /// Directions of Householder-like maps, `[B, H, S, D]`.
    directions: Plane,
    /// What each chunk of maps does to keys and to queries, `[B, H, S, K + D]`.
    chunk_maps: Plane,
    /// Hidden weights of a perceptron across heads, `[N, taps planes]`.
    mixer_inner: All,
    /// Its hidden biases, `[N]`.
    mixer_inner_bias: All,
    /// Its output weights, `[H, taps N]`.
    mixer_outer: All,
    /// Its output biases, `[H]`.
    mixer_outer_bias: All,
    /// A bias by distance that it sees, `[H, N]`, whose last entry goes on for ever.
    base_table: Head,
    /// As `curve_lines`, of a curve that it sees.
    base_lines: Head,
    /// As `curve_distances`, of a curve that it sees.
    base_distances: All,
    /// As `curve_rows`, of a curve that it sees.
    base_rows: All,
}
