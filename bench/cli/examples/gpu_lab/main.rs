//! `pe-bench` that also measures a plan on a GPU, one line of JSON a measurement, for machines that are lent for minutes.
//!
//! ```text
//! gpu-lab --plan PLAN --out FILE --seconds N --backend NAME
//! ```
//!
//! PLAN has a JSON object a line, the most important first; `plan.rs` describes them. Lines are appended to FILE, which is
//! flushed after each; work whose name has a finished line there is skipped. No measurement starts after N seconds. Any
//! other command line is that of `pe-bench`.
//!
//! Exit status: 0 done or out of time; 1 a measurement failed; 2 a plan that cannot be read; 3 no such device.

mod attention;
mod network;
mod plan;
mod work;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use plan::PlannedWork;
use serde_json::{Value, json};
use train::allocations::Counting;

// The allocator of `pe-bench`, whose work is measured.
#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

/// Arguments of a plan.
#[derive(Parser)]
struct LabArgs {
    /// File with one measurement a line.
    #[arg(long)]
    plan: std::path::PathBuf,
    /// File that results are appended to.
    #[arg(long)]
    out: std::path::PathBuf,
    /// Seconds after which no measurement starts.
    #[arg(long)]
    seconds: u64,
    /// Backend that computes.
    #[arg(long, default_value = "cuda")]
    backend: String,
}

fn main() -> ExitCode {
    let start = Instant::now();
    if std::env::args().nth(1).as_deref() != Some("--plan") {
        return pe_bench::main_with(Ok(pe_zoo::Registry::builtin()));
    }
    let arguments = LabArgs::parse();
    let refused = |status: u8, message: String| {
        complain(&message);
        ExitCode::from(status)
    };
    let text = match std::fs::read_to_string(&arguments.plan) {
        Ok(text) => text,
        Err(error) => return refused(2, format!("{}: {error}", arguments.plan.display())),
    };
    let plan = match plan::parse(&text) {
        Ok(plan) => plan,
        Err(error) => return refused(2, format!("{}:{error}", arguments.plan.display())),
    };
    if let Err(error) = train::backend::device(&arguments.backend) {
        return refused(3, error.to_string());
    }
    match run(&plan, &arguments, start) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            refused(1, format!("{failed} measurements failed, see {}", arguments.out.display()))
        }
        Err(error) => refused(1, format!("{}: {error}", arguments.out.display())),
    }
}

fn complain(message: &str) {
    // A closed output must not end a measurement.
    drop(writeln!(std::io::stderr(), "gpu-lab: {message}"));
}

/// Measures the plan; returns the number of measurements that failed.
fn run(plan: &[PlannedWork], arguments: &LabArgs, start: Instant) -> std::io::Result<usize> {
    let before = std::fs::read_to_string(&arguments.out).unwrap_or_default();
    let lines = before.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let done = lines.filter(|line| line["status"] == "done").map(|line| line["name"].clone());
    let done = done.collect::<Vec<_>>();
    let mut out = std::fs::OpenOptions::new().create(true).append(true).open(&arguments.out)?;
    let mut lab = work::Lab::new(&arguments.backend);
    let (mut failed, mut left) = (0, plan.len());
    for planned in plan {
        if start.elapsed() >= Duration::from_secs(arguments.seconds) {
            complain(&format!("out of time, {left} of {} measurements are left", plan.len()));
            break;
        }
        left -= 1;
        if done.contains(&json!(planned.name)) {
            continue;
        }
        let began = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| lab.measure(planned)))
            .unwrap_or_else(|panic| Err(panic_message(&*panic)));
        let (status, measured) = match outcome {
            Ok(measured) => ("done", measured),
            Err(message) => {
                failed += 1;
                ("failed", json!({ "message": message }))
            }
        };
        let line = json!({
            "name": planned.name,
            "status": status,
            "work": planned.work,
            "measured": measured,
            "whole_seconds": began.elapsed().as_secs_f64(),
        });
        writeln!(out, "{line}")?;
        out.flush()?;
    }
    Ok(failed)
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("the measurement panicked without a message").chars().take(600).collect()
}

#[cfg(all(test, feature = "wgpu"))]
mod tests {
    use super::*;

    const PLAN: &str = r#"
{"name": "attention", "what": "attention", "batch": 1, "len": 40, "heads": 2, "width": 8, "repeats": 1}
{"name": "small tile", "what": "attention", "batch": 1, "len": 40, "heads": 2, "width": 8, "repeats": 1, "tile": 2}
{"name": "slots", "what": "attention", "encoding": "cope", "batch": 1, "len": 40, "heads": 2, "width": 8, "cubes_each": 1}
{"name": "unknown", "what": "attention", "encoding": "none-such"}
{"name": "network", "what": "network", "rows": 9, "width": 8, "hidden": 16, "activation": "swi-glu"}
{"name": "product", "what": "product", "m": 9, "k": 8, "n": 7, "left_transposed": true}
{"name": "kernels", "what": "kernels", "batch": 2, "len": 16, "dim": 16, "heads": 2, "layers": 1, "vocab": 8, "steps": 2}
"#;

    #[test]
    fn a_plan_leaves_one_line_for_each_measurement_and_is_continued() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("lab.jsonl");
        let arguments = |seconds| LabArgs {
            plan: "plan".into(),
            out: out.clone(),
            seconds,
            backend: "wgpu".to_owned(),
        };
        let plan = plan::parse(PLAN).expect("a plan");
        assert_eq!(run(&plan, &arguments(0), Instant::now()).expect("a file"), 0);
        assert_eq!(run(&plan, &arguments(600), Instant::now()).expect("a file"), 1);
        let lines = || -> Vec<Value> {
            let text = std::fs::read_to_string(&out).expect("a file");
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
        };
        assert_eq!(lines().len(), plan.len());
        for line in lines() {
            let (name, measured) = (line["name"].as_str().expect("a name"), &line["measured"]);
            assert_eq!(line["status"], if name == "unknown" { "failed" } else { "done" }, "{line}");
            match name {
                "attention" | "small tile" | "slots" => {
                    assert_eq!(measured["same_bits"], true, "{line}");
                    for part in ["output", "q", "k", "v"] {
                        let apart = measured["largest_difference"][part].as_f64();
                        let limit = if name == "attention" { 0.0 } else { 1e-4 };
                        assert!(apart.is_some_and(|apart| apart <= limit), "{line}");
                    }
                }
                "network" => {
                    assert_eq!(measured["same_bits"], true, "{line}");
                    let apart = measured["largest_difference"].as_array().expect("six numbers");
                    assert!(apart.iter().all(|apart| *apart == 0.0), "{line}");
                }
                "unknown" => {
                    assert!(measured["message"].to_string().contains("none-such"), "{line}")
                }
                "product" => {
                    assert!(measured["seconds"].as_f64().is_some_and(|s| s > 0.0), "{line}")
                }
                _ => {
                    assert!(measured["launches"].as_u64().is_some_and(|count| count > 20), "{line}")
                }
            }
        }
        // Only what failed is tried again.
        assert_eq!(run(&plan, &arguments(600), Instant::now()).expect("a file"), 1);
        assert_eq!(lines().len(), plan.len() + 1);
    }
}
