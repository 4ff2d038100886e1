//! Biases and products with additional operands, computed block by block.
//!
//! | Module | Contents |
//! | --- | --- |
//! | `position_mlp` | a piecewise linear function of distance over position |
//! | `token_price` | the distance times a slope per key and query |
//! | `step_prices` | sums of slopes over the steps between key and query |
//! | `reflected`, `reflected_chunks` | products through Householder-like maps |
//! | `far` | products of other queries and keys at long distances |
//! | `channel_decay` | products whose channels decay |
//! | `head_mlp` | a perceptron across heads |
//! | `distances` | tables over distances, with their gradients |
//! | `bias` | their contributions to the logits of one head |

pub(super) mod bias;
pub(super) mod channel_decay;
mod distances;
pub(super) mod far;
pub(super) mod head_mlp;
mod position_mlp;
pub(super) mod reflected;
mod reflected_chunks;
mod step_prices;
mod token_price;

pub(crate) use reflected_chunks::reflected_chunks;
