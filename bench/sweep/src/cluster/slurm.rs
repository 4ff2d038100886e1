//! Batch scripts for Slurm.

use std::fmt;

use super::shell;

/// Seconds before the time limit at which Slurm signals a worker, for its last step and its checkpoints.
pub const SIGNAL_SECONDS: u64 = 120;

/// Shortest time limit in seconds: the signal may come up to a minute early.
pub const SHORTEST_SECONDS: u64 = SIGNAL_SECONDS + 60;

/// Largest number of array tasks where the cluster does not say: Slurm's default of `MaxArraySize` is 1001.
pub const MOST_TASKS: usize = 1000;

/// Time limit in one of Slurm's forms: `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M` or `D-H:M:S`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeLimit {
    text: String,
    /// The limit in seconds.
    pub seconds: u64,
}

impl TimeLimit {
    /// Limit of at least some seconds, in whole minutes.
    pub fn of_seconds(seconds: f64) -> Self {
        let minutes = (seconds / 60.0).ceil().max(1.0) as u64;
        let (days, hours, rest) = (minutes / 1440, minutes / 60 % 24, minutes % 60);
        let clock = format!("{hours:02}:{rest:02}:00");
        let text = if days > 0 { format!("{days}-{clock}") } else { clock };
        Self { text, seconds: minutes.saturating_mul(60) }
    }
}

impl std::str::FromStr for TimeLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seconds = || {
            let (days, clock) = text.split_once('-').map_or((None, text), |(d, c)| (Some(d), c));
            let number = |part: &str| {
                let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
                digits.then(|| part.parse::<u64>().ok()).flatten()
            };
            let parts = clock.split(':').map(number).collect::<Option<Vec<_>>>()?;
            let (days, hours, minutes, seconds) = match (days, parts.as_slice()) {
                (None, [m]) => (0, 0, *m, 0),
                (None, [m, s]) => (0, 0, *m, *s),
                (None, [h, m, s]) => (0, *h, *m, *s),
                (Some(d), [h]) => (number(d)?, *h, 0, 0),
                (Some(d), [h, m]) => (number(d)?, *h, *m, 0),
                (Some(d), [h, m, s]) => (number(d)?, *h, *m, *s),
                _ => return None,
            };
            let hours = days.checked_mul(24)?.checked_add(hours)?;
            hours.checked_mul(60)?.checked_add(minutes)?.checked_mul(60)?.checked_add(seconds)
        };
        let seconds = seconds().ok_or_else(|| {
            format!("`{text}` is not a time limit of Slurm, expected a form such as 90, 4:00:00 or 1-12:00:00")
        })?;
        if seconds < SHORTEST_SECONDS {
            return Err(format!(
                "`{text}` is {seconds} s, expected at least {SHORTEST_SECONDS} s: workers are signalled {SIGNAL_SECONDS} s \
                 before the limit, and Slurm may do so a minute early"
            ));
        }
        Ok(Self { text: text.to_owned(), seconds })
    }
}

impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Parses the value of an option of `sbatch`, which has no blanks, quotes, comments or control characters.
///
/// # Errors
/// Message with the value.
pub fn value(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-./:=,+@[]&|*()!".contains(c);
    if text.is_empty() || !text.chars().all(allowed) {
        return Err(format!(
            "`{text}` cannot be the value of an option of sbatch, expected letters, digits and _-./:=,+@[]&|*()!"
        ));
    }
    Ok(text.to_owned())
}

/// Largest number of array tasks by `MaxArraySize` in the output of `scontrol show config`; `None` if it has no such line.
pub fn most_tasks(config: &str) -> Option<usize> {
    let line = config.lines().find_map(|line| line.trim().strip_prefix("MaxArraySize"))?;
    let size = line.trim_start().strip_prefix('=')?.trim().parse::<usize>().ok()?;
    // The largest index is one less, and ours begin at 1.
    Some(size.saturating_sub(1).max(1))
}

