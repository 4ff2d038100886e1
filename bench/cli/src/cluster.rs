//! `pe-bench cluster`: a batch script for Slurm, or manifests for Kubernetes, that run a suite.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::json;

use sweep::cluster::{KUBERNETES, SLURM, command_line, quoted, render, sbatch_value};
use train::suite;

use super::out::say;
use super::workers::{self, WorkersArgs, utf8};

/// Folder at which the suite is mounted.
const SUITE_FOLDER: &str = "/etc/pe-bench";

/// Systems that start the workers of a sweep.
#[derive(Subcommand, Clone)]
pub(super) enum System {
    /// Writes a Slurm batch script that runs a suite as a job array of workers. With --submit, also submits the script.
    ///
    /// Workers continue from their checkpoints after a time limit, a preemption or the loss of a node. A job that
    /// writes the report runs after the workers.
    #[command(
        after_help = "Examples:\n  pe-bench cluster slurm contextual --max 8 --sbatch --time=4:00:00 --submit\n  pe-bench cluster slurm gpt2-124m --gres gpu:1 --setup 'module load cuda' \\\n    -- --backend cuda --keep-weights last"
    )]
    Slurm(SlurmArgs),
    /// Prints Kubernetes manifests: an Indexed Job whose workers run a suite, and a Job that writes the report.
    #[command(
        after_help = "Example:\n  pe-bench cluster kubernetes contextual --image registry.example/pe-bench \\\n    --volume results > contextual.yaml"
    )]
    Kubernetes(KubernetesArgs),
}

/// Arguments of `cluster slurm`.
#[derive(Args, Clone)]
pub(super) struct SlurmArgs {
    #[command(flatten)]
    workers: WorkersArgs,
    /// Generic resources per worker, such as gpu:1.
    #[arg(long, value_name = "LIST", value_parser = sbatch_value)]
    gres: Option<String>,
    /// Further sbatch option for the workers and the report job, such as --time=4:00:00; may be repeated.
    #[arg(long = "sbatch", value_name = "OPTION", allow_hyphen_values = true, value_parser = option)]
    options: Vec<String>,
    /// Shell command that starts `pe-bench`, such as 'apptainer exec --nv pe.sif pe-bench'; default: this program.
    #[arg(long, value_name = "CODE")]
    program: Option<String>,
    /// Shell code to run before every command, such as 'module load cuda'.
    #[arg(long, value_name = "CODE")]
    setup: Option<String>,
    /// Submit the script: first the workers, then the report job.
    #[arg(long)]
    submit: bool,
}

/// Arguments of `cluster kubernetes`.
#[derive(Args, Clone)]
pub(super) struct KubernetesArgs {
    #[command(flatten)]
    workers: WorkersArgs,
    /// Image with `pe-bench` and a shell, such as one built from the repository's Dockerfile.
    #[arg(long, value_name = "IMAGE")]
    image: String,
    /// Name of the persistent volume claim for the results. Its access mode is ReadWriteMany, because all workers write
    /// to the volume.
    #[arg(long, value_name = "CLAIM")]
    volume: String,
    /// Folder at which the volume is mounted.
    #[arg(long, value_name = "DIR", default_value = "/data/results")]
    mount: String,
    /// Name of the job; default: the suite's name.
    #[arg(long)]
    name: Option<String>,
    /// Namespace of the objects; default: the namespace of your kubectl context.
    #[arg(long)]
    namespace: Option<String>,
    /// Number of NVIDIA GPUs per worker.
    #[arg(long, value_name = "N", default_value_t = 0)]
    gpus: usize,
    /// Memory per worker, such as 4Gi; default: no limit.
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
}

/// Parses a long option of `sbatch` with its value.
fn option(text: &str) -> Result<String, String> {
    if text.starts_with("--") {
        return sbatch_value(text);
    }
    Err(format!(
        "`{text}` is not a long option of sbatch, expected an option such as --account=lab"
    ))
}

/// First comments of a script: the command that wrote it, without its program, and a sentence.
fn about(sentence: &str) -> Vec<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let command = command_line(&words.collect::<Vec<_>>());
    vec![format!("Written by: pe-bench {command}"), sentence.to_owned()]
}

