//! `pe-bench k8s`: manifests that run a suite on a Kubernetes cluster.

use std::path::Path;

use clap::Args;

use super::out::say;
use super::workers::{self, Division, WorkersArgs};
use sweep::cluster::kubernetes::{KubernetesSweep, MOST_SUITE, MountedSuite, object_name};
use train::suite::{self, BUILT_IN};

/// Folder at which a suite that is not built in is mounted.
const SUITE_FOLDER: &str = "/etc/pe-bench";

/// Arguments of `k8s`.
#[derive(Args, Clone)]
pub(super) struct K8sArgs {
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
}

/// Parses a text without blanks and control characters.
fn word(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(format!("`{text}`, expected a name without blanks"));
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

pub(super) fn k8s(arguments: &K8sArgs) -> anyhow::Result<()> {
    let mut workers = workers::plan(&arguments.workers, false, Some(&arguments.mount))?;
    let named = &arguments.workers.suite;
    let mut mounted = None;
    if !BUILT_IN.iter().any(|(name, _)| name == named) {
        let (_, text) = suite::text(named)?;
        anyhow::ensure!(
            text.len() <= MOST_SUITE,
            "{named} has {} bytes, a ConfigMap takes {MOST_SUITE}; put it on the volume and name it by its path there",
            text.len()
        );
        let file = format!("{}.toml", workers.suite);
        // The suite is the second word, after `run`.
        workers.run[1] = format!("{SUITE_FOLDER}/{file}");
        mounted = Some(MountedSuite { folder: SUITE_FOLDER.to_owned(), file, text });
    }
    if let Some(word) = workers.run.iter().find(|word| word.contains(char::is_control)) {
        anyhow::bail!(
            "`{word}`: an option of a worker has a control character, which its shell would not keep"
        );
    }
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => object_name(&workers.suite)
            .map_err(|error| anyhow::anyhow!("the suite's name: {error}; use --name"))?,
    };
    let by_shard = arguments.workers.divide == Some(Division::Shards);
    let results = results(&workers.out, &arguments.mount)?;
    let sweep = KubernetesSweep {
        name,
        namespace: arguments.namespace.clone(),
        about: vec![
            format!("Written by: {}", workers::command_line()),
            "kubectl apply -f FILE starts the workers; the report follows when every cell has a record.".to_owned(),
            "Needs Kubernetes 1.29 or later (backoffLimitPerIndex).".to_owned(),
        ],
        image: arguments.image.clone(),
        volume: arguments.volume.clone(),
        mount: arguments.mount.clone(),
        suite: mounted,
        workers: workers.count,
        cpus: workers.cpus,
        memory_bytes: workers.memory_bytes,
        gpus: arguments.gpus,
        run: workers.run,
        by_shard,
        results,
    };
    say(sweep.to_string().trim_end());
    Ok(())
}

/// Results folder as a text; it must be on the volume.
fn results(out: &Path, mount: &str) -> anyhow::Result<String> {
    let text = out.to_str().filter(|_| out.starts_with(mount));
    text.map(str::to_owned).ok_or_else(|| {
        anyhow::anyhow!("--out {} is not below {mount}, where the volume is mounted", out.display())
    })
}
