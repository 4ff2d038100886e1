//! The encodings of this crate, one file each.
//!
//! A file `zoo/<name>.rs` has settings, a module that implements
//! [`PositionEncoding`](crate::PositionEncoding), its scalar reference, and documentation that
//! `pe-bench explain` prints. The build script generates the registry from the lines below.

use std::sync::LazyLock;

use crate::registry::{Entry, Registry};

pub mod abacus;
pub mod alibi;
pub mod cope;
pub mod cope_alibi;
pub mod cope_mlp;
pub mod dape;
pub mod dynamic_position_bias;
pub mod fire;
pub mod fope;
pub mod fox;
pub mod grape;
pub mod kerple;
pub mod layers;
pub mod learned_absolute;
pub mod logit_cap;
pub mod nope;
pub mod path;
pub mod pope;
pub mod randomized;
pub mod relative;
pub mod relative_capped;
pub mod relative_profiles;
pub mod repo;
pub mod rope;
pub mod sandwich;
pub mod selective_rope;
pub mod sinks;
pub mod sinusoidal;
pub mod stick_breaking;
pub mod t5_bias;
pub mod tape;
pub mod temperature;
pub mod wall;
pub mod window;
pub mod xpos;

impl Registry {
    /// Registry of the encodings of this crate.
    pub fn builtin() -> Self {
        static BUILTIN: LazyLock<Registry> =
            LazyLock::new(|| Registry::of(include!(concat!(env!("OUT_DIR"), "/entries.rs"))));
        BUILTIN.clone()
    }
}

/// Source of an encoding to start from, which `pe-bench new encoding` writes under another name.
pub const NEW_ENCODING: &str = include_str!("zoo/tests/new_encoding.rs");

#[cfg(test)]
pub(crate) mod tests;
