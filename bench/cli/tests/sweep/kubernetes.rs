//! `pe-bench cluster kubernetes`: the manifests. `ci/k8s-schema.sh` checks them against the published schema.

use std::process::{Command, Output};

use crate::place::Place;
use crate::program::{BENCH, text};

fn k8s(suite: &str, more: &[&str]) -> Output {
    let required = ["--image", "registry.example/pe-bench:1", "--volume", "results"];
    let command = ["cluster", "kubernetes", suite];
    Command::new(BENCH).args(command).args(required).args(more).output().unwrap()
}

#[test]
fn a_suite_is_mounted_for_an_indexed_job_and_a_report_follows() {
    let output =
        k8s("smoke", &["--max", "3", "--gpus", "1", "--memory", "4Gi", "--", "--threads", "2"]);
    assert!(output.status.success(), "{}", text(&output));
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.matches("\n---\n").count(), 3, "{said}");
    for part in [
        "  name: \"smoke\"\n",
        "  name: \"smoke-report\"\n",
        "  completionMode: Indexed\n  completions: 3\n  parallelism: 3\n",
        "          values: [4, 143]\n",
        "          resources: {\"limits\":{\"memory\":\"4Gi\",\"nvidia.com/gpu\":1},\"requests\":{\"cpu\":2,\"memory\":\"4Gi\"}}\n",
        "            claimName: \"results\"\n",
        "              mountPath: \"/data/results\"\n",
        " --out /data/results/smoke ",
        "run /etc/pe-bench/smoke.toml ",
        " --no-wait --no-report --worker \\\"$JOB_COMPLETION_INDEX\\\"\"]\n",
        "pe-bench status /data/results/smoke --watch",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("--shard"), "{said}");
}

#[test]
fn texts_are_quoted_and_shards_follow_the_index() {
    let place = Place::new(3);
    let suite = std::fs::read_to_string(place.suite()).unwrap();
    let hostile = suite.replace("For tests.", "x\\n---\\nkind: Secret $(HOME)");
    std::fs::write(place.suite(), &hostile).unwrap();
    let more = ["--shards", "--namespace", "lab", "--name", "mine", "--mount", "/r/"];
    let output = k8s(place.suite().to_str().unwrap(), &more);
    assert!(output.status.success(), "{}", text(&output));
    let said = String::from_utf8(output.stdout).unwrap();
    let line = format!("data: {{\"small.toml\":{}}}\n", serde_json::json!(hostile));
    assert!(said.contains(&line), "{said}");
    assert!(!said.lines().any(|line| line.starts_with("kind: Secret")), "{said}");
    assert!(said.contains("--shard \\\"$$((JOB_COMPLETION_INDEX + 1))/2\\\""), "{said}");
    assert!(
        said.contains("run /etc/pe-bench/small.toml") && said.contains("--out /r/small"),
        "{said}"
    );
    assert_eq!(said.matches("  namespace: \"lab\"\n").count(), 3);
    assert!(said.contains("          configMap:\n            name: \"mine-suite\"\n"), "{said}");
}

#[test]
fn wrong_numbers_and_folders_are_refused() {
    for (more, expected) in [
        (&["--mount", "results"][..], "expected an absolute path"),
        (&["--max", "0"], "expected a whole number from 1 to "),
        (&["--", "--out", "/elsewhere/x"], "is not below /data/results"),
        (&["--", "--seed", "x"], "options of `run` after `--`"),
    ] {
        let output = k8s("smoke", more);
        assert!(!output.status.success(), "{more:?}");
        assert!(text(&output).contains(expected), "{more:?}: {}", text(&output));
    }
}
