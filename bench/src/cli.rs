//! The command line: `pe-bench`.

mod benchmark;
mod conform;
mod data;
mod diff_records;
mod docs;
mod explain;
mod extend;
mod flops;
mod generate;
mod list;
mod out;
mod pretrained;
mod report;
mod reproduce;
mod run;
mod speed;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::backend::EngineChoice;
use clap::{Args, Parser, Subcommand, ValueEnum};

use out::say;

#[derive(Parser)]
#[command(
    name = "pe-bench",
    version,
    about = "Races position encodings for Transformers on the same tasks under the same budget",
    after_help = "Start with `pe-bench run quick`: it trains, evaluates and writes a report."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Trains and evaluates every cell of a suite, then writes its report.
    ///
    /// Finished cells are kept: run the same command again to go on.
    Run(RunArgs),
    /// Writes the report of one or more result folders again.
    Report {
        /// Folders of results (each with a `cells` folder).
        #[arg(required = true)]
        results: Vec<PathBuf>,
        /// Where the report goes; default: the first folder.
        #[arg(long)]
        out: Option<PathBuf>,
        #[command(flatten)]
        criteria: report::Criteria,
    },
    /// Compares the records of two result folders, all but timings and provenance.
    DiffRecords(diff_records::DiffArgs),
    /// Sets published numbers beside ours: agrees, differs, other recipe, not run.
    #[command(
        after_help = "Example: pe-bench reproduce results/contextual --paper cope --verdict other-recipe"
    )]
    Reproduce(reproduce::ReproduceArgs),
    /// Lists what there is.
    List {
        /// What to list.
        what: What,
    },
    /// Real text for language models.
    Data {
        #[command(subcommand)]
        command: data::DataCommand,
    },
    /// Prints an example suite to start your own from.
    #[command(
        after_help = "Example: pe-bench new-suite mine > mine.toml && pe-bench run mine.toml"
    )]
    NewSuite {
        /// Name of the suite.
        name: String,
    },
    /// Measures a training step of each encoding at one size.
    Speed(speed::SpeedArgs),
    /// Checks encodings with the conformance kit, and prints what was checked.
    #[command(after_help = "Example: pe-bench conform rope 'cope{max_positions=16}+rope'")]
    Conform(conform::ConformArgs),
    /// Prints the card of an encoding, a combination or a task.
    #[command(after_help = "Example: pe-bench explain rope")]
    Explain {
        /// An id, or a combination as 'cope+rope'.
        name: String,
    },
    /// Prints what a pass costs under each encoding, by formula.
    Flops(flops::FlopsArgs),
    /// Evaluates a pretrained model beyond its trained length, under changed rotations or other encodings.
    ///
    /// Finished cells are kept: run the same command again to go on.
    #[command(
        after_help = "Example: pe-bench extend smollm2 --lens 8192,16384 --methods as-trained,yarn"
    )]
    Extend(extend::ExtendArgs),
    /// Writes on from a prompt with a pretrained model.
    #[command(
        after_help = "Example: pe-bench generate smollm2 --prompt 'The capital of France is'"
    )]
    Generate(generate::GenerateArgs),
    /// Asks a pretrained model the questions of benchmark files that you have.
    Benchmark(benchmark::BenchmarkArgs),
    /// Models that were trained elsewhere.
    Pretrained {
        #[command(subcommand)]
        command: pretrained::PretrainedCommand,
    },
    /// Writes the generated tables of README.md, or checks them.
    Docs {
        /// Fail if a table is not what would be written.
        #[arg(long)]
        check: bool,
        /// The project's folder.
        #[arg(long, default_value = ".")]
        root: PathBuf,
    },
    /// One cell, ordered on standard input; `run` starts these.
    #[command(hide = true)]
    Worker,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Position encodings.
    Encodings,
    /// Tasks.
    Tasks,
    /// Built-in suites.
    Suites,
    /// Backends, and whether this program has them.
    Backends,
}

/// Arguments of `run`.
#[derive(Args, Clone)]
pub(crate) struct RunArgs {
    /// A built-in suite (`pe-bench list suites`) or the path of a TOML file.
    suite: String,
    /// Backend: flex, tch, cuda or wgpu.
    #[arg(long, default_value = "flex")]
    backend: String,
    /// Attention engine.
    #[arg(long, value_enum, default_value_t)]
    engine: EngineChoice,
    /// Threads of each cell.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Cells side by side; default: as many as there are processors for their threads.
    #[arg(long)]
    jobs: Option<usize>,
    /// Run this seed instead of the suite's; may be repeated.
    #[arg(long = "seed")]
    seeds: Vec<u64>,
    /// These encodings instead of the suite's, separated by commas: names of the suite, ids, or
    /// combinations as 'cope{max_positions=16}+rope'.
    #[arg(long)]
    encodings: Vec<String>,
    /// A text file or a folder of texts for every workload on text, instead of its corpus.
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Folder of the results; default: results/<suite>.
    #[arg(long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    criteria: report::Criteria,
    #[command(flatten)]
    sweep: run::SweepArgs,
    /// Print the cells and how long they would take, and stop.
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    match dispatch(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            out::complain(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(arguments) => return run::run(&arguments),
        Command::Report { results, out, criteria } => {
            report::report(&results, out, &criteria)?;
        }
        Command::DiffRecords(arguments) => return diff_records::diff(&arguments),
        Command::Reproduce(arguments) => reproduce::reproduce(&arguments)?,
        Command::List { what } => list::list(what),
        Command::Data { command } => data::data(command)?,
        Command::NewSuite { name } => say(&new_suite(&name)),
        Command::Speed(arguments) => speed::speed(&arguments)?,
        Command::Conform(arguments) => return conform::conform(&arguments),
        Command::Explain { name } => explain::explain(&name)?,
        Command::Flops(arguments) => flops::flops(&arguments)?,
        Command::Extend(arguments) => return extend::extend(&arguments),
        Command::Generate(arguments) => return generate::run(&arguments),
        Command::Benchmark(arguments) => benchmark::benchmark(&arguments)?,
        Command::Pretrained { command } => pretrained::pretrained(&command)?,
        Command::Docs { check, root } => docs::docs(&root, check)?,
        Command::Worker => {
            crate::sweep::serve(std::io::BufReader::new(std::io::stdin()), std::io::stdout())
                .map_err(anyhow::Error::msg)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn new_suite(name: &str) -> String {
    include_str!("../suites/example.toml.in").replace("{name}", name).trim_end().to_owned()
}
