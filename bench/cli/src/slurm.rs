//! `pe-bench slurm`: a batch script that runs a suite on a Slurm cluster.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use clap::Args;

use super::out::{complain, counted, say};
use super::run::clock;
use super::workers::{self, Division, Workers, WorkersArgs};
use sweep::claim::LockProbe;
use sweep::cluster::slurm::{
    self, BatchScript, MOST_TASKS, SHORTEST_SECONDS, SIGNAL_SECONDS, TimeLimit,
};
use train::experiment::budget::bytes_text;

/// Shortest and longest time limits that are asked for without --time, in seconds.
const SECONDS: [f64; 2] = [900.0, 86_400.0];

/// Restarts of a task beside those that its work needs.
const SPARE_RESTARTS: u64 = 20;

/// Arguments of `slurm`.
#[derive(Args, Clone)]
pub(super) struct SlurmArgs {
    #[command(flatten)]
    workers: WorkersArgs,
    /// Time limit of a worker, in a form of Slurm such as 4:00:00; default: from estimates, at most a day.
    #[arg(long, value_name = "LIMIT")]
    time: Option<TimeLimit>,
    /// Generic resources of a worker, such as gpu:1.
    #[arg(long, value_name = "LIST", value_parser = slurm::value)]
    gres: Option<String>,
    /// Partition of workers and report.
    #[arg(long, value_name = "NAME", value_parser = slurm::value)]
    partition: Option<String>,
    /// Further option of sbatch for workers and report, such as --account=lab; may be repeated.
    #[arg(long = "sbatch", value_name = "OPTION", allow_hyphen_values = true, value_parser = option)]
    options: Vec<String>,
    /// Image in which `apptainer exec` starts `pe-bench`; default: this program, without a container.
    #[arg(long, value_name = "IMAGE")]
    container: Option<String>,
    /// Shell code before every command, such as 'module load cuda'.
    #[arg(long, value_name = "CODE")]
    setup: Option<String>,
    /// Submit the script: the workers, and the report after them.
    #[arg(long)]
    submit: bool,
}

/// Parses an option of `sbatch` with its value.
fn option(text: &str) -> Result<String, String> {
    if !text.starts_with("--") {
        return Err(format!(
            "`{text}` is not a long option of sbatch, expected one such as --account=lab"
        ));
    }
    slurm::value(text)
}

pub(super) fn slurm(arguments: &SlurmArgs) -> anyhow::Result<()> {
    let workers = workers::plan(&arguments.workers, true, None)?;
    let folder = std::env::current_dir().context("the current folder is not known")?;
    let logs = absolute(&workers.out)?.join("slurm");
    let logs = slurm::value(text_of(&logs)?).map_err(|error| {
        anyhow::anyhow!(
            "the results folder is part of an option of sbatch: {error}; use --out after `--`"
        )
    })?;
    std::fs::create_dir_all(&logs).with_context(|| format!("cannot create {logs}"))?;
    let by_shard = by_shard(arguments.workers.divide, &workers.out)?;
    let path = format!("{logs}/{}.sh", workers.suite);
    let script = script(arguments, &workers, &path, logs, text_of(&folder)?.to_owned(), by_shard)?;
    std::fs::write(&path, script.to_string()).with_context(|| format!("cannot write {path}"))?;
    for line in &script.about[1..] {
        say(line);
    }
    say(&format!("Script: {path}"));
    if arguments.submit {
        return submit(&path);
    }
    say(&format!("Submit it with: bash {} submit", sweep::cluster::shell::quoted(&path)));
    Ok(())
}

fn text_of(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| {
        format!("{}: not UTF-8, expected a path that a script can contain", path.display())
    })
}

/// Whether workers have shards: as asked for, or because locks do not hold in the results folder.
fn by_shard(asked: Option<Division>, out: &Path) -> anyhow::Result<bool> {
    if let Some(asked) = asked {
        return Ok(asked == Division::Shards);
    }
    Ok(match LockProbe::of(out)? {
        LockProbe::Holds => false,
        LockProbe::OwnDisk { kind } => {
            complain(&format!(
                "note: {} is on a file system of the kind {kind}, which other machines usually do not see; on a cluster use a \
                 shared folder",
                out.display()
            ));
            false
        }
        LockProbe::Fails { reason } => {
            complain(&format!(
                "note: each worker gets its own share of the cells, because locks do not hold between machines: {reason}; \
                 --divide claims overrides this"
            ));
            true
        }
    })
}

