//! Biases and products with additional operands, computed block by block.
//!
//! | Module | Contents |
//! | --- | --- |
//! | `curve` | a piecewise linear function of distance over position |
//! | `price` | the distance times a slope per key and query |
//! | `steps` | sums of slopes over the steps between key and query |
//! | `maps`, `householder` | products through Householder-like maps |
//! | `mixer` | a perceptron across heads |
//! | `distances` | tables over distances, with their gradients |
//! | `bias` | their contributions to the logits of one head |

pub(super) mod bias;
mod curve;
mod distances;
mod householder;
pub(super) mod maps;
pub(super) mod mixer;
mod price;
mod steps;

pub(crate) use householder::chunk_maps;
