//! Options that act only beside some values of others: clap declares conditions on the presence of options, not on values.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// Condition of some options of a command.
struct OptionCondition {
    command: &'static str,
    /// Ids of the options in clap.
    options: &'static [&'static str],
    acts: fn(&ArgMatches) -> bool,
    /// When they act, after "use it".
    when: &'static str,
}

const CONDITIONS: [OptionCondition; 15] = [
    OptionCondition {
        command: "table",
        options: &["workloads", "metric", "spread", "encodings", "splits", "lens"],
        acts: |all| !has(all, "format", &["bibtex"]),
        when: "with a --format other than bibtex, because BibTeX references always cover all workloads",
    },
    OptionCondition {
        command: "generate",
        options: &["seed"],
        acts: |all| ["temperature", "speed", "encoding"].iter().any(|option| is_given(all, option)),
        when: "with --temperature, --encoding or --speed, because greedy decoding draws no random numbers",
    },
    OptionCondition {
        command: "export",
        options: &["results", "best"],
        acts: |all| !is_path(all, "cell"),
        when: "with a record key or SUITE WORKLOAD ENCODING, because a path already names the weights",
    },
    OptionCondition {
        command: "stability",
        options: &["results", "best"],
        acts: |all| !is_path(all, "cell"),
        when: "with a record key or SUITE WORKLOAD ENCODING, because a path already names the weights",
    },
    OptionCondition {
        command: "inspect",
        options: &["results", "best"],
        acts: |all| !is_path(all, "cell") || (is_given(all, "against") && !is_path(all, "against")),
        when: "with a record key or SUITE WORKLOAD ENCODING, because a path already names the weights",
    },
    OptionCondition {
        command: "stability",
        options: &["token"],
        acts: |all| !has(all, "tokens", &["0"]),
        when: "with --tokens of at least 1",
    },
    OptionCondition {
        command: "benchmark",
        options: &["examples"],
        acts: |all| !has(all, "shots", &["0"]),
        when: "with --shots of at least 1",
    },
    OptionCondition {
        command: "extend",
        options: &["seed"],
        acts: |all| has(all, "tasks", &["passkey"]) || is_given(all, "encodings") || tunes(all),
        when: "with --tasks passkey, --encodings or --tune, because nothing else draws random numbers",
    },
    OptionCondition {
        command: "extend",
        options: &["samples"],
        acts: |all| has(all, "tasks", &["text"]),
        when: "with --tasks text",
    },
    OptionCondition {
        command: "extend",
        options: &["depths", "repeats"],
        acts: |all| has(all, "tasks", &["passkey"]),
        when: "with --tasks passkey",
    },
    OptionCondition {
        command: "extend",
        options: &["items"],
        acts: |all| has(all, "tasks", &["outputs"]),
        when: "with --tasks outputs",
    },
    OptionCondition {
        command: "extend",
        options: &["data"],
        acts: |all| has(all, "tasks", &["text"]) || (tunes(all) && !is_given(all, "tune_data")),
        when: "with --tasks text, or with --tune and without --tune-data",
    },
    OptionCondition {
        command: "extend",
        options: &["factors"],
        acts: |all| {
            has(all, "methods", &["linear", "ntk", "yarn"])
                || !(is_given(all, "methods") || is_given(all, "encodings"))
        },
        when: "with --methods linear, ntk or yarn",
    },
    OptionCondition {
        command: "extend",
        options: &["rank", "alpha"],
        acts: |all| has(all, "tune", &["lora", "long-lora"]),
        when: "with --tune lora or long-lora",
    },
    OptionCondition {
        command: "extend",
        options: &[
            "tune_data",
            "steps",
            "train_len",
            "batch",
            "micro_batch",
            "gradient_checkpointing",
            "learning_rate",
            "groups",
            "export",
            "checkpoint_seconds",
        ],
        acts: tunes,
        when: "with --tune all, lora, long-lora or encoding",
    },
];

/// Whether an option has one of these values.
fn has(all: &ArgMatches, option: &str, values: &[&str]) -> bool {
    let given = all.get_raw(option).into_iter().flatten();
    given.into_iter().any(|value| values.iter().any(|wanted| value == *wanted))
}

/// Whether an option is on the command line.
fn is_given(all: &ArgMatches, option: &str) -> bool {
    all.value_source(option) == Some(ValueSource::CommandLine)
}

/// Whether an argument is the path of kept weights.
fn is_path(all: &ArgMatches, option: &str) -> bool {
    let mut given = all.get_raw(option).into_iter().flatten();
    given.any(|value| value.to_string_lossy().ends_with(".safetensors"))
}

/// Whether a command tunes weights.
fn tunes(all: &ArgMatches) -> bool {
    has(all, "tune", &["all", "lora", "long-lora", "encoding"])
}

/// Refuses options without effect.
///
/// # Errors
/// A clap error that names the first such option and what it needs.
pub(super) fn check(parser: &mut Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some((name, all)) = matches.subcommand() else { return Ok(()) };
    for OptionCondition { options, acts, when, .. } in
        CONDITIONS.iter().filter(|c| c.command == name)
    {
        if let Some(option) = options.iter().find(|option| is_given(all, option) && !acts(all)) {
            let long = parser.find_subcommand(name).and_then(|command| long_of(command, option));
            let option = long.unwrap_or_else(|| (*option).to_owned());
            let text = format!("--{option} has no effect here; leave it out, or use it {when}");
            return Err(parser.error(ErrorKind::ArgumentConflict, text));
        }
    }
    Ok(())
}

/// Long name of an option of a command.
fn long_of(command: &Command, option: &str) -> Option<String> {
    let mut arguments = command.get_arguments();
    arguments.find(|argument| argument.get_id() == option)?.get_long().map(str::to_owned)
}

#[cfg(test)]
mod tests;
