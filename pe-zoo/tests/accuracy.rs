//! Errors of outputs and gradients of both engines in f32 at 1,024 tokens, under every encoding, against the reference engine in f64.
//!
//! The default type of a device's tensors can be set once per process, so that this program runs itself again for the
//! numbers in f64.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Device, FloatDType, Gradients, IntDType, Tensor, TensorData};
use pe_zoo::attention::{Engine, LayerInput, Weights, layer};
use pe_zoo::encoding::Update;
use pe_zoo::testkit::problem::{Problem, tensor3, tensor4};
use pe_zoo::testkit::randomise_by;
use pe_zoo::{Combination, Combined, Dims, Hooks, Positions, Registry, TokenState};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

const TOKENS: usize = 1024;

const DIMS: Dims =
    Dims { layers: 1, width: 16, heads: 2, head_dim: 8, train_len: TOKENS, max_len: TOKENS };

/// Standard deviation of random parameters, as large as the kit's for stacks of layers.
const STD: f64 = 0.2;

/// Settings tested in addition to the defaults of every encoding: other forms of modifiers, and inputs that grow with the
/// distance.
const VARIANTS: [&str; 15] = [
    "alibi{learning=per-layer}",
    "dape(fire)",
    "dape{mixer=convolution}",
    "dynamic-position-bias{distance=log}",
    "fox{gates={type=per-row}}",
    "grape{variant={type=additive}}",
    "grape{variant={type=additive,gate=both}}",
    "grape{variant={type=contextual}}",
    "grape{variant={type=multiplicative}}",
    "kerple{kernel=power}",
    "kerple{kernel=power,weight=power}",
    "logit-cap{cap=10000.0}",
    "path{forget={type=gate}}",
    "cope+rope",
    "cope-alibi{slopes=learned}",
];

/// Largest error of an output or gradient, relative to the largest number of its tensor.
const BOUND: f64 = 2e-5;

/// Largest error of a gradient that is 0 in exact arithmetic, such as that of a bias that all logits of a row share.
const BOUND_OF_ZERO: f64 = 1e-4;

/// An encoding whose gradients are less exact in f32, in both engines or for a reason that is stated.
struct LessExact {
    encoding: &'static str,
    bound: f64,
}

/// Encodings whose bound is greater than [`BOUND`].
const LESS_EXACT: [LessExact; 13] = [
    // The derivative jumps where a position passes a whole number.
    LessExact { encoding: "cope", bound: 5e-3 },
    LessExact { encoding: "cope+rope", bound: 5e-3 },
    // The derivative jumps where a hidden unit of DAPE's network changes its sign: a few of a million pairs do in f32.
    LessExact { encoding: "dape(fire)", bound: 3e-4 },
    // Sums of 1,024 angles and of their sines.
    LessExact { encoding: "grape{variant={type=contextual}}", bound: 1e-3 },
    LessExact { encoding: "grape{variant={type=multiplicative}}", bound: 1e-4 },
    // The gradient is a sum over all pairs of numbers of both signs, much greater than their sum.
    LessExact { encoding: "cope-alibi{slopes=learned}", bound: 1e-4 },
    LessExact { encoding: "dynamic-position-bias{distance=log}", bound: 1e-4 },
    LessExact { encoding: "fire", bound: 1e-4 },
    LessExact { encoding: "fox", bound: 2e-4 },
    LessExact { encoding: "kerple", bound: 1e-4 },
    LessExact { encoding: "kerple{kernel=power,weight=power}", bound: 2e-4 },
    LessExact { encoding: "path{forget={type=gate}}", bound: 2e-4 },
    LessExact { encoding: "wall", bound: 1e-4 },
];

/// Largest error of a tensor whose largest number is `largest`, in the units of the tensor.
fn allowed(encoding: &str, largest: f64) -> f64 {
    if largest < 1e-10 {
        return BOUND_OF_ZERO;
    }
    let exception = LESS_EXACT.iter().find(|less| less.encoding == encoding);
    exception.map_or(BOUND, |less| less.bound) * largest
}

/// Name of the variable with the folder into which the second process writes its numbers.
const FOLDER: &str = "PE_ZOO_ACCURACY_FOLDER";

/// Every encoding at settings for this length, and the variants.
fn cases() -> Vec<String> {
    let registry = Registry::builtin();
    let defaults = registry.cards().map(|card| match card.id {
        "randomized" => "randomized{longest=2048}(rope)",
        id => id,
    });
    // An encoding that needs several layers is not measured.
    let fits = |text: &&str| Combination::parse(text).unwrap().check(&DIMS).is_ok();
    defaults.filter(fits).chain(VARIANTS).map(str::to_owned).collect()
}

/// Outputs and gradients by name.
type Results = BTreeMap<String, Vec<f64>>;

