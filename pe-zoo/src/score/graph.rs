//! Number type of the reference engine: tensors that Burn differentiates.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

use burn::tensor::activation::{log_sigmoid, sigmoid};
use burn::tensor::{Bool, DType, Device, Tensor};

use super::number::Number;

/// Tensors of one evaluation. Nodes refer to them by index, so that they can be copied like
/// numbers.
#[derive(Debug)]
pub(super) struct Graph {
    tensors: RefCell<Vec<Tensor<4>>>,
    device: Device,
    dtype: DType,
}

/// Tensor of a graph, or a constant.
#[derive(Debug, Clone, Copy)]
pub(super) enum Node<'g> {
    Constant(f64),
    Tensor(&'g Graph, usize),
}

impl Graph {
    /// Creates an empty graph for tensors of the shape of this one.
    pub(super) fn like(tensor: &Tensor<4>) -> Self {
        Self { tensors: RefCell::new(Vec::new()), device: tensor.device(), dtype: tensor.dtype() }
    }

    pub(super) fn node(&self, tensor: Tensor<4>) -> Node<'_> {
        let mut tensors = self.tensors.borrow_mut();
        tensors.push(tensor);
        Node::Tensor(self, tensors.len() - 1)
    }

    pub(super) fn tensor(&self, node: Node<'_>) -> Tensor<4> {
        match node {
            Node::Constant(value) => Tensor::full([1; 4], value, (&self.device, self.dtype)),
            Node::Tensor(_, index) => self.tensors.borrow()[index].clone(),
        }
    }
}

impl Node<'_> {
    fn one(self, constant: fn(f64) -> f64, tensor: fn(Tensor<4>) -> Tensor<4>) -> Self {
        match self {
            Self::Constant(value) => Self::Constant(constant(value)),
            Self::Tensor(graph, _) => graph.node(tensor(graph.tensor(self))),
        }
    }

    fn two(
        self,
        other: Self,
        constant: fn(f64, f64) -> f64,
        tensor: fn(Tensor<4>, Tensor<4>) -> Tensor<4>,
    ) -> Self {
        match (self, other) {
            (Self::Constant(left), Self::Constant(right)) => Self::Constant(constant(left, right)),
            (Self::Tensor(graph, _), _) | (_, Self::Tensor(graph, _)) => {
                graph.node(tensor(graph.tensor(self), graph.tensor(other)))
            }
        }
    }
}

impl Add for Node<'_> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.two(other, |a, b| a + b, |a, b| a + b)
    }
}

impl Sub for Node<'_> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.two(other, |a, b| a - b, |a, b| a - b)
    }
}

impl Mul for Node<'_> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        self.two(other, |a, b| a * b, |a, b| a * b)
    }
}

impl Div for Node<'_> {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        self.two(other, |a, b| a / b, |a, b| a / b)
    }
}

impl Neg for Node<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        self.one(|x| -x, Tensor::neg)
    }
}

impl Number for Node<'_> {
    fn constant(value: f64) -> Self {
        Self::Constant(value)
    }

    fn exp(self) -> Self {
        self.one(Number::exp, Tensor::exp)
    }

    fn ln(self) -> Self {
        self.one(Number::ln, Tensor::log)
    }

    fn sqrt(self) -> Self {
        self.one(Number::sqrt, Tensor::sqrt)
    }

    fn pow(self, exponent: Self) -> Self {
        self.two(exponent, Number::pow, |base, exponent| {
            // The base is replaced where it is 0, so that no infinite derivative meets a 0.
            let [base, exponent] = expanded(base, exponent);
            let zero = base.clone().equal_elem(0.0);
            let base = base.mask_fill(zero.clone(), 1.0);
            (exponent * base.log()).exp().mask_fill(zero, 0.0)
        })
    }

    fn sigmoid(self) -> Self {
        self.one(Number::sigmoid, sigmoid)
    }

    fn softplus(self) -> Self {
        self.one(Number::softplus, |x| log_sigmoid(x.neg()).neg())
    }

    fn abs(self) -> Self {
        self.one(Number::abs, Tensor::abs)
    }

    fn max(self, other: Self) -> Self {
        self.two(other, Number::max, |a, b| {
            let [a, b] = expanded(a, b);
            let first = a.clone().greater_equal(b.clone()).bool_or(a.clone().is_nan());
            choose(first, a, b)
        })
    }

    fn min(self, other: Self) -> Self {
        self.two(other, Number::min, |a, b| {
            let [a, b] = expanded(a, b);
            let first = a.clone().lower_equal(b.clone()).bool_or(a.clone().is_nan());
            choose(first, a, b)
        })
    }
}

fn choose(first: Tensor<4, Bool>, a: Tensor<4>, b: Tensor<4>) -> Tensor<4> {
    b.mask_where(first, a)
}

/// Repeats axes of length 1 of each tensor to the length of the other.
fn expanded(a: Tensor<4>, b: Tensor<4>) -> [Tensor<4>; 2] {
    let (left, right) = (a.dims(), b.dims());
    let shape: [usize; 4] = std::array::from_fn(|axis| left[axis].max(right[axis]));
    [a.expand(shape), b.expand(shape)]
}
