//! Check of outputs and gradients with parameters as large as training makes them.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::probe::close::numbers;
use crate::probe::passes::{DIMS, embedded};
use crate::probe::problem::Problem;
use crate::testkit::{Outcome, build, stack};
use crate::{Combination, Positions};

/// Largest change of a parameter by training. Adam moves a parameter by about its learning rate per step: 200 steps at a
/// rate of 0.03.
const REACH: f64 = 6.0;

/// Direction in which parameters are moved.
#[derive(Clone, Copy)]
enum Direction {
    Up,
    Down,
    /// Each number of a parameter in a direction and by an amount of its own.
    Random,
}

impl std::fmt::Display for Direction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Up => write!(f, "raised by {REACH}"),
            Self::Down => write!(f, "lowered by {REACH}"),
            Self::Random => write!(f, "moved by random amounts of up to {REACH}"),
        }
    }
}

/// Checks that outputs and gradients are finite after every parameter was moved from its initial value by as much as training
/// moves it: gates that forget everything or nothing, steep slopes, large tables.
pub(super) fn finite(config: &Combination, device: &Device) -> Outcome {
    let device = device.clone().autodiff();
    let encoding = build(config, 7, &device)?;
    if encoding.num_params() == 0 {
        return Ok(());
    }
    let at = Positions::contiguous(0, DIMS.max_len);
    let problem = Problem::random(1, DIMS.max_len, &DIMS, 42);
    for direction in [Direction::Up, Direction::Down, Direction::Random] {
        let mut mover = TrainedMover { direction, rng: ChaCha8Rng::seed_from_u64(41) };
        let moved = encoding.clone().map(&mut mover);
        let place = |what: &str| format!("{what} after every parameter was {direction}");
        let embeddings = embedded(&moved, &problem, &at, &device);
        let loss = stack::loss(&moved, &at, &device) + embeddings.powf_scalar(2.0).sum();
        if !numbers(loss.clone()).iter().all(|x| x.is_finite()) {
            return Err(place("an output or the state is not finite"));
        }
        let grads = loss.backward();
        let mut visitor = Finite { grads: &grads, parameter: 0, found: None };
        moved.visit(&mut visitor);
        if let Some(parameter) = visitor.found {
            return Err(place(&format!(
                "the gradient of parameter {parameter} (counted from 0) is not finite"
            )));
        }
    }
    Ok(())
}

struct TrainedMover {
    direction: Direction,
    rng: ChaCha8Rng,
}

impl ModuleMapper for TrainedMover {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| {
            let (shape, device) = (tensor.dims(), tensor.device());
            let moved = numbers(tensor).into_iter().map(|x| {
                let by = match self.direction {
                    Direction::Up => REACH,
                    Direction::Down => -REACH,
                    Direction::Random => self.rng.random_range(-REACH..REACH),
                };
                (x + by) as f32
            });
            let moved = moved.collect::<Vec<_>>();
            Tensor::from_data(TensorData::new(moved, shape), &device).require_grad()
        })
    }
}

struct Finite<'a> {
    grads: &'a Gradients,
    parameter: usize,
    found: Option<usize>,
}

impl ModuleVisitor for Finite<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let finite = |grad: Tensor<D>| numbers(grad).iter().all(|x| x.is_finite());
        if !param.val().grad(self.grads).is_none_or(finite) {
            self.found = self.found.or(Some(self.parameter));
        }
        self.parameter += 1;
    }
}
