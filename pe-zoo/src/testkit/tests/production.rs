//! Comparison of layers of production models with their own code in transformers (`fixtures/production.json`,
//! `fixtures/SOURCE.md`).

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor, TensorData};
use serde_json::Value;

use super::fixtures::printed;
use crate::attention::{Engine, LayerInput, Weights, layer};
use crate::testkit::close::{self, Tolerance, numbers};
use crate::testkit::stack;
use crate::{Combination, Dims, Positions, TokenState};

const TOKENS: usize = 12;
const DIMS: Dims = Dims { layers: 1, width: 16, heads: 2, head_dim: 8, train_len: 16, max_len: 64 };

/// Sums of some products of numbers with five decimals.
const FIVE_DECIMALS: Tolerance = Tolerance { absolute: 1e-4, relative: 1e-4 };

/// Sets the only learned tensor of an encoding.
struct Learned(Vec<f32>);

impl ModuleMapper for Learned {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let values = self.0.clone();
        param.map(|old| Tensor::from_data(TensorData::new(values, old.dims()), &old.device()))
    }
}

#[track_caller]
fn assert_attends(text: &str, expected: &Value) {
    let device = Device::flex();
    let mut encoding = stack::built(&Combination::parse(text).unwrap(), &DIMS, &device).unwrap();
    if let Some(sinks) = expected.get("sinks") {
        let sinks = printed(sinks).into_iter().map(|value| value as f32).collect();
        encoding = encoding.map(&mut Learned(sinks));
    }
    let heads = |name: &str| {
        let values = printed(&expected[name]).into_iter().map(|value| value as f32);
        let values = values.collect::<Vec<_>>();
        let shape = [1, values.len() / (TOKENS * DIMS.head_dim), TOKENS, DIMS.head_dim];
        Tensor::<4>::from_data(TensorData::new(values, shape), &device)
    };
    let at = Positions::contiguous(0, TOKENS);
    let (x, carried) = (Tensor::zeros([1, TOKENS, DIMS.width], &device), TokenState::default());
    for engine in [Engine::Reference, Engine::best(&device)] {
        let projections = ["q", "k", "v"].map(heads);
        let input = LayerInput::new(0, &at, &x, projections, &carried);
        let output = layer(&encoding, LayerInput { engine, ..input }, None, Weights::Drop).output;
        close::compare(&numbers(output), &printed(&expected["output"]), FIVE_DECIMALS)
            .unwrap_or_else(|e| panic!("{text} on {engine:?}: {e}"));
    }
}

fn fixture(model: &str) -> Value {
    let mut fixture: Value =
        serde_json::from_str(include_str!("../../../fixtures/production.json")).unwrap();
    fixture[model].take()
}

#[test]
fn layers_of_gpt_oss() {
    let rope = "rope{base=500.0,scaling={rope_type=yarn,factor=4.0,beta_fast=2.0,beta_slow=0.2,\
                truncate=false,original_max_position_embeddings=16}}";
    let layers = fixture("gpt-oss");
    assert_attends(&format!("{rope}+window{{size=5}}+sinks"), &layers[0]);
    assert_attends(&format!("{rope}+sinks"), &layers[1]);
}

#[test]
fn layers_of_llama_4_within_a_chunk() {
    let layers = fixture("llama4");
    assert_attends("rope{base=500.0,layout=interleaved}", &layers[0]);
    assert_attends("temperature{growth={type=llama4,scale=0.3,every=4}}", &layers[1]);
}
