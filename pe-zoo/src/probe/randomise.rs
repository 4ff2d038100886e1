//! Random parameters for tests: tables that start at zero would pass most checks trivially. Each parameter has a stream of
//! its own, so that the size of one does not change the others.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::init::standard_normal;

/// Replaces every float parameter of the module by normal draws with standard deviation 0.5.
#[must_use]
pub fn randomise<M: Module>(module: M, seed: u64) -> M {
    randomise_by(0.5, module, seed)
}

/// Replaces every float parameter of the module by normal draws with standard deviation `std`.
#[must_use]
pub fn randomise_by<M: Module>(std: f64, module: M, seed: u64) -> M {
    module.map(&mut Randomiser { std, seed, parameters: 0 })
}

struct Randomiser {
    std: f64,
    seed: u64,
    /// Number of parameters that have their values.
    parameters: u64,
}

impl ModuleMapper for Randomiser {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.parameters);
        self.parameters += 1;
        param.map(|tensor| {
            let values = (0..tensor.shape().num_elements())
                .map(|_| (self.std * standard_normal(&mut rng)) as f32)
                .collect::<Vec<_>>();
            let device = tensor.device();
            let random = Tensor::from_data(TensorData::new(values, tensor.dims()), &device);
            if device.is_autodiff() { random.require_grad() } else { random }
        })
    }
}
