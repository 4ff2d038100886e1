use super::*;
use crate::ops;
use crate::testkit::close::{self, Tolerance, numbers};

/// Tolerance for three roundings to eight bits, of terms near 1.
const BF16: Tolerance = Tolerance { absolute: 2e-2, relative: 2e-2 };

#[test]
fn f32_is_everywhere_and_changes_nothing() {
    let device = Device::flex();
    assert!(MatmulPrecision::F32.available(&device));
    let x = Tensor::<2>::from_floats([[0.1, 0.7], [1.3, -0.2]], &device);
    let plain = ops::linear(x.clone(), x.clone(), None);
    let same = ops::linear_of(MatmulPrecision::F32, x.clone(), x, None);
    assert_eq!(numbers(plain), numbers(same));
}

#[test]
fn rounded_factors_give_the_product_to_eight_bits_and_its_gradients() {
    let device = Device::flex().autodiff();
    assert!(MatmulPrecision::Bf16.available(&device));
    let values =
        |n: usize, by: f64| (0..n).map(|i| (by * i as f64).sin() as f32).collect::<Vec<_>>();
    let run = |precision| {
        let tensor = |by| Tensor::<1>::from_data(values(12, by).as_slice(), &device);
        let x = tensor(1.1).reshape([3, 4]).require_grad();
        let weight = tensor(0.7).reshape([4, 3]).require_grad();
        let output = ops::linear_of(precision, x.clone(), weight.clone(), None);
        let grads = output.clone().powf_scalar(2.0).sum().backward();
        let grads = [x.grad(&grads), weight.grad(&grads)];
        let mut all = numbers(output);
        all.extend(grads.into_iter().flatten().flat_map(numbers));
        all
    };
    let (rounded, exact) = (run(MatmulPrecision::Bf16), run(MatmulPrecision::F32));
    assert_eq!(exact.len(), 9 + 12 + 12);
    assert_ne!(rounded, exact, "nothing was rounded");
    close::compare(&rounded, &exact, BF16).unwrap();
}
