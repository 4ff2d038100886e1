//! The program `pe-bench`, one module a command. [`main_with`] is the main function of a program with encodings of its own.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests panic on failure"))]

mod benchmark;
mod cells;
mod cluster;
mod columns;
mod compare;
mod completions;
mod compute;
mod conditions;
mod conflict;
mod conform;
mod count;
mod data;
mod diff;
mod differences;
mod eval;
mod explain;
mod export;
mod extend;
mod flops;
mod folders;
mod generate;
mod help;
mod inspect;
mod judge;
mod list;
mod merge;
mod new;
mod nightly;
mod out;
mod pack;
mod page;
mod parsers;
mod prose;
mod references;
mod report;
mod reproduce;
mod run;
mod samples;
mod speed;
mod stability;
mod status;
mod stop;
mod table;
#[cfg(test)]
mod tests;
mod trained;
mod vectors;
mod workers;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use pe_zoo::{PeError, Registry};
use sweep::{process, signals};
use train::host::Build;

use cluster::System;
use out::say;

#[derive(Parser)]
#[command(
    name = "pe-bench",
    version = env!("PE_BENCH_VERSION"),
    about = "Compares position encodings for Transformers on the same tasks with the same training budget",
    after_help = "Start with `pe-bench run quick`: it trains, evaluates and writes a report.",
    after_long_help = help::STATUS_AND_ENVIRONMENT
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// When to use colours.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
}

/// The program's command line.
fn program() -> clap::Command {
    help::arranged(Cli::command())
}

