//! An encoding of your own, defined outside the zoo: conformance, training, report.
//!
//! `cargo run --release --example custom_pe` takes under a minute on two cores.
//!
//! "Square root" subtracts a learned slope per head times the square root of the distance.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use pe_bench::cell::{Cell, EvalConfig, TrainConfig};
use pe_bench::model::ModelConfig;
use pe_bench::runner::{RunContext, run};
use pe_zoo::attention::Engine;
use pe_zoo::encoding::ScoreContext;
use pe_zoo::meta::{Claims, PeMeta, Site};
use pe_zoo::reference::{Heads, ScalarInput, ScalarReference};
use pe_zoo::zoo::PeConfig;
use pe_zoo::{Dims, EncodingConfig, PeError, PositionEncoding, ScoreMod, init, testkit};
use rand_chacha::ChaCha8Rng;
use tasks::TaskConfig;

static META: PeMeta = PeMeta {
    id: "square-root",
    label: "Square root",
    summary: "Subtracts a learned slope per head times the square root of the distance.",
    sites: &[Site::Logits],
    claims: Claims {
        shift_invariant: true,
        content_dependent: false,
        limited_length: false,
        depends_on_length: false,
    },
    parameters: "H",
    paper: "this example",
    url: "",
};

/// No settings.
#[derive(Debug, Clone, serde::Serialize)]
struct SquareRootConfig {}

/// A learned slope per head.
#[derive(Module, Debug)]
struct SquareRoot {
    slopes: Param<Tensor<1>>,
}

impl EncodingConfig for SquareRootConfig {
    type Encoding = SquareRoot;

    fn meta(&self) -> &'static PeMeta {
        &META
    }

    fn init(
        &self,
        dims: &Dims,
        _: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<SquareRoot, PeError> {
        Ok(SquareRoot { slopes: init::constant(0.5, [dims.heads], device) })
    }

    fn param_count(&self, dims: &Dims) -> usize {
        dims.heads
    }
}

impl PositionEncoding for SquareRoot {
    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let root = ctx.layer.at.distances(&ctx.q.device()).float().sqrt();
        let [heads] = self.slopes.val().dims();
        let slopes = self.slopes.val().reshape([1, heads, 1, 1]);
        ScoreMod::Dense(slopes * root.unsqueeze::<4>().neg())
    }
}

/// The same in scalar f64, for the conformance kit.
impl ScalarReference for SquareRoot {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let slopes = testkit::close::numbers(self.slopes.val());
        let scale = 1.0 / (input.head_dim() as f64).sqrt();
        input.map(|h, row, i, j| {
            input.content(h, row, j) * scale - slopes[h] * (input.distance(i, j) as f64).sqrt()
        })
    }
}

/// The same cell for any encoding: what differs is the encoding alone.
fn cell<C: EncodingConfig>(encoding: C, seed: u64) -> Cell<C> {
    Cell {
        workload: "flip-flop".to_owned(),
        name: encoding.meta().id.to_owned(),
        encoding,
        task: TaskConfig::from_id("flip-flop").expect("a task of the list"),
        model: ModelConfig::default(),
        train: TrainConfig { steps: 150, batch_size: 16, len: 32, ..TrainConfig::default() },
        eval: EvalConfig { lens: vec![32, 64], samples: 100, ..EvalConfig::default() },
        seed,
        backend: "flex".to_owned(),
        engine: Engine::Fused,
        grid: None,
        budget: pe_bench::sweep::Budget::default(),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    testkit::assert_conforms(&SquareRootConfig {});

    let task = TaskConfig::from_id("flip-flop")?.build()?;
    let context = RunContext { suite: "custom-pe".to_owned(), threads: 2, jobs: 1 };
    let out = std::path::Path::new("results/custom-pe");
    let mut records = Vec::new();
    for seed in [0, 1] {
        records.push(run(&cell(SquareRootConfig {}, seed), &*task, &context, &mut |_| {}));
        records.push(run(&cell(PeConfig::from_id("alibi")?, seed), &*task, &context, &mut |_| {}));
    }
    for record in &records {
        record.write(out)?;
    }
    let meta = reports::ReportMeta {
        title: "An encoding of my own".to_owned(),
        command: "cargo run --release --example custom_pe".to_owned(),
        skipped: Vec::new(),
    };
    let report = reports::write_report(&records, out, &meta)?;
    for sentence in &report.sentences {
        eprintln!("{sentence}");
    }
    eprintln!("Report: {}", report.html.display());
    Ok(())
}
