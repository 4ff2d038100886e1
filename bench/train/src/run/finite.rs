//! Search for parameters with values that are not finite.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;

use pe_zoo::model::Decoder;

/// Path of the first parameter with a NaN or an infinity.
pub(super) fn first_non_finite(model: &Decoder) -> Option<String> {
    let mut finder = Finder::default();
    model.visit(&mut finder);
    finder.found
}

#[derive(Default)]
struct Finder {
    path: Vec<String>,
    found: Option<String>,
}

impl ModuleVisitor for Finder {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.found.is_none() && !param.val().is_finite().all().into_scalar::<bool>() {
            self.found = Some(self.path.join("."));
        }
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
}
