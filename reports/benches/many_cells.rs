//! Benchmark of the report of a store of 100 000 generated cells: time, peak memory and page size, compared with
//! their limits (10 s with stored frames, 1.5 GB, 10 MB). Then one cell is added and the table of its workload is
//! computed (limit 2 s).
//!
//! `cargo bench --bench many_cells` generates the store in a temporary folder, or in the folder that
//! is given, where it is kept and used again: `cargo bench --bench many_cells -- FOLDER`. A second
//! argument is another number of cells. `pe-bench report FOLDER` then measures the program of the `dev` profile.
#![expect(clippy::print_stdout, reason = "a measurement that nobody sees is none")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use analysis::frame::Frames;
use analysis::{Report, ReportMeta};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use records::settings::Settings;
use records::store::cell_key;
use records::{
    CurvePoint, EncodingInfo, EvalPoint, FlopCount, Host, ParamCount, RunRecord, SCHEMA, SliceUnit,
    Slices, Status, TaskInfo, TrainSummary,
};
use reports::document::tables::{PaperLayout, paper};
use serde_json::{Value, json};

/// As `pe-bench`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CELLS: usize = 100_000;
const ENCODINGS: usize = 25;
const SEEDS: usize = 50;
const LENS: [u64; 6] = [32, 64, 128, 256, 512, 1024];

const SECONDS: f64 = 10.0;
const ONE_MORE_SECONDS: f64 = 2.0;
const BYTES: u64 = 1_500_000_000;
const PAGE: u64 = 10_000_000;

/// As large as those of real cells.
fn config(workload: usize, encoding: usize, seed: usize) -> Value {
    json!({
        "backend": "flex", "engine": "fused",
        "encoding": {"id": format!("encoding-{encoding}"), "settings": {"max_positions": null, "base": 10000.0}},
        "eval": {"batch_size": 16, "lens": LENS, "samples": 400, "seed": 1_000_003, "splits": null},
        "model": {"activation": "relu", "bias": true, "dropout": 0.0, "feed_forward_width": null, "heads": 2,
            "init": "fan-in", "layers": 2, "norm": "layer-norm", "norm_place": "pre", "tied_head": false,
            "width": 64},
        "seed": seed,
        "task": {"kind": "counting", "variables": workload, "increment_weight": 7.0, "pass_weight": 50.0},
        "task_version": 1,
        "train": {"batch_size": 32, "curve_points": 50, "len": 64, "steps": 1200, "optimizer": {
            "betas": [0.9, 0.999], "clip_norm": 1.0, "decay": "linear", "epsilon": 1e-8, "final_share": 0.0,
            "learning_rate": 0.001, "warmup_steps": 50, "weight_decay": 0.01}},
    })
}

fn eval(len: u64, skill: f64, rng: &mut ChaCha8Rng) -> EvalPoint {
    let right = (skill * 64.0 / len.max(64) as f64 + 0.1 * rng.random::<f64>()).clamp(0.0, 1.0);
    let nll = 2.0 * (1.0 - right) + 0.01;
    let slices = Slices {
        name: "distance".into(),
        unit: SliceUnit::Tokens,
        values: (0..10).collect(),
        counts: vec![40; 10],
        accuracy: (0..10).map(|i| right * (1.0 - 0.05 * f64::from(i))).collect(),
        nll: vec![nll; 10],
    };
    EvalPoint {
        split: "in-distribution".into(),
        in_distribution: len <= 64,
        trained_split: None,
        len,
        samples: 400,
        scored_tokens: 400,
        exact_match: right,
        token_accuracy: f64::midpoint(right, 1.0),
        nll,
        perplexity: nll.exp(),
        bits_per_byte: None,
        seconds: 0.1,
        chance: Some(0.1),
        outcomes: None,
        unseen: None,
        ceiling: None,
        slices: vec![slices],
    }
}