/// Outputs of one layer and all gradients of a weighted sum of them.
fn results(text: &str, engine: Engine) -> Results {
    let device = Device::flex().autodiff();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let encoding = Combination::parse(text).unwrap().init(&DIMS, &mut rng, &device).unwrap();
    let encoding = as_default_type(randomise_by(STD, encoding, 5));
    let problem = Problem::random(1, TOKENS, &DIMS, 7);
    let at = Positions::contiguous(0, TOKENS);
    let leaf = |heads| tensor4(heads, &device).require_grad();
    let [q, k, v] = [&problem.q, &problem.k, &problem.v].map(|heads| leaf(heads));
    let x = tensor3(&problem.x, &device).require_grad();
    let carried = TokenState::default();
    let heads = [q.clone(), k.clone(), v.clone()];
    let input = LayerInput { engine, ..LayerInput::new(0, &at, &x, heads, &carried) };
    let output = layer(&encoding, input, None, Weights::Drop);
    let carried = encoding.update(output.carried, 0, Update::FeedForward(&x));
    let states = carried.tensors.into_iter().filter(Tensor::is_require_grad);
    let loss = states.map(weighted).fold(weighted(output.output.clone()), Tensor::add);
    let grads = loss.backward();
    let mut results = Results::from([("output".to_owned(), numbers(output.output))]);
    for (name, tensor) in [("queries", q), ("keys", k), ("values", v)] {
        results.insert(name.to_owned(), numbers(tensor.grad(&grads).unwrap()));
    }
    results.extend(x.grad(&grads).map(|grad| ("layer inputs".to_owned(), numbers(grad))));
    let mut visitor = Parameters { grads: &grads, path: Vec::new(), results };
    encoding.visit(&mut visitor);
    visitor.results
}

/// Sum in which every number has a different weight, so that errors do not cancel.
fn weighted(tensor: Tensor<4>) -> Tensor<1> {
    let shape = tensor.dims();
    let weights = (0..shape.iter().product())
        .map(|i: usize| (1.0 + 2.3 * i as f64).sin() as f32)
        .collect::<Vec<_>>();
    let weights = Tensor::<1>::from_data(weights.as_slice(), &tensor.device());
    (tensor * weights.reshape(shape)).sum()
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().convert::<f64>().try_into_vec::<f64>().unwrap()
}

struct Parameters<'a> {
    grads: &'a Gradients,
    path: Vec<String>,
    results: Results,
}

impl ModuleVisitor for Parameters<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let name = format!("parameter {} {}", self.path.join("."), self.results.len());
        self.results.extend(param.val().grad(self.grads).map(|grad| (name, numbers(grad))));
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
}

/// Creates all parameters again, in the default type of the device.
fn as_default_type(encoding: Combined) -> Combined {
    struct Again;

    impl ModuleMapper for Again {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|tensor| {
                let (shape, device) = (tensor.dims(), tensor.device());
                let data = TensorData::new(numbers(tensor), shape);
                Tensor::from_data(data, &device).require_grad()
            })
        }
    }

    encoding.map(&mut Again)
}

fn file(folder: &Path, case: usize) -> PathBuf {
    folder.join(format!("{case}.json"))
}

/// The part of the second process: writes outputs and gradients in f64.
#[test]
#[ignore = "run by the test below"]
fn numbers_in_f64() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let mut device = Device::flex();
    device.configure((FloatDType::F64, IntDType::I32)).unwrap();
    for (case, text) in cases().iter().enumerate() {
        let results = results(text, Engine::Reference);
        assert_eq!(Tensor::<1>::zeros([1], &device).dtype(), DType::F64);
        let json = serde_json::to_vec(&results).unwrap();
        std::fs::write(file(Path::new(&folder), case), json).unwrap();
    }
}

#[test]
fn outputs_and_gradients_are_as_exact_as_f32_allows_at_1024_tokens() {
    let folder = std::env::temp_dir().join(format!("pe-zoo-accuracy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "numbers_in_f64", "--ignored"])
        .env(FOLDER, &folder)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let mut wrong = Vec::new();
    for (case, text) in cases().iter().enumerate() {
        let exact = std::fs::read(file(&folder, case)).unwrap();
        let exact: Results = serde_json::from_slice(&exact).unwrap();
        for engine in [Engine::Fused, Engine::Reference] {
            let results = results(text, engine);
            assert!(results.keys().eq(exact.keys()), "{text}: other quantities in f32");
            for (name, exact) in &exact {
                let largest = exact.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
                let pairs = results[name].iter().zip(exact);
                let error = pairs.map(|(found, exact)| (found - exact).abs()).fold(0.0, f64::max);
                // A comparison with NaN is false.
                let holds = error <= allowed(text, largest);
                if !holds {
                    wrong.push(format!(
                        "{text}, {engine:?} engine, {name}: {error:.1e} of {largest:.1e}"
                    ));
                }
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    let advice = "an error that f32 makes inevitable gets a bound in LESS_EXACT, with the reason";
    assert!(wrong.is_empty(), "{wrong:#?}; {advice}");
}
