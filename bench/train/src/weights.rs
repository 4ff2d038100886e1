//! Parameters of a module as named tensors, and files of them in the safetensors format.
//!
//! Names and layouts are those of PyTorch: the matrix of a linear map is `weight`, `[outputs, inputs]`, and the gain and
//! offset of a normalisation are `weight` and `bias`. Values are little-endian f32. A matrix that is read back has the
//! memory layout of one that was never stored, so that products with it give the same bits.

mod named;
mod visit;

pub use named::NamedTensors;
pub(crate) use visit::{AutodiffRole, collect};
pub use visit::{Extras, restore};

/// Tests of stored weights: equal bits after reading, and the names of PyTorch.
#[cfg(test)]
mod tests {
    use burn::module::{Module, ModuleVisitor, Param};
    use burn::tensor::{Device, Tensor};
    use pe_zoo::Combination;
    use pe_zoo::testkit::close::numbers;

    use super::{NamedTensors, collect, restore};
    use crate::streams::{Stream, stream};
    use pe_zoo::model::{Decoder, ModelConfig, NormKind};

    fn model(encoding: &str, seed: u64) -> Decoder {
        let config = ModelConfig { width: 12, layers: 1, ..ModelConfig::default() };
        of(&config, encoding, seed)
    }

    fn of(config: &ModelConfig, encoding: &str, seed: u64) -> Decoder {
        let mut model_rng = stream(seed, Stream::Model);
        let mut encoding_rng = stream(seed, Stream::Encoding);
        let dims = config.dims(8, 8);
        let encoding = Combination::parse(encoding).unwrap();
        let device = Device::flex();
        Decoder::new(config, 7, &encoding, &dims, &mut model_rng, &mut encoding_rng, &device)
            .unwrap()
    }

    /// Values of the parameters with these dimensions.
    struct Shaped {
        dims: [usize; 2],
        found: Vec<Vec<f64>>,
    }

    impl ModuleVisitor for Shaped {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if param.val().dims()[..] == self.dims {
                self.found.push(numbers(param.val()));
            }
        }
    }

    fn tensors(model: &Decoder) -> NamedTensors {
        collect(model, false, &()).unwrap()
    }

    #[test]
    fn names_and_shapes_are_those_of_pytorch() {
        let stored = tensors(&model("cope{max_positions=4}+rope", 1));
        let shapes = stored.shapes().map(|(name, dims)| format!("{name} {dims:?}"));
        assert_eq!(
            shapes.collect::<Vec<_>>(),
            [
                "blocks.0.attention_norm.bias [12]",
                "blocks.0.attention_norm.weight [12]",
                "blocks.0.feed_forward.down.bias [12]",
                "blocks.0.feed_forward.down.weight [12, 48]",
                "blocks.0.feed_forward.up.bias [48]",
                "blocks.0.feed_forward.up.weight [48, 12]",
                "blocks.0.feed_forward_norm.bias [12]",
                "blocks.0.feed_forward_norm.weight [12]",
                "blocks.0.out.bias [12]",
                "blocks.0.out.weight [12, 12]",
                "blocks.0.qkv.bias [36]",
                "blocks.0.qkv.weight [36, 12]",
                "embedding.weight [7, 12]",
                "encoding.0.tables.0 [6, 4]",
                "head.bias [7]",
                "head.weight [7, 12]",
                "last_norm.bias [12]",
                "last_norm.weight [12]",
            ]
        );
        // A linear map is stored as `[outputs, inputs]`.
        let up = stored.values("blocks.0.feed_forward.up.weight").unwrap();
        let mut plain = Shaped { dims: [12, 48], found: Vec::new() };
        model("cope{max_positions=4}+rope", 1).visit(&mut plain);
        let plain = plain.found.remove(0);
        for input in 0..12 {
            for output in 0..48 {
                let (theirs, ours) = (up[output * 12 + input], plain[input * 48 + output]);
                assert_eq!(f64::from(theirs).to_bits(), ours.to_bits(), "{input} {output}");
            }
        }
    }

    #[test]
    fn files_give_every_bit_back() {
        let rms = ModelConfig { width: 12, norm: NormKind::RmsNorm, ..ModelConfig::default() };
        for encoding in crate::encodings::ids() {
            let (from, into) = (of(&rms, &encoding, 1), of(&rms, &encoding, 2));
            let stored = tensors(&from);
            let read = NamedTensors::parse(&stored.bytes().unwrap()).unwrap();
            assert_eq!(read, stored, "{encoding}");
            assert_ne!(tensors(&into), stored, "{encoding}");
            let restored = restore(into, &read, |_| true, false, &mut ()).unwrap();
            assert_eq!(tensors(&restored), stored, "{encoding}");
        }
    }

    #[test]
    fn tensors_of_another_model_are_refused_by_name() {
        let refused = |stored: &NamedTensors, into: Decoder| {
            let error = restore(into, stored, |_| true, false, &mut ()).unwrap_err();
            assert!(error.to_string().contains("for the model"), "{error}");
            error.to_string()
        };
        let rope = tensors(&model("rope", 1));
        let missing = refused(&rope, model("learned-absolute", 1));
        assert!(missing.contains("no tensor `encoding.0.table`"), "{missing}");
        let learned = tensors(&model("learned-absolute", 1));
        let strange = refused(&learned, model("rope", 1));
        assert!(strange.contains("`encoding.0.table` [8, 12]"), "{strange}");
        let wide = ModelConfig { width: 16, layers: 1, ..ModelConfig::default() };
        let shape = refused(&tensors(&of(&wide, "rope", 1)), model("rope", 1));
        assert!(shape.contains("[7, 16]") && shape.contains("[7, 12]"), "{shape}");
        // A part of the model may be left as it is.
        let kept = restore(
            model("rope", 2),
            &learned,
            |name| !name.starts_with("encoding."),
            false,
            &mut (),
        );
        assert_eq!(tensors(&kept.unwrap()), rope);
    }

    #[test]
    fn files_that_are_no_weights_are_refused() {
        let bytes = tensors(&model("rope", 1)).bytes().unwrap();
        for cut in [0, 7, 100, bytes.len() - 1] {
            let error = NamedTensors::parse(&bytes[..cut]).unwrap_err();
            assert!(
                error.to_string().contains("this is not a file of f32 weights"),
                "{cut}: {error}"
            );
        }
        let mut other = bytes.clone();
        let place = bytes.windows(5).position(|five| five == b"\"F32\"").unwrap();
        other[place + 1] = b'I';
        let error = NamedTensors::parse(&other).unwrap_err().to_string();
        assert!(error.contains("I32"), "{error}");
    }
}
