//! Manifests for Kubernetes: an Indexed Job of workers and a Job that writes the report after them.

use std::fmt;

use serde_json::json;

use super::shell;

/// Longest name of a Job: an index is added to the names of its pods, which have at most 63 characters.
const MOST_NAME: usize = 50;

/// Largest text of a suite in bytes; Kubernetes limits a ConfigMap to 1 MiB.
pub const MOST_SUITE: usize = 900_000;

/// Seconds between the request to end a pod and its end, for the last step and the checkpoints.
const GRACE_SECONDS: u64 = 120;

/// Parses the name of a Kubernetes object.
///
/// # Errors
/// Message with the name and the allowed characters.
pub fn object_name(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = (1..=MOST_NAME).contains(&text.len()) && text.chars().all(allowed);
    if fits && text.starts_with(|c: char| c.is_ascii_lowercase()) && text.ends_with(ends) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "`{text}` cannot be a name in Kubernetes, expected at most {MOST_NAME} lower-case letters, digits and `-`, a letter \
         first and no `-` at the end"
    ))
}

/// Suite that the image does not contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountedSuite {
    /// Folder in which workers see the file.
    pub folder: String,
    /// Name of the file.
    pub file: String,
    /// Text of the suite.
    pub text: String,
}

/// Manifests of a sweep.
#[derive(Debug, Clone)]
pub struct KubernetesSweep {
    /// Name of the Job of the workers.
    pub name: String,
    /// Namespace; `None`: that of the user's context.
    pub namespace: Option<String>,
    /// Sentences about the sweep, as comments.
    pub about: Vec<String>,
    /// Image that contains `pe-bench`.
    pub image: String,
    /// Name of the claim of the volume with the results.
    pub volume: String,
    /// Folder at which the volume is mounted.
    pub mount: String,
    /// Suite that is mounted beside it.
    pub suite: Option<MountedSuite>,
    /// Number of workers and shards.
    pub workers: usize,
    /// CPUs of a worker.
    pub cpus: usize,
    /// Memory of a worker in bytes.
    pub memory_bytes: u64,
    /// NVIDIA GPUs of a worker.
    pub gpus: usize,
    /// Arguments of a worker.
    pub run: Vec<String>,
    /// Whether each worker runs its own shard of the cells instead of claiming cells.
    pub by_shard: bool,
    /// Results folder as pods see it.
    pub results: String,
}

impl KubernetesSweep {
    /// Command of a worker.
    fn worker_command(&self) -> String {
        let share = if self.by_shard {
            format!("--shard \"$((JOB_COMPLETION_INDEX + 1))/{}\"", self.workers)
        } else {
            "--worker \"$JOB_COMPLETION_INDEX\"".to_owned()
        };
        shell_command(&format!("exec pe-bench {} {share}", shell::line(&self.run)))
    }

    /// Command of the report, which begins when every cell has a record.
    fn report_command(&self) -> String {
        let results = shell::quoted(&self.results);
        shell_command(&format!(
            "pe-bench status {results} --watch --every 30; exec pe-bench report {results}"
        ))
    }

    /// Head of an object: its kind, name and labels.
    fn head(
        &self,
        f: &mut fmt::Formatter<'_>,
        version: &str,
        kind: &str,
        name: &str,
    ) -> fmt::Result {
        writeln!(
            f,
            "---\napiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {}",
            json!(name)
        )?;
        if let Some(namespace) = &self.namespace {
            writeln!(f, "  namespace: {}", json!(namespace))?;
        }
        writeln!(f, "  labels:\n    app.kubernetes.io/name: pe-bench")?;
        writeln!(f, "    app.kubernetes.io/instance: {}", json!(self.name))
    }

    /// Pod template with one container.
    fn pod(
        &self,
        f: &mut fmt::Formatter<'_>,
        command: &str,
        [cpus, memory_bytes, gpus]: [u64; 3],
    ) -> fmt::Result {
        let (image, mount, volume) = (json!(self.image), json!(self.mount), json!(self.volume));
        let memory = json!(format!("{}Mi", memory_bytes.div_ceil(1 << 20)));
        write!(
            f,
            "  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: {GRACE_SECONDS}
      # The user of the repository's image must be able to write to the volume.
      securityContext:
        fsGroup: 1000
      containers:
        - name: pe-bench
          image: {image}
          command: {command}
          resources:
            requests:
              cpu: {cpus}
              memory: {memory}
            limits:
              memory: {memory}
"
        )?;
        if gpus > 0 {
            writeln!(f, "              nvidia.com/gpu: {gpus}")?;
        }
        writeln!(f, "          volumeMounts:")?;
        writeln!(f, "            - name: results\n              mountPath: {mount}")?;
        if let Some(suite) = &self.suite {
            let folder = json!(suite.folder);
            writeln!(f, "            - name: suite\n              mountPath: {folder}")?;
            writeln!(f, "              readOnly: true")?;
        }
        writeln!(f, "      volumes:\n        - name: results")?;
        writeln!(f, "          persistentVolumeClaim:\n            claimName: {volume}")?;
        if self.suite.is_some() {
            writeln!(f, "        - name: suite\n          configMap:")?;
            writeln!(f, "            name: {}", json!(self.suite_name()))?;
        }
        Ok(())
    }

    fn suite_name(&self) -> String {
        format!("{}-suite", self.name)
    }
}

/// A line of shell code as a command in JSON, which is YAML. Kubernetes replaces `$(NAME)`, which `$$(NAME)` prevents.
fn shell_command(line: &str) -> String {
    json!(["sh", "-c", line.replace("$(", "$$(")]).to_string()
}

impl fmt::Display for KubernetesSweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.about {
            writeln!(f, "# {line}")?;
        }
        if let Some(suite) = &self.suite {
            self.head(f, "v1", "ConfigMap", &self.suite_name())?;
            writeln!(f, "data:\n  {}: {}", json!(suite.file), json!(suite.text))?;
        }
        self.head(f, "batch/v1", "Job", &self.name)?;
        let workers = self.workers;
        write!(
            f,
            "spec:
  completionMode: Indexed
  completions: {workers}
  parallelism: {workers}
  backoffLimitPerIndex: 3
  podFailurePolicy:
    rules:
      # 4: other workers run the cells that are open; 143: asked to end, checkpoints are written. Both start again.
      - action: Ignore
        onExitCodes:
          operator: In
          values: [4, 143]
      - action: Ignore
        onPodConditions:
          - type: DisruptionTarget
            status: \"True\"
"
        )?;
        let resources = [self.cpus as u64, self.memory_bytes, self.gpus as u64];
        self.pod(f, &self.worker_command(), resources)?;
        self.head(f, "batch/v1", "Job", &format!("{}-report", self.name))?;
        writeln!(f, "spec:\n  backoffLimit: 3")?;
        self.pod(f, &self.report_command(), [1, 4 << 30, 0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_kubernetes() {
        for text in ["a", "quick", "gpt2-124m"] {
            assert_eq!(object_name(text), Ok(text.to_owned()));
        }
        let long = "a".repeat(MOST_NAME + 1);
        for text in ["", "-a", "a-", "1a", "A", "a_b", "a\nb", "a: b", &long] {
            assert!(object_name(text).unwrap_err().contains("cannot be a name"), "{text}");
        }
    }
}
