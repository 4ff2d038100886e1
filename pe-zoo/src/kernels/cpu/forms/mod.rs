//! Biases and products with operands of their own, block by block.
//!
//! | Module | Contents |
//! | --- | --- |
//! | `curve` | a piecewise linear function of distance over position |
//! | `price` | the distance at a price per key and query |
//! | `steps` | prices of the steps between key and query |
//! | `maps`, `householder` | products through Householder-like maps |
//! | `mixer` | a perceptron across heads |
//! | `distances` | tables over distances, read and added up |
//! | `bias` | what they add to the logits of one head |

pub(super) mod bias;
mod curve;
mod distances;
mod householder;
pub(super) mod maps;
pub(super) mod mixer;
mod price;
mod steps;

pub(crate) use householder::chunk_maps;
