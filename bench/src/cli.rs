//! The command line: `pe-bench`.

mod benchmark;
mod compare;
mod completions;
mod conform;
mod count;
mod data;
mod diff_records;
mod docs;
mod explain;
mod extend;
mod fit;
mod flops;
mod folders;
mod generate;
mod inspect;
mod list;
mod nightly;
mod out;
mod pretrained;
mod report;
mod reproduce;
mod run;
mod speed;
mod stability;
mod stop;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::backend::EngineChoice;
use crate::{process, signals};
use clap::{Args, Parser, Subcommand, ValueEnum};
use pe_zoo::{PeError, Registry};

use out::say;

#[derive(Parser)]
#[command(
    name = "pe-bench",
    version,
    about = "Races position encodings for Transformers on the same tasks under the same budget",
    after_help = "Start with `pe-bench run quick`: it trains, evaluates and writes a report.\n\n\
                  Exit status:\n  \
                  0    done\n  \
                  1    an error, or cells or checks that failed; it is said which\n  \
                  2    a command line that cannot be read\n  \
                  3    a gate does not let pass (`nightly`)\n  \
                  129  stopped by SIGHUP; what is finished is kept, run the same command to go on\n  \
                  130  stopped by Ctrl-C, likewise\n  \
                  138  stopped by SIGUSR1 (Linux), likewise\n  \
                  143  stopped by SIGTERM, likewise"
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
    #[command(
        after_help = "Examples:\n  pe-bench run quick --dry-run\n  pe-bench run quick --encodings 'rope,cope+rope' --seed 7\n  pe-bench run mine.toml --jobs 1 --threads 2"
    )]
    Run(RunArgs),
    /// Writes the report of one or more result folders again.
    #[command(
        after_help = "Examples:\n  pe-bench report results/quick\n  pe-bench report results/* --out page\n  pe-bench report results/quick --out paper --formats tex,svg"
    )]
    Report(report::ReportArgs),
    /// Compares the records of two result folders, all but timings and provenance.
    #[command(after_help = "Example: pe-bench diff-records results/quick results/quick-again")]
    DiffRecords(diff_records::DiffArgs),
    /// Sets published numbers beside ours: agrees, differs, other recipe, not run.
    #[command(
        after_help = "Example: pe-bench reproduce results/contextual --paper cope --verdict other-recipe"
    )]
    Reproduce(reproduce::ReproduceArgs),
    /// Compares two encodings seed by seed, from their records.
    #[command(
        after_help = "Examples:\n  pe-bench compare cope rope\n  pe-bench compare cope rope results/quick --task counting --slices\n  pe-bench compare cope rope --page results/cope-rope.html"
    )]
    Compare(compare::CompareArgs),
    /// Shows the inside of a trained model: attention maps, gates and positions on a sample of its task.
    ///
    /// Records hold no weights, so the cell is trained again first.
    #[command(
        after_help = "Examples:\n  pe-bench inspect quick flip-flop cope\n  pe-bench inspect dd59a472 --sample 3 --out page"
    )]
    Inspect(inspect::InspectArgs),
    /// Measures how much attention changes when all positions move: with tokens put before, with an offset.
    #[command(
        after_help = "Examples:\n  pe-bench stability language shakespeare tape\n  pe-bench stability --pretrained smollm2 --json"
    )]
    Stability(stability::StabilityArgs),
    /// Holds a night's results against the accepted baseline: a significant loss of quality or a dearer model fails.
    #[command(
        after_help = "Example: pe-bench nightly results/nightly --baseline results/baseline --history nights\n\nExit status 3: the gate does not take the night."
    )]
    Nightly(nightly::NightlyArgs),
    /// Counts the instructions of a training step of each encoding of a results folder, and keeps them in its records.
    ///
    /// Needs valgrind. Of each encoding the first workload and seed, unless you name a workload.
    #[command(after_help = "Example: pe-bench count results/nightly")]
    Count(count::CountArgs),
    /// Prints a script that completes commands and options in a shell.
    #[command(
        after_help = "Example: pe-bench completions bash > ~/.local/share/bash-completion/completions/pe-bench"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Lists encodings, tasks, suites or backends.
    #[command(after_help = "Example: pe-bench list encodings")]
    List {
        /// Kind of item to list.
        what: What,
    },
    /// Fetches and verifies texts for language modelling.
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
    #[command(after_help = "Example: pe-bench speed --encodings rope,cope")]
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
    #[command(after_help = "Example: pe-bench flops --config tape-155m")]
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
    #[command(after_help = "Example: pe-bench benchmark smollm2 questions.jsonl --limit 100")]
    Benchmark(benchmark::BenchmarkArgs),
    /// Models that were trained elsewhere.
    Pretrained {
        #[command(subcommand)]
        command: pretrained::PretrainedCommand,
    },
    /// Writes the generated tables of the guide and the example report, or checks them.
    #[command(after_help = "Example: pe-bench docs --check")]
    Docs {
        /// Fail if something is not what would be written.
        #[arg(long)]
        check: bool,
        /// The project's folder.
        #[arg(long, default_value = ".")]
        root: PathBuf,
    },
    /// Runs one cell that is described on standard input; started by `run`.
    #[command(hide = true)]
    Worker,
    /// Some training steps of a record's cell on one thread; `count` starts these.
    #[command(hide = true)]
    Steps {
        /// The record's file.
        record: PathBuf,
        /// Number of training steps.
        count: usize,
    },
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
    /// Attention engine to use.
    #[arg(long, value_enum, default_value_t)]
    engine: EngineChoice,
    /// MatmulPrecision of linear maps: f32, tf32 or bf16; default: as the suite says, f32 unless it does.
    #[arg(long, value_parser = crate::backend::named_precision)]
    precision: Option<pe_zoo::ops::MatmulPrecision>,
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