pub(super) fn slurm(arguments: &SlurmArgs) -> anyhow::Result<()> {
    let workers = workers::plan(&arguments.workers, true, None)?;
    let folder = std::env::current_dir().context("cannot determine the current folder")?;
    let logs = std::path::absolute(&workers.out)?.join("slurm");
    let logs = sbatch_value(utf8(&logs)?).map_err(anyhow::Error::msg);
    let logs = logs.context(
        "the script passes the results folder to sbatch as the value of an option; choose another folder with --out \
         after `--`",
    )?;
    std::fs::create_dir_all(&logs).with_context(|| format!("cannot create {logs}"))?;
    let program = std::env::current_exe().context("cannot determine the path of this program")?;
    let program = arguments.program.clone().map_or_else(|| utf8(&program).map(quoted), Ok)?;
    let path = format!("{logs}/{}.sh", workers.suite);
    let task = "${SLURM_ARRAY_TASK_ID:-0}";
    let fields = BTreeMap::from([
        ("about", about(&workers.about)),
        ("name", vec![workers.suite.clone()]),
        ("workers", vec![workers.count.to_string()]),
        ("cpus", vec![workers.cpus.to_string()]),
        ("quoted_logs", vec![quoted(&logs)]),
        ("logs", vec![logs]),
        ("gres", arguments.gres.iter().cloned().collect()),
        ("option", arguments.options.clone()),
        ("script", vec![quoted(&path)]),
        ("report_options", vec![command_line(&arguments.options)]),
        ("program", vec![program]),
        ("run", vec![workers.command(task, task)]),
        ("report", vec![command_line(&["report", utf8(&workers.out)?])]),
        ("folder", vec![quoted(utf8(&folder)?)]),
        ("setup", arguments.setup.iter().cloned().collect()),
    ]);
    std::fs::write(&path, render(SLURM, &fields))
        .with_context(|| format!("cannot write {path}"))?;
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
        "`bash {path} submit` ended with {status}; nothing was submitted unless the output above names a job"
    );
    Ok(())
}

/// Kubernetes checks the names, and refuses a suite of more than a mebibyte.
pub(super) fn kubernetes(arguments: &KubernetesArgs) -> anyhow::Result<()> {
    let mount = arguments.mount.trim_end_matches('/');
    anyhow::ensure!(
        mount.starts_with('/'),
        "--mount {mount}: expected an absolute path below `/`, such as /data/results"
    );
    let mut workers = workers::plan(&arguments.workers, false, Some(mount))?;
    let name = arguments.name.as_ref().unwrap_or(&workers.suite);
    let (_, suite) = suite::text(&arguments.workers.suite)?;
    let file = format!("{}.toml", workers.suite);
    // The suite is the second word, after `run`.
    workers.run[1] = format!("{SUITE_FOLDER}/{file}");
    let out = workers.out.to_str().filter(|_| workers.out.starts_with(mount)).map(quoted);
    let out = out.with_context(|| {
        format!(
            "--out {} is not below {mount}, where the volume is mounted; choose a folder below {mount}",
            workers.out.display()
        )
    })?;
    let command = workers.command("$((JOB_COMPLETION_INDEX + 1))", "$JOB_COMPLETION_INDEX");
    let work = format!("exec pe-bench {command}");
    // The report begins when every cell has a record.
    let report = format!("pe-bench status {out} --watch --every 30; exec pe-bench report {out}");
    let mut resources = json!({ "requests": { "cpu": workers.cpus } });
    if let Some(memory) = &arguments.memory {
        resources["requests"]["memory"] = json!(memory);
        resources["limits"]["memory"] = json!(memory);
    }
    if arguments.gpus > 0 {
        resources["limits"]["nvidia.com/gpu"] = json!(arguments.gpus);
    }
    // JSON is YAML, whatever is in a text.
    let fields = [
        ("suite_name", json!(format!("{name}-suite"))),
        ("suite", json!({ file: suite })),
        ("suite_folder", json!(SUITE_FOLDER)),
        ("name", json!(name)),
        ("report_name", json!(format!("{name}-report"))),
        ("workers", json!(workers.count)),
        ("image", json!(arguments.image)),
        ("work", shell_command(&work)),
        ("report", shell_command(&report)),
        ("resources", resources),
        ("mount", json!(mount)),
        ("volume", json!(arguments.volume)),
    ];
    let fields = fields.into_iter().map(|(name, value)| (name, vec![value.to_string()]));
    let mut fields = fields.collect::<BTreeMap<_, _>>();
    fields.insert("about", about(&workers.about));
    let namespace = arguments.namespace.iter().map(|name| json!(name).to_string());
    fields.insert("namespace", namespace.collect());
    say(render(KUBERNETES, &fields).trim_end());
    Ok(())
}

/// A line of shell code as a command. Kubernetes replaces `$(NAME)`, which `$$(NAME)` prevents.
fn shell_command(line: &str) -> serde_json::Value {
    json!(["sh", "-c", line.replace("$(", "$$(")])
}