#[derive(Subcommand)]
enum Command {
    /// Trains and evaluates every cell of a suite, and writes a report.
    ///
    /// A cell is one training run: a workload, an encoding and a seed. Finished cells are not run again: run the same
    /// command again to resume an interrupted sweep.
    #[command(
        after_help = "Examples:\n  pe-bench run quick --dry-run\n  pe-bench run quick --encodings 'rope,cope+rope' --seeds 7\n  pe-bench run mine.toml --jobs 1 --threads 2"
    )]
    Run(run::RunArgs),
    /// Evaluates trained cells at other lengths or splits.
    ///
    /// Reads the weights that `run` saved, and trains nothing. Finished cells are not evaluated again: run the same
    /// command again to resume.
    #[command(
        after_help = "Examples:\n  pe-bench eval results/quick --lens 256,512,1024\n  pe-bench eval results/quick --samples 5000 --splits in-distribution"
    )]
    Eval(eval::EvalArgs),
    /// Prints how much of a sweep is done and when it will end.
    ///
    /// Reads a results folder and changes nothing in it. Works on any machine that can read the folder.
    #[command(
        after_help = "Examples:\n  pe-bench status results/contextual\n  pe-bench status results/contextual --watch\n\nExit status 4: some cells have no record yet, or are running."
    )]
    Status(status::StatusArgs),
    /// Writes a Slurm script or Kubernetes manifests for a suite.
    #[command(subcommand)]
    Cluster(System),
    /// Joins, packs or compares the records of results folders.
    #[command(subcommand)]
    Records(RecordsCommand),
    /// Writes the report of one or more results folders.
    #[command(
        after_help = "Examples:\n  pe-bench report results/quick\n  pe-bench report results/* --out page\n  pe-bench report results/quick --out paper --formats tex,svg"
    )]
    Report(report::ReportArgs),
    /// Writes a report on scores from other programs.
    ///
    /// Reads a CSV table of scores with the columns encoding, task, train_len, seed, split, len and score. Writes the
    /// same pages as `report`, with ranks and significance tests.
    #[command(after_help = "Example: pe-bench judge scores.csv --out results/mine")]
    Judge(judge::JudgeArgs),
    /// Prints results as a table for a paper, or BibTeX references.
    ///
    /// The rows are encodings. The columns are splits and lengths.
    #[command(
        after_help = "Examples:\n  pe-bench table results/quick --workloads counting --spread interval\n  pe-bench table results/quick --lens 128 --encodings rope,cope \\\n    --format tex-column\n  pe-bench table results/quick --format bibtex > references.bib"
    )]
    Table(table::TableArgs),
    /// Compares published numbers with numbers in records.
    ///
    /// Each published number gets a verdict, such as `agrees`, `differs`, `other-recipe` or `not-run`.
    #[command(
        after_help = "Example:\n  pe-bench reproduce results/contextual --papers cope --verdicts other-recipe"
    )]
    Reproduce(reproduce::ReproduceArgs),
    /// Compares two encodings seed by seed, from their records.
    #[command(
        after_help = "Examples:\n  pe-bench compare cope rope\n  pe-bench compare cope rope results/quick --tasks counting --slices\n  pe-bench compare cope rope --page results/cope-rope.html"
    )]
    Compare(compare::CompareArgs),
    /// Lists the cells of results folders and their keys.
    #[command(
        after_help = "Examples:\n  pe-bench cells results/quick\n  pe-bench cells results/quick --encodings cope --seeds 0 --json"
    )]
    Cells(cells::CellsArgs),
    /// Writes a page with attention maps of a trained model.
    ///
    /// The page shows the maps, gates and positions for one sample of the model's task.
    ///
    /// Reads the weights that `run` saved.
    #[command(
        after_help = "Examples:\n  pe-bench inspect quick flip-flop cope\n  pe-bench inspect dd59a472 --sample 3 --out page"
    )]
    Inspect(inspect::InspectArgs),
    /// Measures how much attention changes when positions shift.
    ///
    /// Shifts the positions in two ways: by prepending tokens, and by adding an offset to all positions.
    #[command(
        after_help = "Examples:\n  pe-bench stability language shakespeare tape\n  pe-bench stability --pretrained smollm2 --json"
    )]
    Stability(stability::StabilityArgs),
    /// Compares nightly results with an accepted baseline.
    ///
    /// The comparison is a gate. The gate fails if a result is significantly worse than in the baseline, or if a
    /// deterministic cost is higher: parameters, operations, or the allocations or instructions of a training step.
    #[command(
        after_help = "Example:\n  pe-bench nightly results/nightly --baseline results/baseline --history nights\n\nExit status 3: the gate failed."
    )]
    Nightly(nightly::NightlyArgs),
    /// Prints shell completions, or writes them and the manual pages.
    #[command(
        after_help = "Examples:\n  pe-bench completions bash \\\n    > ~/.local/share/bash-completion/completions/pe-bench\n  pe-bench completions --all share"
    )]
    Completions {
        /// Shell to generate the script for.
        #[arg(required_unless_present = "all")]
        shell: Option<completions::Shell>,
        /// Write the scripts of all shells and the manual pages of all commands to this folder, for packaging.
        #[arg(long, value_name = "DIR", conflicts_with = "shell")]
        all: Option<PathBuf>,
    },
    /// Lists encodings, tasks, suites or backends.
    #[command(alias = "ls", after_help = "Examples:\n  pe-bench list\n  pe-bench list encodings")]
    List {
        /// Kind of item to list; default: all kinds, names only.
        kind: Option<Listed>,
        /// Print JSON: an array with an object for each item. Without a kind: an object with one such array for each
        /// kind.
        #[arg(long)]
        json: bool,
    },
    /// Fetches, verifies and tokenizes texts, and fetches models.
    Data {
        #[command(subcommand)]
        command: data::DataCommand,
    },
    /// Writes samples of a task for other programs.
    ///
    /// `run` trains and evaluates on the same samples.
    #[command(
        after_help = "Examples:\n  pe-bench samples counting --set variables=3 --len 64\n  pe-bench samples flip-flop --split sparse --len 256 --count 2000 \\\n    --out sparse.npz"
    )]
    Samples(samples::SamplesArgs),
    /// Prints a suite or an encoding as a starting point for your own.
    #[command(subcommand)]
    New(NewCommand),
    /// Measures time and memory of a training step per encoding.
    #[command(after_help = "Example: pe-bench speed --encodings rope,cope")]
    Speed(speed::SpeedArgs),
    /// Checks encodings with the conformance kit.
    #[command(after_help = "Example: pe-bench conform rope 'cope{max_positions=16}+rope'")]
    Conform(conform::ConformArgs),
    /// Prints reference values for other implementations.
    ///
    /// The values are the inputs, logits, outputs and gradients of an encoding's scalar f64 reference implementation.
    #[command(after_help = "Example: pe-bench vectors 'cope{max_positions=8}+rope' --json")]
    Vectors(vectors::VectorsArgs),
    /// Writes trained weights for PyTorch or Hugging Face Transformers.
    ///
    /// For a model with Llama's architecture and a rotary encoding that Hugging Face Transformers supports, writes a
    /// folder in the format of that library. For any other model, writes a folder for `pe_zoo.torch.load`.
    #[command(
        after_help = "Examples:\n  pe-bench export quick flip-flop cope\n  pe-bench export dd59a472 --out exported"
    )]
    Export(export::ExportArgs),
    /// Explains an encoding (with its results), a task or a suite.
    ///
    /// Prints documentation and defaults. For an encoding, also prints its properties and its results in the suite
    /// `zoo`.
    #[command(
        alias = "show",
        after_help = "Examples:\n  pe-bench explain rope\n  pe-bench explain flip-flop\n  pe-bench explain quick"
    )]
    Explain {
        /// Id of an encoding or task, a combination such as 'cope+rope', or the name of a built-in suite.
        #[arg(value_parser = parsers::Suggested::ALL)]
        name: String,
        /// Print a JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Calculates the FLOPs of a forward pass with each encoding.
    #[command(after_help = "Example: pe-bench flops --config tape-155m")]
    Flops(flops::FlopsArgs),
    /// Evaluates a pretrained model beyond its trained length.
    ///
    /// Modifies the model's rotary encoding (RoPE), or replaces it with other encodings. Finished cells are not run
    /// again: run the same command again to resume.
    #[command(
        after_help = "Example: pe-bench extend smollm2 --lens 8192,16384 --methods as-trained,yarn"
    )]
    Extend(extend::ExtendArgs),
    /// Generates text from a prompt with a pretrained model.
    #[command(
        after_help = "Example: pe-bench generate smollm2 --prompt 'The capital of France is'"
    )]
    Generate(generate::GenerateArgs),
    /// Evaluates a pretrained model on benchmark files.
    #[command(after_help = "Example: pe-bench benchmark smollm2 questions.jsonl --limit 100")]
    Benchmark(benchmark::BenchmarkArgs),
    /// Runs as a process that another command starts.
    #[command(hide = true, subcommand)]
    Worker(HiddenCommand),
}