fn script(
    arguments: &SlurmArgs,
    workers: &Workers,
    path: &str,
    logs: String,
    folder: String,
    by_shard: bool,
) -> anyhow::Result<BatchScript> {
    let tasks = workers.count.min(most_tasks());
    if tasks < workers.count {
        complain(&format!(
            "note: {tasks} workers instead of {}, the most that an array has on this cluster (MaxArraySize)",
            workers.count
        ));
    }
    let each = workers.seconds_each(tasks);
    let asked = (each + SHORTEST_SECONDS as f64).clamp(SECONDS[0], SECONDS[1]);
    let time = arguments.time.clone().unwrap_or_else(|| TimeLimit::of_seconds(asked));
    // The work of a task until its time limit; what a start and a resumption cost is in the spare restarts.
    let between = (time.seconds - SIGNAL_SECONDS) as f64;
    let restarts = SPARE_RESTARTS + 2 * (each / between).ceil().min(1e6) as u64;
    let own = arguments.partition.iter().map(|name| format!("--partition={name}"));
    let options = own.chain(arguments.options.iter().cloned()).collect();
    let results = text_of(&workers.out)?.to_owned();
    let about = vec![
        format!("Written by: {}", workers::command_line()),
        format!(
            "{}: {} for {}, by {}",
            workers.suite,
            counted(tasks, "worker"),
            counted(workers.cells, "cell"),
            if by_shard { "shards" } else { "claims" }
        ),
        format!(
            "estimated: {} of training in total, one cell at a time; asked for: {time} and {} for each worker",
            clock(workers.seconds),
            bytes_text(workers.memory_bytes)
        ),
        format!(
            "at most {restarts} restarts of a worker; results: {}",
            sweep::cluster::shell::quoted(&results)
        ),
    ];
    Ok(BatchScript {
        name: workers.suite.clone(),
        about,
        path: path.to_owned(),
        logs,
        program: program(arguments, &folder, &workers.out)?,
        folder,
        tasks,
        time,
        cpus: workers.cpus,
        memory_bytes: workers.memory_bytes,
        gres: arguments.gres.clone(),
        options,
        setup: arguments.setup.clone(),
        run: workers.run.clone(),
        by_shard,
        report: vec!["report".to_owned(), results],
        restarts,
    })
}

/// Command that starts `pe-bench`: in the container, or this program.
fn program(arguments: &SlurmArgs, folder: &str, out: &Path) -> anyhow::Result<Vec<String>> {
    let Some(image) = &arguments.container else {
        let own: PathBuf =
            std::env::current_exe().context("the path of this program is not known")?;
        return Ok(vec![text_of(&own)?.to_owned()]);
    };
    let bound = bound(folder, out)?;
    let mut words = vec!["apptainer", "exec"];
    words.extend(bound.iter().flat_map(|folder| ["--bind", folder.as_str()]));
    if arguments.gres.as_ref().is_some_and(|gres| gres.contains("gpu")) {
        words.push("--nv");
    }
    words.extend([image.as_str(), "pe-bench"]);
    Ok(words.into_iter().map(str::to_owned).collect())
}

/// Absolute form of a path.
fn absolute(path: &Path) -> Result<PathBuf, tasks::FileError> {
    std::path::absolute(path).map_err(tasks::FileError::of("find", path))
}

/// Folders that a container must see: the current one, the results and the cache, without those inside another one.
fn bound(folder: &str, out: &Path) -> anyhow::Result<Vec<String>> {
    let mut bound = Vec::<String>::new();
    let cache = Some(tasks::corpus::cache_dir()).filter(|cache| cache.is_dir());
    for path in [PathBuf::from(folder), out.to_owned()].into_iter().chain(cache) {
        let path = absolute(&path)?;
        if bound.iter().any(|outer| path.starts_with(outer)) {
            continue;
        }
        let text = text_of(&path)?;
        anyhow::ensure!(
            !text.contains([':', ',']),
            "{text}: apptainer cannot bind a folder with `:` or `,` in its name; use another folder"
        );
        bound.push(text.to_owned());
    }
    Ok(bound)
}

/// Largest number of array tasks of this cluster; Slurm's default where it cannot be asked.
fn most_tasks() -> usize {
    let config = Command::new("scontrol").args(["show", "config"]).output();
    let text = config.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    slurm::most_tasks(&text.unwrap_or_default()).unwrap_or(MOST_TASKS)
}

/// Runs the script's own submission.
fn submit(path: &str) -> anyhow::Result<()> {
    let output =
        Command::new("bash").args([path, "submit"]).output().context("cannot start bash")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    for line in said.lines() {
        say(line);
    }
    for line in complained.lines() {
        complain(line);
    }
    anyhow::ensure!(
        output.status.success(),
        "`bash {path} submit` ended with {}; nothing was submitted unless a job is named above",
        output.status
    );
    Ok(())
}
