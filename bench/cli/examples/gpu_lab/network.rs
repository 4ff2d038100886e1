//! A feed-forward network with its gradients.

use burn::tensor::{Device, Distribution, Tensor};
use pe_zoo::ops::{LinearMap, MatmulPrecision, feed_forward_of};

use crate::plan::NetworkWork;

/// Inputs of a network.
pub(crate) struct NetworkProblem {
    x: Tensor<2>,
    weights: [Tensor<2>; 2],
    biases: [Tensor<1>; 2],
    upstream: Tensor<2>,
}

/// Output, and the gradients of the input, the weights and the biases.
pub(crate) type NetworkResult = [Tensor<1>; 6];

impl NetworkProblem {
    /// Draws the inputs of a measurement on an autodiff device.
    pub(crate) fn new(work: &NetworkWork, device: &Device) -> Self {
        let NetworkWork { rows, width, hidden, .. } = *work;
        device.seed(7);
        let normal = Distribution::Normal(0.0, 1.0);
        let matrix = |rows: usize, columns: usize, scale: f64| {
            (Tensor::<2>::random([rows, columns], normal, device) * scale).detach().require_grad()
        };
        let weight =
            |inputs: usize, outputs: usize| matrix(inputs, outputs, (inputs as f64).powf(-0.5));
        let bias = |width: usize| Tensor::random([width], normal, device).require_grad();
        Self {
            x: matrix(rows, width, 1.0),
            weights: [weight(width, work.between()), weight(hidden, width)],
            biases: [bias(work.between()), bias(width)],
            upstream: Tensor::random([rows, width], normal, device),
        }
    }

    fn output(&self, work: &NetworkWork, precision: MatmulPrecision) -> Tensor<2> {
        let maps = [0, 1].map(|at| LinearMap {
            weight: self.weights[at].clone(),
            bias: Some(self.biases[at].clone()),
        });
        let [up, down] = maps;
        feed_forward_of(precision, self.x.clone(), up, down, work.activation)
    }

    /// Runs the forward pass.
    pub(crate) fn forward(&self, work: &NetworkWork) {
        drop(self.output(work, work.precision));
    }

    /// Runs the forward and the backward pass.
    ///
    /// # Errors
    /// Message, if an input has no gradient.
    pub(crate) fn run(
        &self,
        work: &NetworkWork,
        precision: MatmulPrecision,
    ) -> Result<NetworkResult, String> {
        let output = self.output(work, precision);
        let grads = (output.clone() * self.upstream.clone()).sum().backward();
        let flat = |grad: Option<Tensor<2>>| grad.map(|grad| grad.flatten::<1>(0, 1));
        let [up, down] = self.weights.each_ref().map(|weight| flat(weight.grad(&grads)));
        let [of_up, of_down] = self.biases.each_ref().map(|bias| bias.grad(&grads));
        match (flat(self.x.grad(&grads)), up, down, of_up, of_down) {
            (Some(x), Some(up), Some(down), Some(of_up), Some(of_down)) => {
                Ok([output.inner().flatten::<1>(0, 1), x, up, down, of_up, of_down])
            }
            _ => Err("an input has no gradient".to_owned()),
        }
    }
}
