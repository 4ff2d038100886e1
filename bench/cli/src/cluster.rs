//! `pe-bench cluster`: a batch script for Slurm, or manifests for Kubernetes, that run a suite.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use sweep::claim::LockProbe;
use sweep::cluster::{
    Field, KUBERNETES, SLURM, command_line, object_name, quoted, render, sbatch_value,
};
use train::suite::{self, BUILT_IN};

use super::out::{complain, say};
use super::workers::{self, Division, WorkersArgs, utf8};

/// Folder at which a suite that is not built in is mounted.
const SUITE_FOLDER: &str = "/etc/pe-bench";

/// Largest text of a suite in bytes; Kubernetes limits a ConfigMap to 1 MiB.
const MOST_SUITE: usize = 900_000;

/// Systems that start the workers of a sweep.
#[derive(Subcommand, Clone)]
pub(super) enum System {
    /// Writes a Slurm batch script that runs a suite as an array of workers, and submits it with --submit.
    ///
    /// Workers continue from their checkpoints after a time limit, a preemption or the loss of a node; the report follows them.
    #[command(
        after_help = "Examples:\n  pe-bench cluster slurm contextual --max 8 --sbatch --time=4:00:00 --submit\n  pe-bench cluster slurm gpt2-124m --gres gpu:1 --setup 'module load cuda' -- --backend cuda --keep-weights last"
    )]
    Slurm(SlurmArgs),
    /// Prints Kubernetes manifests that run a suite as an Indexed Job of workers, and a Job that writes the report.
    #[command(
        after_help = "Example: pe-bench cluster kubernetes contextual --image registry.example/pe-bench --volume results > contextual.yaml"
    )]
    Kubernetes(KubernetesArgs),
}

/// Arguments of `cluster slurm`.
#[derive(Args, Clone)]
pub(super) struct SlurmArgs {
    #[command(flatten)]
    workers: WorkersArgs,
    /// Generic resources of a worker, such as gpu:1.
    #[arg(long, value_name = "LIST", value_parser = sbatch_value)]
    gres: Option<String>,
    /// Further option of sbatch for workers and report, such as --time=4:00:00; may be repeated.
    #[arg(long = "sbatch", value_name = "OPTION", allow_hyphen_values = true, value_parser = option)]
    options: Vec<String>,
    /// Words that start `pe-bench` in the shell, such as 'apptainer exec --nv pe.sif pe-bench'; default: this program.
    #[arg(long, value_name = "CODE")]
    program: Option<String>,
    /// Shell code before every command, such as 'module load cuda'.
    #[arg(long, value_name = "CODE")]
    setup: Option<String>,
    /// Submit the script: the workers, and the report after them.
    #[arg(long)]
    submit: bool,
}

/// Arguments of `cluster kubernetes`.
#[derive(Args, Clone)]
pub(super) struct KubernetesArgs {
    #[command(flatten)]
    workers: WorkersArgs,
    /// Image with `pe-bench` and a shell, such as that of the repository's Dockerfile.
    #[arg(long, value_name = "IMAGE", value_parser = word)]
    image: String,
    /// Name of the persistent volume claim for the results; all workers write to it (ReadWriteMany).
    #[arg(long, value_name = "CLAIM", value_parser = object_name)]
    volume: String,
    /// Folder at which the volume is mounted.
    #[arg(long, value_name = "DIR", default_value = "/data/results", value_parser = folder)]
    mount: String,
    /// Name of the job; default: that of the suite.
    #[arg(long, value_parser = object_name)]
    name: Option<String>,
    /// Namespace of the objects; default: that of the user's context.
    #[arg(long, value_parser = object_name)]
    namespace: Option<String>,
    /// NVIDIA GPUs of a worker.
    #[arg(long, value_name = "N", default_value_t = 0)]
    gpus: usize,
    /// Memory of a worker, such as 4Gi; default: no limit.
    #[arg(long, value_name = "SIZE", value_parser = word)]
    memory: Option<String>,
}

/// Parses a long option of `sbatch` with its value.
fn option(text: &str) -> Result<String, String> {
    if !text.starts_with("--") {
        return Err(format!(
            "`{text}` is not a long option of sbatch, expected one such as --account=lab"
        ));
    }
    sbatch_value(text)
}