/// Runs the command line of this process with the encodings of a registry.
///
/// The main function of a program with encodings of its own:
///
/// ```no_run
/// # use pe_zoo::Registry;
/// fn main() -> std::process::ExitCode {
///     // Registry::builtin().with::<MyEncoding>() adds one.
///     pe_bench::cli::main_with(Ok(Registry::builtin()))
/// }
/// ```
pub fn main_with(registry: Result<Registry, PeError>) -> ExitCode {
    let registered = registry.map_err(anyhow::Error::from).and_then(|registry| {
        let taken = |_| anyhow::anyhow!("the registry of this process is in use already");
        crate::encodings::register(registry).map_err(taken)
    });
    if let Err(error) = registered {
        out::complain(&format!("error: {error:#}"));
        return ExitCode::FAILURE;
    }
    main()
}

/// Parses a command line, the program's name first, without running it.
///
/// # Errors
/// What clap says of an unknown command or option, a missing argument or a value that cannot be read. A request for help or
/// for the version is an error too.
pub fn parses<I>(arguments: I) -> Result<(), clap::Error>
where
    I: IntoIterator<Item: Into<std::ffi::OsString> + Clone>,
{
    Cli::try_parse_from(arguments).map(drop)
}

fn main() -> ExitCode {
    if let Err(error) = signals::survive_file_size_limit() {
        out::complain(&format!("the handler for SIGXFSZ cannot be installed: {error}"));
    }
    if let Err(error) = process::end_with_parent() {
        out::complain(&format!("error: standard input cannot be watched: {error}"));
        return ExitCode::FAILURE;
    }
    match dispatch(Cli::parse().command) {
        Ok(code) if code == ExitCode::SUCCESS && out::has_failed() => ExitCode::FAILURE,
        Ok(code) => code,
        Err(error) => {
            out::complain(&format!("error: {}", out::chain(&error)));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(arguments) => return run::run(&arguments),
        Command::Report(arguments) => report::report(&arguments)?,
        Command::DiffRecords(arguments) => return diff_records::diff(&arguments),
        Command::Reproduce(arguments) => reproduce::reproduce(&arguments)?,
        Command::Compare(arguments) => compare::run(&arguments)?,
        Command::Stability(arguments) => stability::run(&arguments)?,
        Command::Inspect(arguments) => inspect::run(&arguments)?,
        Command::Nightly(arguments) => return nightly::run(&arguments),
        Command::Count(arguments) => count::run(&arguments)?,
        Command::Completions { shell } => completions::completions(shell),
        Command::List { what } => list::list(what),
        Command::Data { command } => data::data(command)?,
        Command::NewSuite { name } => say(&new_suite(&name)?),
        Command::Speed(arguments) => speed::speed(&arguments)?,
        Command::Conform(arguments) => return conform::conform(&arguments),
        Command::Explain { name } => explain::explain(&name)?,
        Command::Flops(arguments) => flops::flops(&arguments)?,
        Command::Extend(arguments) => return extend::extend(&arguments),
        Command::Generate(arguments) => return generate::run(&arguments),
        Command::Benchmark(arguments) => benchmark::benchmark(&arguments)?,
        Command::Pretrained { command } => pretrained::pretrained(&command)?,
        Command::Docs { check, root } => docs::docs(&root, check)?,
        Command::Steps { record, count } => count::steps(&record, count)?,
        Command::Worker => {
            crate::sweep::worker_main(std::io::BufReader::new(std::io::stdin()), std::io::stdout())
                .map_err(anyhow::Error::msg)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn new_suite(name: &str) -> anyhow::Result<String> {
    crate::suite::check_name(name).map_err(|reason| anyhow::anyhow!("suite name {reason}"))?;
    Ok(include_str!("../suites/example.toml.in").replace("{name}", name).trim_end().to_owned())
}
