//! `pe-bench cells`: cells of results folders and their keys.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use pe_zoo::Combination;
use records::{RunRecord, Status};
use serde_json::{Value, json};

use super::columns::{TerminalTable, row};
use super::folders::{self, messages};
use super::out::say;
use super::parsers::Suggested;
use super::run::headline;

/// Options that choose cells of results folders.
#[derive(Args, Clone, Default)]
pub(super) struct CellSelection {
    /// Use only cells of these workloads, separated by commas and named as in the records; default: all.
    #[arg(long, alias = "workload", value_name = "NAMES", value_parser = Suggested::TASKS)]
    workloads: Vec<String>,
    /// Use only cells of these encodings, separated by commas and named as in the records; default: all.
    #[arg(long, value_name = "NAMES", value_parser = Suggested::ENCODINGS)]
    encodings: Vec<String>,
    /// Use only cells of these seeds, separated by commas; default: all.
    #[arg(long, alias = "seed", value_name = "SEEDS", value_delimiter = ',')]
    seeds: Vec<u64>,
}

impl CellSelection {
    /// The chosen ones of the finished cells.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub(super) fn finished<'a>(
        &self,
        records: &'a [RunRecord],
    ) -> anyhow::Result<Vec<&'a RunRecord>> {
        self.of(&records.iter().filter(|record| record.status == Status::Done).collect::<Vec<_>>())
    }

    /// The chosen ones of some records.
    ///
    /// # Errors
    /// If there is none, with the names that the records have.
    pub(super) fn of<'a>(&self, records: &[&'a RunRecord]) -> anyhow::Result<Vec<&'a RunRecord>> {
        anyhow::ensure!(
            !records.is_empty(),
            "no finished cell; run a suite first, or give the results folder of a finished run"
        );
        let workload = |record: &&'a RunRecord| &*record.workload;
        let encoding = |record: &&'a RunRecord| &*record.encoding.name;
        let (workloads, encodings) = (names(records, workload), names(records, encoding));
        let of_workload = chosen(&self.workloads, &workloads);
        let of_encoding = chosen(&self.encodings, &encodings);
        let is_chosen = |record: &&&RunRecord| {
            of_workload.contains(&*record.workload)
                && of_encoding.contains(&*record.encoding.name)
                && (self.seeds.is_empty() || self.seeds.contains(&record.seed))
        };
        let found = records.iter().filter(is_chosen).copied().collect::<Vec<_>>();
        let seeds = records.iter().map(|record| record.seed).collect::<BTreeSet<_>>();
        let listed = |names: BTreeSet<&str>| {
            names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        anyhow::ensure!(
            !found.is_empty(),
            "no cell matches --workloads, --encodings and --seeds; the records have the workloads {}, the encodings {} and \
             the seeds {}",
            listed(workloads),
            listed(encodings),
            seeds.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        );
        Ok(found)
    }
}

fn names<'a>(
    records: &[&'a RunRecord],
    name: impl Fn(&&'a RunRecord) -> &'a str,
) -> BTreeSet<&'a str> {
    records.iter().map(name).collect()
}

/// Names in lists; all that are known if there are no lists. A known name may have commas.
fn chosen<'a>(lists: &'a [String], known: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    if lists.is_empty() {
        return known.clone();
    }
    let names = |list: &'a String| match known.get(&**list) {
        Some(name) => vec![*name],
        None => Combination::split_list(list),
    };
    lists.iter().flat_map(names).collect()
}

/// Arguments of `cells`.
#[derive(Args)]
pub(super) struct CellsArgs {
    /// Results folders; default: every folder with records below `results`.
    results: Vec<PathBuf>,
    #[command(flatten)]
    selection: CellSelection,
    /// Print a JSON array with an object for each cell.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &CellsArgs) -> anyhow::Result<()> {
    let (records, errors) = folders::readable(&folders::or_all(&arguments.results)?)?;
    let chosen = arguments.selection.of(&records.iter().collect::<Vec<_>>())?;
    if arguments.json {
        let cell = |record: &&RunRecord| {
            json!({
                "key": record.key,
                "suite": record.suite,
                "workload": record.workload,
                "encoding": record.encoding.name,
                "seed": record.seed,
                "grid_value": record.grid.as_ref().map(|grid| grid.value),
                "status": record.status.name(),
            })
        };
        say(&format!("{:#}", chosen.iter().map(cell).collect::<Value>()));
    } else {
        let cell = |record: &&RunRecord| {
            vec![
                record.key.clone(),
                record.suite.clone(),
                record.workload.clone(),
                record.encoding.name.clone(),
                record.seed.to_string(),
                record.grid.as_ref().map_or_else(String::new, |grid| grid.value.to_string()),
                record.status.name().to_owned(),
                headline(record, true),
                headline(record, false),
            ]
        };
        let heads = row([
            "key",
            "suite",
            "workload",
            "encoding",
            "seed",
            "grid",
            "status",
            "as trained",
            "beyond",
        ]);
        let rows = chosen.iter().map(cell).collect();
        TerminalTable { heads, rows, spare: &["suite", "status", "as trained"], numbers: false }
            .say();
    }
    folders::refuse_left_out("list", &messages(&errors))
}
