//! `pe-bench cluster slurm`: the script, run by bash with stand-ins for Slurm's commands. `ci/slurm-test.sh` uses a real Slurm.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::place::{Place, checkpoints, signal, until};
use crate::program::{BENCH, files, text};

/// A sweep with stand-ins for `sbatch` and `scontrol` that log their arguments.
struct Cluster {
    place: Place,
    path: String,
}

impl Cluster {
    fn new(steps: usize) -> Self {
        let place = Place::new(steps);
        let bin = place.out("bin");
        fs::create_dir_all(&bin).unwrap();
        let log = place.out("calls");
        for (name, answer) in [("sbatch", "echo '17;cluster'"), ("scontrol", "")] {
            let file = bin.join(name);
            let script = format!(
                "#!/bin/bash\nprintf '%s' {name} >> {0}\nprintf ' %q' \"$@\" >> {0}\necho >> {0}\n{answer}\n",
                log.display()
            );
            fs::write(&file, script).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        Self { place, path }
    }

    fn slurm(&self, more: &[&str]) -> Output {
        let mut command = Command::new(BENCH);
        command
            .args(["cluster", "slurm"])
            .arg(self.place.suite())
            .args(more)
            .env("PATH", &self.path);
        command.current_dir(self.place.out("")).output().unwrap()
    }

    /// Writes the script with options of `run`, and returns its path and text.
    fn script(&self, more: &[&str]) -> (PathBuf, String) {
        let output = self.slurm(more);
        assert!(output.status.success(), "{}", text(&output));
        let path = self.place.out("results/small/slurm/small.sh");
        let script = fs::read_to_string(&path).unwrap();
        let parsed = Command::new("bash").arg("-n").arg(&path).output().unwrap();
        assert!(parsed.status.success(), "{}{script}", text(&parsed));
        (path, script)
    }

    /// The script as task 2 of array 17.
    fn task(&self, script: &Path, restarts: &str) -> Command {
        let mut command = Command::new("bash");
        command.arg(script).env("PATH", &self.path).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("SLURM_ARRAY_JOB_ID", "17").env("SLURM_ARRAY_TASK_ID", "2");
        command.env("SLURM_JOB_ID", "17").env("SLURM_RESTART_COUNT", restarts);
        command
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.place.out("calls")).unwrap_or_default()
    }

    fn results(&self) -> PathBuf {
        self.place.out("results/small")
    }
}

#[test]
fn the_script_asks_for_what_the_cells_need_and_submits_the_report_behind_the_workers() {
    let cluster = Cluster::new(3);
    let suite = fs::read_to_string(cluster.place.suite()).unwrap();
    fs::write(cluster.place.suite(), suite.replace("[0]", "[0, 1, 2]")).unwrap();
    let options =
        ["--max", "2", "--gres", "gpu:1", "--sbatch", "--time=1-2:30", "--sbatch", "--account=lab"];
    let more = ["--setup", "module load x", "--submit", "--", "--threads", "2", "--jobs", "3"];
    let (path, script) = cluster.script(&[&options[..], &more].concat());
    let logs = path.parent().unwrap().display();
    for line in [
        "--array=1-2",
        "--time=1-2:30",
        "--cpus-per-task=6",
        "--gres=gpu:1",
        "--account=lab",
        &format!("--output={logs}/%A_%a.log"),
        "--open-mode=append",
        "--requeue",
        "--signal=B:USR1@120",
    ] {
        assert!(script.contains(&format!("\n#SBATCH {line}\n")), "{line}: {script}");
    }
    let header = script.lines().take_while(|line| line.starts_with('#')).count();
    let body = script.lines().skip(header).collect::<Vec<_>>();
    assert!(!body.iter().any(|line| line.starts_with("#SBATCH")), "{script}");
    assert!(body.contains(&"module load x") && !script.contains("--shard"), "{script}");
    assert!(script.contains(" --no-report --worker \"${SLURM_ARRAY_TASK_ID:-0}\")\n"), "{script}");
    let calls = cluster.calls();
    let calls = calls.lines().collect::<Vec<_>>();
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert_eq!(calls[0], format!("sbatch --parsable {}", path.display()));
    assert!(
        calls[1].contains(
            "--dependency=afterany:17 --time=1-2:30 --account=lab --job-name=small-report"
        ),
        "{calls:?}"
    );
    assert!(calls[1].contains("report_%j.log --wrap bash\\ ") && calls[1].ends_with("\\ report"));
    assert!(!calls[1].contains("gpu"), "{calls:?}");
}

