//! Random parameters for tests: tables that start at zero would pass most checks trivially.

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
    module.map(&mut Randomiser { std, rng: ChaCha8Rng::seed_from_u64(seed), own_seed: None })
}

/// Replaces every float parameter of the module by normal draws with standard deviation 0.5. Each parameter has a seed of its
/// own, so that the size of one does not change the others.
pub(super) fn randomise_each<M: Module>(module: M) -> M {
    module.map(&mut Randomiser { std: 0.5, rng: ChaCha8Rng::seed_from_u64(0), own_seed: Some(0) })
}

struct Randomiser {
    std: f64,
    rng: ChaCha8Rng,
    /// Seed of the next parameter; `None` if all are drawn from `rng`, one after the other.
    own_seed: Option<u64>,
}

impl ModuleMapper for Randomiser {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if let Some(seed) = &mut self.own_seed {
            self.rng = ChaCha8Rng::seed_from_u64(*seed);
            *seed += 1;
        }
        param.map(|tensor| {
            let values = (0..tensor.shape().num_elements())
                .map(|_| (self.std * standard_normal(&mut self.rng)) as f32)
                .collect::<Vec<_>>();
            let device = tensor.device();
            let random = Tensor::from_data(TensorData::new(values, tensor.dims()), &device);
            if device.is_autodiff() { random.require_grad() } else { random }
        })
    }
}
