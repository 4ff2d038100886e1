//! Parts that several encodings are built from.

pub(crate) mod forget;
pub(crate) mod head_projection;
pub(crate) mod householder;