/// Commands about the records of results folders.
#[derive(Subcommand)]
enum RecordsCommand {
    /// Joins the records of several results folders, with their weights and checkpoints.
    ///
    /// If folders have different results of a cell, reports the differences, and keeps the result in --out or else the
    /// result of the first folder that has one.
    #[command(
        after_help = "Example: pe-bench records merge results/part-1 results/part-2 --out results/all"
    )]
    Merge(merge::MergeArgs),
    /// Packs the records of a results folder into one Parquet file.
    ///
    /// Every command can read this file instead of the record files. Before it trains, `run` writes the record files
    /// back to the folder `cells`.
    #[command(
        after_help = "Example:\n  pe-bench records pack results/zoo --lean --out results/zoo/laptop_2026-11"
    )]
    Pack(pack::PackArgs),
    /// Compares the records of two results folders, ignoring timings and provenance.
    #[command(after_help = "Example: pe-bench records diff results/quick results/quick-again")]
    Diff(diff::DiffArgs),
}

/// Files to start from.
#[derive(Subcommand)]
enum NewCommand {
    /// Prints an annotated example suite as a starting point for your own.
    #[command(
        after_help = "Example: pe-bench new suite mine > mine.toml && pe-bench run mine.toml"
    )]
    Suite {
        /// Name of the suite.
        name: String,
    },
    /// Prints the source of an encoding as a starting point for your own. The printed encoding passes the conformance
    /// kit.
    #[command(after_help = "Example: pe-bench new encoding my-bias > pe-zoo/src/zoo/my_bias.rs")]
    Encoding {
        /// Id of the encoding: lower-case letters, digits and `-`.
        id: String,
    },
}

/// Work of a process that another command starts.
#[derive(Subcommand)]
enum HiddenCommand {
    /// Runs the cell described on standard input, for `run`.
    Cell,
    /// Measures training steps and prints a row, for `speed`.
    Speed {
        /// Index of the device.
        device: usize,
        /// The request as JSON.
        request: String,
    },
    /// Runs training steps of a record's cell on one thread, for `nightly --count`.
    Steps {
        /// Path of the record.
        record: PathBuf,
        /// Number of training steps.
        count: usize,
    },
}

/// Exit status of a sweep that leaves cells open, and of the status of one with open cells.
const CELLS_OPEN: u8 = 4;

/// Kind of item that `list` prints.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Listed {
    /// Position encodings.
    Encodings,
    /// Tasks.
    Tasks,
    /// Built-in suites.
    Suites,
    /// Backends and whether this build includes them.
    Backends,
}

/// Runs the command line of this process with the encodings of a registry.
///
/// This is the main function of a program with encodings of its own:
///
/// ```no_run
/// # use pe_zoo::Registry;
/// fn main() -> std::process::ExitCode {
///     // Registry::builtin().with::<MyEncoding>() adds one.
///     pe_bench::main_with(Ok(Registry::builtin()))
/// }
/// ```
pub fn main_with(registry: Result<Registry, PeError>) -> ExitCode {
    if std::env::args_os().len() == 1 {
        say(help::START);
        return ExitCode::SUCCESS;
    }
    let parsed = || {
        out::refuse_other_than_utf8();
        let parsed = parse(std::env::args_os()).unwrap_or_else(|error| out::refuse(&error));
        out::set_colors(parsed.color);
        parsed
    };
    match set_up(registry).and_then(|()| dispatch(parsed().command)) {
        Ok(code) if code == ExitCode::SUCCESS && out::has_failed() => ExitCode::FAILURE,
        Ok(code) => code,
        Err(error) => {
            out::complain(&format!("error: {}", out::chain(&error)));
            ExitCode::FAILURE
        }
    }
}