/// Batch script of a sweep: an array of workers, and the report that follows them.
#[derive(Debug, Clone)]
pub struct BatchScript {
    /// Name of the job.
    pub name: String,
    /// Sentences about the sweep for readers of the script, one a line.
    pub about: Vec<String>,
    /// Path of the script.
    pub path: String,
    /// Folder of the logs.
    pub logs: String,
    /// Folder in which the commands run.
    pub folder: String,
    /// Number of array tasks.
    pub tasks: usize,
    /// Time limit of a task.
    pub time: TimeLimit,
    /// CPUs of a task.
    pub cpus: usize,
    /// Memory of a task in bytes.
    pub memory_bytes: u64,
    /// Generic resources of a worker, such as `gpu:1`.
    pub gres: Option<String>,
    /// Options of `sbatch` for workers and report, such as `--partition=long`.
    pub options: Vec<String>,
    /// Lines of shell code before every command.
    pub setup: Option<String>,
    /// Command that starts `pe-bench`.
    pub program: Vec<String>,
    /// Arguments of a worker.
    pub run: Vec<String>,
    /// Whether each task runs its own shard of the cells instead of claiming cells.
    pub by_shard: bool,
    /// Arguments of the report.
    pub report: Vec<String>,
    /// Number of restarts after which a task does not enter the queue again.
    pub restarts: u64,
}

/// Body of the script after the settings.
const BODY: &str = r#"
case ${1:-work} in
submit)
  workers=$(sbatch --parsable "$script") || exit
  workers=${workers%%;*}
  report=$(sbatch --parsable --dependency="afterany:$workers" "${report_options[@]}" --wrap "bash $(printf %q "$script") report") || exit
  echo "job $workers runs the workers, job ${report%%;*} writes the report after them"
  exit ;;
report)
  "${bench[@]}" "${report[@]}"
  exit ;;
work) ;;
*) echo "$script: unknown action $1, expected submit, report or work" >&2; exit 2 ;;
esac

# The task of this worker. Its job id would not do: that of the last task is the id of the whole array.
task=${SLURM_ARRAY_JOB_ID:?"run this in an array job: bash $script submit"}_$SLURM_ARRAY_TASK_ID
restart=${SLURM_RESTART_COUNT:-0}
echo "$(date -u +%FT%TZ) task $task on $(hostname), restart $restart"

"${bench[@]}" "${run[@]}" &
worker=$!
# Both make the worker write its checkpoints and give its cells back: USR1 comes before the time limit, TERM when the task
# is cancelled or preempted.
trap 'kill -USR1 "$worker"' USR1
trap 'kill -TERM "$worker"' TERM
# A signal ends `wait`, not the worker.
while wait "$worker"; status=$?; kill -0 "$worker" 2>/dev/null; do :; done
echo "$(date -u +%FT%TZ) task $task ended with status $status"

# 4: other tasks run the cells that are open, and one of them may yet be cancelled. 138: the time limit.
case $status in
4 | 138) ;;
*) exit "$status" ;;
esac
if [ "$restart" -ge "$most_restarts" ]; then
  echo "cells are open after $restart restarts; bash $script submit continues" >&2
  exit "$status"
fi
# Entering the queue again ends this script with TERM, but the task must still get its begin.
trap '' TERM
scontrol requeue "$task" || exit "$status"
if [ "$status" = 4 ]; then scontrol update JobId="$task" StartTime=now+10minutes; fi
exit 0
"#;