/// Parses a text without blanks and control characters.
fn word(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(format!("`{text}`, expected a text without blanks"));
    }
    Ok(text.to_owned())
}

/// Parses an absolute path.
fn folder(text: &str) -> Result<String, String> {
    let path = text.trim_end_matches('/');
    if !path.starts_with('/') || path.contains(|c: char| c == ':' || c.is_control()) {
        return Err(format!(
            "`{text}`, expected an absolute path without `:` below `/`, such as /data/results"
        ));
    }
    Ok(path.to_owned())
}

pub(super) fn cluster(system: &System) -> anyhow::Result<()> {
    match system {
        System::Slurm(arguments) => slurm(arguments),
        System::Kubernetes(arguments) => kubernetes(arguments),
    }
}

/// Words that give a worker its share of the cells, in a shell.
fn share(by_shard: bool, shard: &str, worker: &str, count: usize) -> String {
    if by_shard { format!("--shard \"{shard}/{count}\"") } else { format!("--worker \"{worker}\"") }
}

fn one(name: &str, text: impl Into<String>) -> Field<'_> {
    Field { name, texts: vec![text.into()] }
}

/// First comment of a script: the command that wrote it, without its program.
fn written_by() -> String {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    format!("Written by: pe-bench {}", command_line(&words.collect::<Vec<_>>()))
}

fn slurm(arguments: &SlurmArgs) -> anyhow::Result<()> {
    let workers = workers::plan(&arguments.workers, true, None)?;
    let folder = std::env::current_dir().context("the current folder is not known")?;
    let logs = std::path::absolute(&workers.out)?.join("slurm");
    let logs = sbatch_value(utf8(&logs)?).map_err(|error| {
        anyhow::anyhow!(
            "the results folder is part of an option of sbatch: {error}; use --out after `--`"
        )
    })?;
    std::fs::create_dir_all(&logs).with_context(|| format!("cannot create {logs}"))?;
    let program = if let Some(code) = &arguments.program {
        code.clone()
    } else {
        let path = std::env::current_exe().context("the path of this program is not known")?;
        quoted(utf8(&path)?)
    };
    let (name, count) = (&workers.suite, workers.count);
    let mut options = vec![
        format!("--job-name={name}"),
        format!("--array=1-{count}"),
        format!("--cpus-per-task={}", workers.cpus),
        format!("--output={logs}/%A_%a.log"),
    ];
    options.extend(arguments.gres.iter().map(|gres| format!("--gres={gres}")));
    options.extend(arguments.options.iter().cloned());
    let mut report_options = arguments.options.clone();
    report_options.extend([
        format!("--job-name={name}-report"),
        "--cpus-per-task=2".to_owned(),
        format!("--output={logs}/report_%j.log"),
    ]);
    let by_shard = by_shard(arguments.workers.divide, &workers.out)?;
    let share = share(by_shard, "${SLURM_ARRAY_TASK_ID:-0}", "${SLURM_ARRAY_TASK_ID:-0}", count);
    let path = format!("{logs}/{name}.sh");
    let script = render(
        SLURM,
        &[
            Field { name: "about", texts: vec![written_by(), workers.about.clone()] },
            Field { name: "option", texts: options },
            one("script", quoted(&path)),
            one("report_options", command_line(&report_options)),
            one("program", program),
            one("run", format!("{} {share}", command_line(&workers.run))),
            one("report", command_line(&["report", utf8(&workers.out)?])),
            one("folder", quoted(utf8(&folder)?)),
            Field { name: "setup", texts: arguments.setup.iter().cloned().collect() },
        ],
    );
    std::fs::write(&path, script).with_context(|| format!("cannot write {path}"))?;
    say(&workers.about);
    say(&format!("Script: {path}"));
    if !arguments.submit {
        say(&format!("Submit it with: bash {} submit", quoted(&path)));
        return Ok(());
    }
    let status =
        Command::new("bash").args([&path, "submit"]).status().context("cannot start bash")?;
    anyhow::ensure!(
        status.success(),
        "`bash {path} submit` ended with {status}; nothing was submitted unless a job is named above"
    );
    Ok(())
}

