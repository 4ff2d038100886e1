//! A combination in scalar f64, from the references of its parts.

use super::Combined;
use crate::reference::{Heads, ScalarInput, ScalarReference, Tokens, attention};
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

impl ScalarReference for Combined {
    fn scalar_embed(&self, x: &Tokens, positions: &[usize]) -> Tokens {
        self.parts.iter().fold(x.clone(), |x, part| part.scalar_embed(&x, positions))
    }

    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        self.seen(input)
    }

    /// The logits of the part that transforms queries and keys, plus what each other part adds to
    /// the plain logits of what it sees.
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        if let [only] = self.parts.as_slice() {
            return only.scalar_logits(input);
        }
        let seen = self.seen(input);
        let plain = Plain.scalar_logits(&seen);
        let mut logits = self
            .transforming()
            .map_or_else(|| Plain.scalar_logits(input), |part| part.scalar_logits(input));
        for (at, part) in self.parts.iter().enumerate() {
            if self.places.transforms == Some(at) {
                continue;
            }
            let own = part.scalar_logits(&seen);
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

    fn scalar_weights(&self, input: &ScalarInput) -> Heads {
        match (self.parts.as_slice(), self.places.replaces_softmax) {
            ([only], _) => only.scalar_weights(input),
            (_, Some(part)) => self.parts[part].scalar_weights(&self.seen(input)),
            (_, None) => attention::softmax(&self.scalar_logits(input)),
        }
    }
}