#[test]
fn what_every_worker_would_refuse_is_refused_before_the_script() {
    let cluster = Cluster::new(3);
    for (more, expected) in [
        (&["--data-parallel", "0"][..], "expected a whole number from 1 to "),
        (&["--data-parallel", "3"], "micro-batches"),
        (&["--devices", "0-7", "--data-parallel", "3"], "a multiple of --data-parallel 3"),
        (&["--keep-weights", "best"], "no validations"),
        (&["--ablation-base", "nonsense"], "nonsense"),
        (&["--data", "."], "none of the workloads reads a text"),
    ] {
        let refused = cluster.slurm(&[&["--"], more].concat());
        assert_eq!(refused.status.code(), Some(1), "{more:?}: {}", text(&refused));
        assert!(text(&refused).contains(expected), "{more:?}: {}", text(&refused));
    }
    let suite = fs::read_to_string(cluster.place.suite()).unwrap();
    fs::write(cluster.place.suite(), suite.replace("[train]", "[train]\nmicro_batch_size = 2"))
        .unwrap();
    let (_, script) = cluster.script(&["--", "--data-parallel", "2", "--threads", "3"]);
    assert!(script.contains("\n#SBATCH --cpus-per-task=6\n"), "{script}");
    // A worker that is queued again must not repeat the retries.
    let (_, script) = cluster.script(&["--", "--retry", "failed"]);
    assert!(script.contains(" --retry failed ") && script.contains(" --retry-before "), "{script}");
}