impl fmt::Display for BatchScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "#!/bin/bash")?;
        for line in &self.about {
            writeln!(f, "# {line}")?;
        }
        let path = shell::quoted(&self.path);
        writeln!(f, "#\n#   bash {path} submit    queues the workers, and the report after them")?;
        writeln!(f, "#   bash {path} report    writes the report now\n#")?;
        let megabytes = self.memory_bytes.div_ceil(1 << 20);
        let mut options = vec![
            format!("--job-name={}", self.name),
            format!("--array=1-{}", self.tasks),
            format!("--time={}", self.time),
            format!("--cpus-per-task={}", self.cpus),
            format!("--mem={megabytes}M"),
        ];
        options.extend(self.gres.as_ref().map(|gres| format!("--gres={gres}")));
        options.extend(self.options.iter().cloned());
        options.extend([
            format!("--output={}/%A_%a.log", self.logs),
            "--open-mode=append".to_owned(),
            "--requeue".to_owned(),
            format!("--signal=B:USR1@{SIGNAL_SECONDS}"),
        ]);
        for option in options {
            writeln!(f, "#SBATCH {option}")?;
        }
        let mut of_report = vec![
            format!("--job-name={}-report", self.name),
            "--time=60".to_owned(),
            "--cpus-per-task=2".to_owned(),
            "--mem=4096M".to_owned(),
            format!("--output={}/report_%j.log", self.logs),
        ];
        of_report.extend(self.options.iter().cloned());
        writeln!(f, "\nscript={path}")?;
        writeln!(f, "most_restarts={}", self.restarts)?;
        writeln!(f, "report_options=({})", shell::line(&of_report))?;
        writeln!(f, "bench=({})", shell::line(&self.program))?;
        let share = if self.by_shard {
            format!("--shard \"${{SLURM_ARRAY_TASK_ID:-0}}/{}\"", self.tasks)
        } else {
            "--worker \"${SLURM_ARRAY_TASK_ID:-0}\"".to_owned()
        };
        writeln!(f, "run=({} {share})", shell::line(&self.run))?;
        writeln!(f, "report=({})", shell::line(&self.report))?;
        writeln!(f, "cd {} || exit", shell::quoted(&self.folder))?;
        if let Some(setup) = &self.setup {
            writeln!(f, "{setup}")?;
        }
        f.write_str(BODY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_limits_are_read_in_all_forms_of_slurm() {
        for (text, seconds) in [
            ("5", 300),
            ("3:30", 210),
            ("4:00:00", 14_400),
            ("1-0", 86_400),
            ("1-12:30", 131_400),
            ("2-01:02:03", 176_523),
        ] {
            assert_eq!(text.parse::<TimeLimit>().map(|time| time.seconds), Ok(seconds), "{text}");
        }
        for text in
            ["", "x", "1:2:3:4", "-5", "1-", "1--2", "4h", "+5", "99999999999999999999", "5 "]
        {
            let said = text.parse::<TimeLimit>().unwrap_err();
            assert!(said.contains("is not a time limit"), "{said}");
        }
        for text in ["0", "2", "2:59"] {
            let said = text.parse::<TimeLimit>().unwrap_err();
            assert!(said.contains("expected at least 180 s"), "{said}");
        }
        for (seconds, text) in [(10.0, "00:01:00"), (5000.0, "01:24:00"), (200_000.0, "2-07:34:00")]
        {
            let limit = TimeLimit::of_seconds(seconds);
            assert_eq!(limit.to_string(), text);
            assert!(limit.seconds as f64 >= seconds);
        }
    }

    #[test]
    fn the_size_of_arrays_is_found_in_the_configuration() {
        let config = "Configuration data\nMaxArraySize            = 5\nMaxJobCount = 9\n";
        assert_eq!(most_tasks(config), Some(4));
        assert_eq!(most_tasks("MaxArraySize = many"), None);
        assert_eq!(most_tasks(""), None);
    }

    #[test]
    fn values_of_options_have_no_room_for_other_lines() {
        for text in ["gpu:a100:2", "long,short", "a@b", "[a|b]&c*2"] {
            assert_eq!(value(text), Ok(text.to_owned()));
        }
        for text in ["", "a b", "a\n#SBATCH --x", "a'b", "a#b", "a\u{1b}", "$(x)", "a%b", "a\\b"] {
            assert!(value(text).is_err(), "{text}");
        }
    }
}