/// Parses a command line that starts with the program's name, without running it.
///
/// # Errors
///
/// The error of clap for an unknown command or option, a missing argument or an invalid value. A request for help or
/// for the version is an error too.
pub fn parses<I>(arguments: I) -> Result<(), clap::Error>
where
    I: IntoIterator<Item: Into<std::ffi::OsString> + Clone>,
{
    parse(arguments).map(drop)
}

/// Parses a command line and refuses options without effect.
fn parse<I>(arguments: I) -> Result<Cli, clap::Error>
where
    I: IntoIterator<Item: Into<std::ffi::OsString> + Clone>,
{
    let mut parser = program();
    let matches = parser
        .try_get_matches_from_mut(arguments)
        .map_err(|error| help::with_nearest(&parser, error))?;
    conditions::check(&mut parser, &matches)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut parser))
}

/// Sources and compiler that this program was built from.
pub const BUILD: Build = Build {
    commit: env!("PE_BENCH_COMMIT"),
    dirty: matches!(env!("PE_BENCH_DIRTY").as_bytes(), b"true"),
    rustc: env!("PE_BENCH_RUSTC"),
    burn: env!("PE_BENCH_BURN"),
};

/// Prepares this process for any command.
fn set_up(registry: Result<Registry, PeError>) -> anyhow::Result<()> {
    train::host::set_build(BUILD);
    train::encodings::register(registry?).map_err(|_| {
        anyhow::anyhow!("the registry of encodings is already in use and cannot be replaced")
    })?;
    out::print_panics();
    process::start_threads()?;
    if let Err(error) = signals::survive_file_size_limit() {
        out::complain(&format!("cannot install a handler for SIGXFSZ: {error}"));
    }
    process::end_with_parent().context("cannot start a thread that reads standard input")
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(arguments) => return run::run(&arguments),
        Command::Eval(arguments) => return eval::eval(&arguments),
        Command::Status(arguments) => return status::status(&arguments),
        Command::Cluster(System::Slurm(arguments)) => cluster::slurm(&arguments)?,
        Command::Cluster(System::Kubernetes(arguments)) => cluster::kubernetes(&arguments)?,
        Command::Records(RecordsCommand::Merge(arguments)) => return merge::merge(&arguments),
        Command::Records(RecordsCommand::Pack(arguments)) => pack::run(&arguments)?,
        Command::Records(RecordsCommand::Diff(arguments)) => return diff::diff(&arguments),
        Command::Report(arguments) => report::report(&arguments)?,
        Command::Judge(arguments) => judge::run(&arguments)?,
        Command::Table(arguments) => table::run(&arguments)?,
        Command::Reproduce(arguments) => reproduce::reproduce(&arguments)?,
        Command::Compare(arguments) => compare::run(&arguments)?,
        Command::Cells(arguments) => cells::run(&arguments)?,
        Command::Stability(arguments) => stability::run(&arguments)?,
        Command::Inspect(arguments) => inspect::run(&arguments)?,
        Command::Nightly(arguments) => return nightly::run(&arguments),
        Command::Completions { shell, all } => completions::run(shell, all.as_deref())?,
        Command::List { kind, json } => list::list(kind, json),
        Command::Data { command } => data::data(command)?,
        Command::Samples(arguments) => samples::run(&arguments)?,
        Command::New(NewCommand::Suite { name }) => say(&new::suite(&name)?),
        Command::New(NewCommand::Encoding { id }) => say(&new::encoding(&id)?),
        Command::Speed(arguments) => speed::speed(&arguments)?,
        Command::Conform(arguments) => return conform::conform(&arguments),
        Command::Explain { name, json } => explain::explain(&name, json)?,
        Command::Vectors(arguments) => vectors::run(&arguments)?,
        Command::Export(arguments) => export::run(&arguments)?,
        Command::Flops(arguments) => flops::flops(&arguments)?,
        Command::Extend(arguments) => return extend::extend(&arguments),
        Command::Generate(arguments) => return generate::run(&arguments),
        Command::Benchmark(arguments) => benchmark::benchmark(&arguments)?,
        Command::Worker(HiddenCommand::Cell) => {
            sweep::worker_main(std::io::BufReader::new(std::io::stdin()), std::io::stdout())?;
        }
        Command::Worker(HiddenCommand::Speed { device, request }) => speed::here(device, &request)?,
        Command::Worker(HiddenCommand::Steps { record, count }) => count::steps(&record, count)?,
    }
    Ok(ExitCode::SUCCESS)
}