#[test]
fn a_worker_that_is_done_ends_and_the_report_follows() {
    let cluster = Cluster::new(3);
    let (path, _) = cluster.script(&["--shards"]);
    for part in ["1", "2"] {
        let mut task = cluster.task(&path, "0");
        let output = task.env("SLURM_ARRAY_TASK_ID", part).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        assert!(text(&output).contains(&format!("task 17_{part} ended with status 0")));
    }
    assert_eq!(files(&cluster.results().join("cells")).len(), 2);
    assert!(!cluster.results().join("index.html").exists() && cluster.calls().is_empty());
    let report = Command::new("bash").arg(&path).arg("report").output().unwrap();
    assert!(report.status.success() && cluster.results().join("index.html").is_file());
    let nothing = cluster.slurm(&[]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(text(&nothing).contains("every cell of `small` has a record"), "{}", text(&nothing));
    let wrong = Command::new("bash").arg(&path).arg("sumbit").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
    let alone = Command::new("bash").arg(&path).env_remove("SLURM_ARRAY_JOB_ID").output().unwrap();
    assert!(!alone.status.success() && text(&alone).contains("array job"), "{}", text(&alone));
}

#[test]
fn the_time_limit_queues_the_task_again_and_a_cancellation_does_not() {
    let cluster = Cluster::new(1_000_000);
    let (path, script) = cluster.script(&["--", "--checkpoint-seconds", "0.1"]);
    let most = script.split("most_restarts=").nth(1).unwrap().lines().next().unwrap();
    let ends = |name: &str, restarts: &str| {
        let task = cluster.task(&path, restarts).spawn().unwrap();
        let claims = cluster.results().join("claims");
        until("it has a claim", || files(&claims).len() > 1);
        until("there is a checkpoint", || !checkpoints(&cluster.results()).is_empty());
        signal(name, task.id());
        let output = task.wait_with_output().unwrap();
        assert_eq!(files(&claims).len(), 1, "claims are given back: {}", text(&output));
        (output.status.code(), text(&output))
    };
    let (code, said) = ends("TERM", "0");
    assert!(code == Some(143) && said.contains("status 143"), "{code:?} {said}");
    assert_eq!(cluster.calls(), "");
    let (code, said) = ends("USR1", "1");
    assert!(code == Some(0) && said.contains("status 138"), "{code:?} {said}");
    assert_eq!(cluster.calls(), "scontrol requeue 17_2\n", "the task, not the array");
    let (code, said) = ends("USR1", most);
    assert!(code == Some(138) && said.contains("cells are open after"), "{code:?} {said}");
    assert_eq!(cluster.calls().lines().count(), 1);
}

#[test]
fn a_task_without_a_cell_looks_again_later() {
    let cluster = Cluster::new(1_000_000);
    let (path, _) = cluster.script(&[]);
    let mut busy = cluster.place.start(&cluster.results(), &["--jobs", "2"]);
    until("both cells are claimed", || files(&cluster.results().join("claims")).len() == 3);
    let output = cluster.task(&path, "0").output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let expected = "scontrol requeue 17_2\nscontrol update JobId=17_2 StartTime=now+10minutes\n";
    assert_eq!(cluster.calls(), expected, "{}", text(&output));
    signal("TERM", busy.id());
    busy.wait().unwrap();
}

#[test]
fn hostile_texts_stay_words_and_wrong_options_are_refused() {
    let cluster = Cluster::new(3);
    let suite = "su'ite\n#SBATCH --uid=0\n$(touch touched).toml";
    fs::copy(cluster.place.suite(), cluster.place.out(suite)).unwrap();
    let command = ["cluster", "slurm", suite, "--", "--out", "results/small"];
    let folder = cluster.place.out("");
    let output = Command::new(BENCH).args(command).current_dir(&folder).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let path = cluster.results().join("slurm/small.sh");
    let script = fs::read_to_string(&path).unwrap();
    let options = script.lines().filter(|line| line.starts_with("#SBATCH"));
    assert!(options.clone().count() > 6 && !options.clone().any(|line| line.contains("uid")));
    let output = cluster.task(&path, "0").output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(!cluster.place.out("touched").exists());
    let elsewhere = tempfile::tempdir().unwrap();
    let out = elsewhere.path().to_str().unwrap();
    let output = cluster.slurm(&["--program", "apptainer exec x.sif pe-bench", "--", "--out", out]);
    assert!(output.status.success(), "{}", text(&output));
    let script = fs::read_to_string(elsewhere.path().join("slurm/small.sh")).unwrap();
    assert!(script.contains("\nbench=(apptainer exec x.sif pe-bench)\n"), "{script}");
    for (arguments, expected) in [
        (&["--gres", "gpu:1\n#SBATCH --x"][..], "cannot be the value of an option"),
        (&["--sbatch", "-A lab"], "is not a long option"),
        (&["--max", "0"], "expected a whole number from 1 to "),
        (&["--", "--shard", "1/2"], "--shard after `--`: workers set this option themselves"),
        (&["--", "--no-wait"], "--no-wait after `--`"),
        (&["--", "--worker", "1"], "--worker after `--`"),
        (&["--", "--dry-run"], "--dry-run after `--`"),
        (&["--", "--force"], "--force after `--`"),
        (&["--", "--treads", "2"], "options of `run` after `--`: unexpected argument '--treads'"),
        (&["--", "--backend", "flx"], "did you mean `flex`?"),
        (&["--", "--encodings", "ropy"], "did you mean"),
        (&["--", "--out", "with blank"], "choose another folder with --out after `--`"),
    ] {
        let output = cluster.slurm(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(text(&output).contains(expected), "{arguments:?}: {}", text(&output));
    }
    // A folder with bash and nothing of Slurm.
    let without = cluster.place.out("without");
    fs::create_dir(&without).unwrap();
    std::os::unix::fs::symlink("/bin/bash", without.join("bash")).unwrap();
    let failed = Command::new(BENCH)
        .args(["cluster", "slurm"])
        .arg(cluster.place.suite())
        .args(["--submit", "--", "--out"])
        .arg(cluster.place.out("elsewhere"))
        .env("PATH", &without)
        .output()
        .unwrap();
    let said = text(&failed);
    assert!(!failed.status.success() && said.contains("nothing was submitted"), "{said}");
}

#[test]
fn a_backend_of_other_machines_is_planned() {
    let cluster = Cluster::new(3);
    let output = cluster.slurm(&["--gres", "gpu:1", "--", "--backend", "tch-cuda"]);
    assert!(output.status.success(), "{}", text(&output));
    let script = fs::read_to_string(cluster.results().join("slurm/small.sh")).unwrap();
    assert!(script.contains("--backend tch-cuda"), "{script}");
}
