//! A combination in scalar f64, from the references of its parts.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;

use super::Combined;
use crate::reference::{Heads, ScalarInput, ScalarLayer, ScalarReference, Tokens, attention};
use crate::zoo::Pe;

/// The reference of an encoding that does nothing.
struct Plain;

impl ScalarReference for Plain {}

impl Combined {
    fn transforming(&self) -> Option<&Pe> {
        self.places.transforms.map(|part| &self.parts[part])
    }

    /// What the parts beside the one that transforms queries and keys look at.
    fn seen(&self, input: &ScalarInput) -> ScalarInput {
        self.transforming().map_or_else(|| input.clone(), |part| part.scalar_transformed(input))
    }
}

impl Combined {
    /// Logits of the part that transforms queries and keys, plus what each other part adds to the
    /// plain logits of what it sees.
    fn with_others(&self, seen: &ScalarInput, mut logits: Heads) -> Heads {
        let plain = Plain.scalar_logits(seen);
        for (at, part) in self.parts.iter().enumerate() {
            if self.places.transforms == Some(at) {
                continue;
            }
            let own = part.scalar_logits(seen);
            for (head, (own, plain)) in logits.iter_mut().zip(own.iter().zip(&plain)) {
                for (row, (own, plain)) in head.iter_mut().zip(own.iter().zip(plain)) {
                    for (logit, (own, plain)) in row.iter_mut().zip(own.iter().zip(plain)) {
                        *logit += own - plain;
                    }
                }
            }
        }
        logits
    }

    /// Weights of what the parts beside the one that transforms see, and of its own logits.
    fn weights(&self, seen: &ScalarInput, own: Heads) -> Heads {
        match self.places.replaces_softmax {
            Some(part) => self.parts[part].scalar_weights(seen),
            None => attention::softmax(&self.with_others(seen, own)),
        }
    }
}

impl ScalarReference for Combined {
    fn scalar_embed(&self, x: &Tokens, ids: &[usize], positions: &[usize]) -> Tokens {
        self.parts.iter().fold(x.clone(), |x, part| part.scalar_embed(&x, ids, positions))
    }

    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        self.seen(input)
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        if let [only] = self.parts.as_slice() {
            return only.scalar_logits(input);
        }
        let own = self
            .transforming()
            .map_or_else(|| Plain.scalar_logits(input), |part| part.scalar_logits(input));
        self.with_others(&self.seen(input), own)
    }

    fn scalar_weights(&self, input: &ScalarInput) -> Heads {
        match (self.parts.as_slice(), self.places.replaces_softmax) {
            ([only], _) => only.scalar_weights(input),
            (_, Some(part)) => self.parts[part].scalar_weights(&self.seen(input)),
            (_, None) => attention::softmax(&self.scalar_logits(input)),
        }
    }

    fn scalar_stack(&self, layers: &[ScalarLayer]) -> Vec<Heads> {
        match (self.parts.as_slice(), self.transforming()) {
            ([only], _) => only.scalar_stack(layers),
            (_, Some(part)) => {
                part.scalar_stack_beside(layers, &|seen, own| self.weights(seen, own))
            }
            (_, None) => layers.iter().map(|layer| self.scalar_weights(&layer.input)).collect(),
        }
    }

    fn differentiable_at(&self, parameter: usize, value: f64) -> bool {
        let mut first = 0;
        for part in &self.parts {
            let mut counter = Tensors(0);
            part.visit(&mut counter);
            if parameter < first + counter.0 {
                return part.differentiable_at(parameter - first, value);
            }
            first += counter.0;
        }
        true
    }
}

/// Counts tensors of parameters.
struct Tensors(usize);

impl ModuleVisitor for Tensors {
    fn visit_float<const D: usize>(&mut self, _param: &Param<Tensor<D>>) {
        self.0 += 1;
    }
}
