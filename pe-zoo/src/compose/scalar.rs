//! Scalar f64 reference of a combination, built from the references of its parts.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;

use super::Combined;
use crate::reference::{
    Heads, NoEffect, ScalarInput, ScalarLayer, ScalarReference, Tokens, attention,
};

impl Combined {
    /// Scalar reference of one part.
    ///
    /// # Panics
    /// If the part has none: a combination has a reference only if all its parts have.
    fn part(&self, part: usize) -> &dyn ScalarReference {
        self.parts[part].hooks().reference().expect("every part has a reference")
    }

    fn references(&self) -> impl Iterator<Item = &dyn ScalarReference> {
        (0..self.parts.len()).map(|part| self.part(part))
    }

    /// Reference of the first part that transforms queries and keys, if there is one.
    fn transforming(&self) -> Option<&dyn ScalarReference> {
        self.places.transforms.first().map(|part| self.part(*part))
    }

    /// References of the other parts that do so.
    fn also_transforming(&self) -> impl Iterator<Item = &dyn ScalarReference> {
        self.places.transforms.iter().skip(1).map(|part| self.part(*part))
    }

    /// Returns the input of the parts that transform nothing.
    fn seen(&self, input: &ScalarInput) -> ScalarInput {
        let transforms = self.transforming().into_iter().chain(self.also_transforming());
        transforms.fold(input.clone(), |input, part| part.scalar_transformed(&input))
    }
}

/// Adds to logits the change that a part makes to the plain logits of its input.
fn add_change(part: &dyn ScalarReference, input: &ScalarInput, logits: &mut Heads) {
    let (own, plain) = (part.scalar_logits(input), NoEffect.scalar_logits(input));
    for (head, (own, plain)) in logits.iter_mut().zip(own.iter().zip(&plain)) {
        for (row, (own, plain)) in head.iter_mut().zip(own.iter().zip(plain)) {
            for (logit, (own, plain)) in row.iter_mut().zip(own.iter().zip(plain)) {
                *logit += own - plain;
            }
        }
    }
}

impl Combined {
    /// Adds to the logits of the first transforming part the changes of the other parts. `seen` is the input as it transforms
    /// it.
    fn with_others(&self, seen: &ScalarInput, mut logits: Heads) -> Heads {
        let mut seen = seen.clone();
        for part in self.also_transforming() {
            add_change(part, &seen, &mut logits);
            seen = part.scalar_transformed(&seen);
        }
        for (at, part) in self.references().enumerate() {
            if !self.places.transforms.contains(&at) {
                add_change(part, &seen, &mut logits);
            }
        }
        logits
    }
}

impl ScalarReference for Combined {
    fn scalar_embed(&self, x: &Tokens, ids: &[usize], positions: &[usize]) -> Tokens {
        self.references().fold(x.clone(), |x, part| part.scalar_embed(&x, ids, positions))
    }

    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        self.seen(input)
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        if self.parts.len() == 1 {
            return self.part(0).scalar_logits(input);
        }
        match self.transforming() {
            Some(part) => {
                self.with_others(&part.scalar_transformed(input), part.scalar_logits(input))
            }
            None => self.with_others(input, NoEffect.scalar_logits(input)),
        }
    }

    fn scalar_sinks(&self, layer: usize) -> Option<Vec<f64>> {
        self.references().find_map(|part| part.scalar_sinks(layer))
    }

    fn scalar_weights_of(&self, layer: usize, logits: &Heads) -> Heads {
        let own = if self.parts.len() == 1 { Some(0) } else { self.places.replaces_softmax };
        match own {
            Some(part) => self.part(part).scalar_weights_of(layer, logits),
            None => attention::softmax_beside(logits, self.scalar_sinks(layer).as_deref()),
        }
    }

    fn scalar_stack(&self, layers: &[ScalarLayer]) -> Vec<Heads> {
        match (self.parts.len(), self.transforming()) {
            (1, _) => self.part(0).scalar_stack(layers),
            (_, Some(part)) => {
                let weigh = |seen: &ScalarInput, own| {
                    self.scalar_weights_of(seen.layer, &self.with_others(seen, own))
                };
                part.scalar_stack_beside(layers, &weigh)
            }
            (_, None) => layers.iter().map(|layer| self.scalar_weights(&layer.input)).collect(),
        }
    }

    fn differentiable_at(&self, parameter: usize, value: f64) -> bool {
        owner_of_parameter(&self.parts, parameter)
            .is_none_or(|owner| self.part(owner.module).differentiable_at(owner.parameter, value))
    }
}

/// Place of a parameter in one of several modules.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParameterOwner {
    /// Index of the module.
    pub(crate) module: usize,
    /// Index of the parameter among those of the module, in the order in which a visitor meets them.
    pub(crate) parameter: usize,
}

/// Finds the module that has a parameter, counted over all modules in order.
pub(crate) fn owner_of_parameter(
    modules: &[impl Module],
    parameter: usize,
) -> Option<ParameterOwner> {
    let mut first = 0;
    for (at, module) in modules.iter().enumerate() {
        let mut counter = Tensors(0);
        module.visit(&mut counter);
        if parameter < first + counter.0 {
            return Some(ParameterOwner { module: at, parameter: parameter - first });
        }
        first += counter.0;
    }
    None
}

/// Visitor that counts tensors of parameters.
struct Tensors(usize);

impl ModuleVisitor for Tensors {
    fn visit_float<const D: usize>(&mut self, _param: &Param<Tensor<D>>) {
        self.0 += 1;
    }
}