fn record(cell: usize) -> RunRecord {
    let (seed, encoding, workload) =
        (cell % SEEDS, cell / SEEDS % ENCODINGS, cell / SEEDS / ENCODINGS);
    let mut rng = ChaCha8Rng::seed_from_u64(cell as u64);
    let id = if encoding == 0 { "rope".to_owned() } else { format!("encoding-{encoding}") };
    let config = config(workload, encoding, seed);
    let skill = 0.5 + 0.4 * (encoding as f64 / ENCODINGS as f64);
    let curve = (1..=50_u64).map(|i| CurvePoint {
        step: 24 * i,
        loss: 2.0 / i as f64 + 0.1 * rng.random::<f64>(),
        learning_rate: 0.001 - 2e-5 * i as f64,
        seconds: 0.7 * i as f64,
    });
    let curve = curve.collect();
    RunRecord {
        schema: SCHEMA,
        key: cell_key(&config),
        suite: "many".into(),
        suite_sha256: None,
        workload: format!("counting with {workload} variables"),
        encoding: EncodingInfo {
            label: id.to_uppercase(),
            config: config["encoding"]["settings"].clone(),
            name: id.clone(),
            id,
        },
        task: TaskInfo {
            id: "counting".into(),
            label: "Counting".into(),
            version: 1,
            headline: "exact-match".into(),
            len_unit: "tokens".into(),
            chance: Some(0.1),
            config: config["task"].clone(),
        },
        config,
        seed: seed as u64,
        grid: None,
        status: if cell.is_multiple_of(997) {
            Status::Failed { reason: "made to fail".into() }
        } else {
            Status::Done
        },
        train_len: 64,
        params: ParamCount { total: 104_000, encoding: 64 * encoding as u64 },
        flops: FlopCount { train_step: 1_400_000_000, forward_per_token: 231_040 },
        step_allocations: None,
        step_instructions: None,
        train: TrainSummary {
            steps: 1200,
            batch_size: 32,
            tokens: 2_419_200,
            final_loss: Some(0.05),
            seconds: 35.0,
            step_seconds_median: Some(0.02 + 0.0001 * encoding as f64),
            tokens_per_second: Some(69_000.0),
            machine_load: None,
            data_parallel: None,
            curve,
            validations: Vec::new(),
            split_validations: Vec::new(),
            solved: None,
            stopped_early: false,
        },
        evals: LENS.iter().map(|len| eval(*len, skill, &mut rng)).collect(),
        skipped_evals: Vec::new(),
        gates: Vec::new(),
        peak_bytes: Some(90 << 20),
        host_peak_bytes: None,
        device: None,
        host: Host {
            cpu: "A CPU".into(),
            logical_cpus: 2,
            os: "linux".into(),
            threads: 1,
            jobs: 1,
        },
        backend: "flex".into(),
        engine: "fused".into(),
        score_form: None,
        precision: "f32".into(),
        commit: Some("0123456789ab".into()),
        dirty: Some(false),
        versions: BTreeMap::from([("burn".into(), "0.22.1".into())]),
        started_utc: "2026-01-02T03:04:05Z".into(),
        weights: None,
        evaluated_by: None,
    }
}

/// Written without syncing each file: a generated store may be lost.
fn generate(folder: &Path, cells: RangeInclusive<usize>) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder.join("cells"))?;
    let write = |cell| -> Result<(), Box<dyn Error + Send + Sync>> {
        let record = record(cell);
        let path = folder.join("cells").join(format!("{}.json", record.key));
        fs::write(path, record.text()?)?;
        Ok(())
    };
    cells.into_par_iter().try_for_each(write).map_err(|error| error as Box<dyn Error>)
}

/// Number of rows of the table of the last workload.
fn table(frames: Frames) -> Result<usize, Box<dyn Error>> {
    let last = frames.workloads()?.pop().ok_or("there is no workload")?;
    let meta = ReportMeta::default();
    let report = Report::of_workloads(frames, &meta, &Settings::default(), &[last])?;
    Ok(paper(&report, &report.workloads[0], &PaperLayout::default())?.rows.len())
}

/// The most memory that this process has held, in bytes; `None` where the system does not tell.
fn peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(1024 * line.split_whitespace().nth(1)?.parse::<u64>().ok()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo passes `--bench` too.
    let mut arguments = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let temporary = tempfile::tempdir()?;
    let folder = arguments.next().map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let cells = arguments.next().map_or(Ok(CELLS), |count| count.parse())?;
    if !folder.join("cells").is_dir() {
        let start = Instant::now();
        generate(&folder, 0..=cells - 1)?;
        println!("generated {cells} cells in {:.1} s", start.elapsed().as_secs_f64());
        // Frames of files that are just written are not kept.
        thread::sleep(Duration::from_secs(3));
    }
    // A cell of the run before.
    let added = record(cells).key;
    let _ = fs::remove_file(folder.join("cells").join(format!("{added}.json")));
    let start = Instant::now();
    analysis::frame::read_frames(&folder)?;
    println!("frames are kept after {:.1} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let (frames, _) = analysis::frame::read_frames(&folder)?;
    let read = start.elapsed().as_secs_f64();
    let count = frames.cells.height();
    let meta = ReportMeta { title: "many cells".into(), ..ReportMeta::default() };
    let rendered = reports::render_report(frames, &meta, &Settings::default(), &[])?;
    reports::write_files(&rendered.files, &folder.join("report"))?;
    let all = start.elapsed().as_secs_f64();
    let page = fs::metadata(folder.join("report/index.html"))?.len();
    println!("{count} cells: read in {read:.1} s, report after {all:.1} s, page {page} bytes");
    drop(rendered);
    generate(&folder, cells..=cells)?;
    // Files that are newer are read again.
    thread::sleep(Duration::from_secs(3));
    let start = Instant::now();
    let (frames, _) = analysis::frame::read_frames(&folder)?;
    let read = start.elapsed().as_secs_f64();
    let rows = table(frames)?;
    let one_more = start.elapsed().as_secs_f64();
    println!("one more cell: read in {read:.1} s, table of {rows} rows after {one_more:.1} s");
    let mut broken = Vec::new();
    if all > SECONDS {
        broken.push(format!("{all:.1} s, promised are {SECONDS} s"));
    }
    if one_more > ONE_MORE_SECONDS {
        broken
            .push(format!("{one_more:.1} s for one more cell, promised are {ONE_MORE_SECONDS} s"));
    }
    if page > PAGE {
        broken.push(format!("a page of {page} bytes, promised are {PAGE}"));
    }
    if let Some(peak) = peak_bytes() {
        println!("peak memory {peak} bytes");
        if peak > BYTES {
            broken.push(format!("{peak} bytes of memory, promised are {BYTES}"));
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(broken.join("; ").into()) }
}
