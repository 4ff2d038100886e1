//! Perceptron of distance and position, evaluated for every pair of tokens.

use burn::tensor::activation::{leaky_relu, relu};
use burn::tensor::{Device, Tensor, TensorData};

use crate::Positions;
use crate::count::CountedMatmul;
use crate::score::PositionMlp;

impl PositionMlp {
    /// Computes the bias of every pair of tokens, `[1, H, T, S]`.
    pub(super) fn dense(&self, at: &Positions, device: &Device) -> Tensor<4> {
        let (rows, columns) = (at.rows().len(), at.cols().len());
        let positions = at.memo("row-positions", device, || {
            let values = at.rows().iter().map(|n| *n as f32).collect::<Vec<_>>();
            Tensor::<2>::from_data(TensorData::new(values, [rows, 1]), device)
        });
        let u = self.psi(at.float_distances(device)) / self.normalisers(positions);

        let column = |x: &Tensor<1>| x.clone().unsqueeze_dim::<2>(1);
        let u = u.reshape([1, rows * columns]);
        let hidden = column(&self.w1).counted_matmul(u) + column(&self.b1);
        let hidden = if self.negative_slope == 0.0 {
            relu(hidden)
        } else {
            leaky_relu(hidden, self.negative_slope)
        };
        let bias = self.w2.clone().counted_matmul(hidden) + column(&self.b2);
        let [heads, _pairs] = bias.dims();
        bias.reshape([1, heads, rows, columns])
    }
}