/// Whether workers have shards: as asked for, or because locks do not hold in the results folder.
fn by_shard(divide: Option<Division>, out: &Path) -> anyhow::Result<bool> {
    if let Some(division) = divide {
        return Ok(division == Division::Shards);
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

fn kubernetes(arguments: &KubernetesArgs) -> anyhow::Result<()> {
    let mut workers = workers::plan(&arguments.workers, false, Some(&arguments.mount))?;
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => object_name(&workers.suite)
            .map_err(|error| anyhow::anyhow!("the suite's name: {error}; use --name"))?,
    };
    let suite_name = format!("{name}-suite");
    let mut suite_map = None;
    let source = &arguments.workers.suite;
    if !BUILT_IN.iter().any(|(built_in, _)| built_in == source) {
        let (_, text) = suite::text(source)?;
        anyhow::ensure!(
            text.len() <= MOST_SUITE,
            "{source} has {} bytes, a ConfigMap takes {MOST_SUITE}; put it on the volume and name it by its path there",
            text.len()
        );
        let file = format!("{}.toml", workers.suite);
        // The suite is the second word, after `run`.
        workers.run[1] = format!("{SUITE_FOLDER}/{file}");
        let mut map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { file: text } });
        map["metadata"]["name"] = json!(suite_name);
        if let Some(namespace) = &arguments.namespace {
            map["metadata"]["namespace"] = json!(namespace);
        }
        suite_map = Some(map);
    }
    if let Some(word) = workers.run.iter().find(|word| word.contains(char::is_control)) {
        anyhow::bail!(
            "`{word}`: an option of a worker has a control character, which its shell would not keep"
        );
    }
    let out = workers.out.to_str().filter(|_| workers.out.starts_with(&arguments.mount));
    let out = out.map(quoted).with_context(|| {
        let (out, mount) = (workers.out.display(), &arguments.mount);
        format!("--out {out} is not below {mount}, where the volume is mounted")
    })?;
    let by_shard = arguments.workers.divide == Some(Division::Shards);
    let index = "$JOB_COMPLETION_INDEX";
    let share = share(by_shard, "$((JOB_COMPLETION_INDEX + 1))", index, workers.count);
    let work = shell_command(&format!("exec pe-bench {} {share}", command_line(&workers.run)));
    // The report begins when every cell has a record.
    let report = shell_command(&format!(
        "pe-bench status {out} --watch --every 30; exec pe-bench report {out}"
    ));
    let mut resources = json!({ "requests": { "cpu": workers.cpus } });
    if let Some(memory) = &arguments.memory {
        resources["requests"]["memory"] = json!(memory);
        resources["limits"]["memory"] = json!(memory);
    }
    if arguments.gpus > 0 {
        resources["limits"]["nvidia.com/gpu"] = json!(arguments.gpus);
    }
    let of_suite = |value: Value| suite_map.iter().map(|_| value.to_string()).collect();
    let manifests = render(
        KUBERNETES,
        &[
            Field { name: "about", texts: vec![written_by(), workers.about.clone()] },
            Field {
                name: "suite",
                texts: suite_map.iter().map(|map| format!("---\n{map}")).collect(),
            },
            one("name", json!(name).to_string()),
            one("report_name", json!(format!("{name}-report")).to_string()),
            Field {
                name: "namespace",
                texts: arguments.namespace.iter().map(|name| json!(name).to_string()).collect(),
            },
            one("workers", workers.count.to_string()),
            one("image", json!(arguments.image).to_string()),
            one("work", work),
            one("report", report),
            one("resources", resources.to_string()),
            one("report_resources", json!({ "requests": { "cpu": 1 } }).to_string()),
            one("mount", json!(arguments.mount).to_string()),
            one("volume", json!(arguments.volume).to_string()),
            Field {
                name: "suite_mount",
                texts: of_suite(
                    json!({ "name": "suite", "mountPath": SUITE_FOLDER, "readOnly": true }),
                ),
            },
            Field {
                name: "suite_volume",
                texts: of_suite(json!({ "name": "suite", "configMap": { "name": suite_name } })),
            },
        ],
    );
    say(manifests.trim_end());
    Ok(())
}

/// A line of shell code as a command in JSON, which is YAML. Kubernetes replaces `$(NAME)`, which `$$(NAME)` prevents.
fn shell_command(line: &str) -> String {
    json!(["sh", "-c", line.replace("$(", "$$(")]).to_string()
}
