//! `pe-bench reproduce`: comparison with published numbers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use analysis::reproduction::published::{PublishedRow, PublishedTable};
use analysis::reproduction::{
    NumberResult, Reproduction, TableResult, VERDICTS, Verdict, reproduction,
};
use anyhow::Context as _;
use clap::Args;
use clap::builder::PossibleValuesParser;
use reports::reproduction::summary;
use serde_json::Value;
use stats::Mean;

use super::columns::{TerminalTable, row, say_rows};
use super::folders::{self, messages};
use super::out::say;
use super::prose::say_markdown;
use train::names::unknown;

/// Arguments of `reproduce`.
#[derive(Args, Clone)]
pub(crate) struct ReproduceArgs {
    /// Results folders; default: none, which lists only the published numbers.
    results: Vec<PathBuf>,
    /// Published sources, separated by commas (cope, cope-vs-rope, grape, tape); default: all.
    #[arg(long, alias = "paper", value_name = "NAMES", value_delimiter = ',')]
    papers: Vec<String>,
    /// Files with outputs of `pe-bench stability --json`, separated by commas. Their numbers are shown next to the
    /// published numbers.
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    stability: Vec<PathBuf>,
    /// Print only the numbers with these verdicts, separated by commas; default: all numbers that have a run.
    ///
    /// `agrees`: the recipe is the published one, and the intervals overlap. `differs`: they do not overlap, or a seed
    /// diverged. `undecided`: they do not overlap, but the published standard deviation is unknown. `too-few-seeds`: a
    /// verdict needs more seeds. `other-recipe`, `other-size`: all runs have other settings or another size. `not-run`:
    /// there is no record. `elsewhere`: a command and not a record verifies the number. `unread`: the source prints the
    /// number, which has not been copied.
    #[arg(long, alias = "verdict", value_delimiter = ',', value_parser = PossibleValuesParser::new(VERDICTS.map(Verdict::id)))]
    verdicts: Vec<String>,
    /// Print every recipe that was run, not only the recipe nearest to the published one.
    #[arg(long, requires = "results")]
    all: bool,
}

/// Columns of the summary that a narrow terminal drops, in this order.
const SPARE_VERDICTS: [&str; 5] = ["unread", "elsewhere", "too few seeds", "undecided", "not run"];
/// Columns of a published table.
const COLUMNS: [&str; 6] = ["row", "column", "published", "ours", "verdict", "recipe"];

pub(super) fn reproduce(arguments: &ReproduceArgs) -> anyhow::Result<()> {
    let folders = if arguments.results.is_empty() {
        Vec::new()
    } else {
        folders::or_all(&arguments.results)?
    };
    let (mut frames, mut errors) = (analysis::frame::Frames::of(&[])?, Vec::new());
    for (own, unreadable) in folders::frames(&folders)? {
        frames.append(own)?;
        errors.extend(unreadable);
    }
    let mut found = reproduction(&frames)?;
    choose_papers(&mut found, &arguments.papers)?;
    let mut measured = Vec::new();
    for path in &arguments.stability {
        measured.extend(outputs(path)?.into_iter().map(|output| (path, output)));
    }
    for result in &found.tables {
        print(result, arguments);
        print_stability(result, &measured.iter().map(|(_, output)| output).collect::<Vec<_>>());
    }
    for (path, output) in &measured {
        let is_of = |TableResult { table, .. }: &TableResult| {
            table.rows.iter().any(|row| fits(table, row, output))
        };
        if !found.tables.iter().any(is_of) {
            say(&format!(
                "{}: no published number matches the encoding and the shifts of this file",
                path.display()
            ));
        }
    }
    TerminalTable { spare: &SPARE_VERDICTS, ..TerminalTable::from(&summary(&found)) }.say();
    if arguments.verdicts.is_empty() {
        say_markdown(
            "\nAdd --verdicts not-run to list numbers without a run, or --all to list every recipe.",
        );
    }
    folders::refuse_left_out("comparison", &messages(&errors))
}

/// Removes papers that were not requested on the command line.
fn choose_papers(found: &mut Reproduction, asked: &[String]) -> anyhow::Result<()> {
    let known: BTreeSet<String> =
        found.tables.iter().map(|table| table.source.id.clone()).collect();
    for name in asked {
        let all = known.iter().map(String::as_str);
        anyhow::ensure!(known.contains(name), unknown("source", name, all));
    }
    if !asked.is_empty() {
        found.tables.retain(|table| asked.contains(&table.source.id));
    }
    Ok(())
}

/// Prints one line per requested number, or per recipe of it with --all.
fn print(result: &TableResult, arguments: &ReproduceArgs) {
    let wanted = |number: &NumberResult| {
        if arguments.verdicts.is_empty() {
            !number.runs.is_empty() || !number.other_sizes.is_empty()
        } else {
            arguments.verdicts.iter().any(|id| id == number.verdict.id())
        }
    };
    let (mut rows, mut recipes) = (Vec::new(), Vec::new());
    for (title, column, number) in result.numbers().filter(|(.., number)| wanted(number)) {
        let metric = result.table.metric_of(column);
        let published = metric.with_unit(&number.published.text);
        let ahead = |ours: String, verdict: String| {
            vec![title.to_owned(), column.name.clone(), published.clone(), ours, verdict]
        };
        let shown = if arguments.all { number.runs.len() } else { 1 };
        for (index, run) in number.runs.iter().take(shown).enumerate() {
            let verdict = if index == 0 { number.verdict.label() } else { String::new() };
            let differences = result.differences(run);
            let known = recipes.iter().position(|recipe| *recipe == differences);
            let number = known.unwrap_or(recipes.len()) + 1;
            let recipe = if differences.is_empty() { String::new() } else { format!("[{number}]") };
            if known.is_none() && !differences.is_empty() {
                recipes.push(differences);
            }
            let mut row = ahead(run.text(), verdict);
            row.push(recipe);
            rows.push(row);
        }
        if number.runs.is_empty() {
            // The head says whose they are.
            let ours = number.other_sizes_text().replace("ours ", "");
            let ours = Some(ours).filter(|text| !text.is_empty());
            rows.push(ahead(ours.unwrap_or_else(|| "–".to_owned()), number.verdict.label()));
        }
    }
    let mut orders = result.orders.iter().filter(|order| order.pairs > 0).peekable();
    if rows.is_empty() && orders.peek().is_none() {
        return;
    }
    let table = &result.table;
    say_markdown(&format!("{}: {} ({})", result.source.label, table.what, table.id));
    let columns = TerminalTable { heads: row(COLUMNS), rows, ..TerminalTable::default() };
    TerminalTable { spare: &["recipe"], ..columns }.say();
    for (index, recipe) in recipes.iter().enumerate() {
        say_markdown(&format!("- [{}] {recipe}", index + 1));
    }
    for order in orders {
        say_markdown(&format!("- {}", order.text()));
    }
    say_notes(table);
}

/// Prints how reliable the numbers of a table are, and what a verdict needs.
fn say_notes(table: &PublishedTable) {
    say_markdown(&format!("- Trust: {}", table.trust));
    if let Some(needs) = &table.needs {
        say_markdown(&format!("- A verdict needs {needs}."));
    }
    say("");
}

/// Reads one or more outputs of `pe-bench stability --json` from a file.
fn outputs(path: &Path) -> anyhow::Result<Vec<Value>> {
    let text = tasks::read_text(path)?;
    let outputs = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let is_whole = |output: &Value| {
        output["encoding"]["id"].is_string() && output["after_prepending"].is_array()
    };
    let outputs = outputs.collect::<Result<Vec<_>, _>>().ok();
    let are_whole = |outputs: &Vec<Value>| !outputs.is_empty() && outputs.iter().all(is_whole);
    outputs.filter(are_whole).with_context(|| {
        format!(
            "{}: `encoding` or `after_prepending` is missing, expected the output of `pe-bench stability --json`; older \
             versions of pe-bench do not write `encoding`, so run `pe-bench stability --json` again",
            path.display()
        )
    })
}

/// Whether a measured output is of the encoding of a row and of the shifts of its table.
fn fits(table: &PublishedTable, row: &PublishedRow, output: &Value) -> bool {
    let encoding = row.encoding.as_deref().and_then(|text| train::encodings::parse(text).ok());
    !table.stability.is_empty()
        && encoding.is_some_and(|encoding| output["encoding"] == encoding.identity())
        && table.stability.iter().all(|(setting, value)| output[setting] == *value)
}

/// Formats a number with two decimals, and zero without a sign.
fn two_decimals(value: f64) -> String {
    // The sum of -0 and 0 is 0.
    format!("{:.2}", (100.0 * value).round() / 100.0 + 0.0)
}

/// Prints the measured numbers of a table, means with intervals over models, beside the published ones.
fn print_stability(result: &TableResult, measured: &[&Value]) {
    let (table, mut rows) = (&result.table, Vec::new());
    for row in &table.rows {
        let outputs = measured.iter().copied().filter(|output| fits(table, row, output));
        let outputs = outputs.collect::<Vec<_>>();
        for (column, published) in table.columns.iter().zip(&row.values) {
            let share = |output: &&Value| output.pointer(column.stability.as_deref()?)?.as_f64();
            let values = outputs.iter().filter_map(share).map(|share| 100.0 * share);
            let Some(Mean { mean, ci95, n }) = Mean::of(&values.collect::<Vec<_>>()) else {
                continue;
            };
            let interval = ci95
                .map(|(low, high)| format!(" [{}, {}]", two_decimals(low), two_decimals(high)))
                .unwrap_or_default();
            rows.push(vec![
                format!("  {}", row.title()),
                column.name.clone(),
                table.metric_of(column).with_unit(&published.text),
                format!("ours {}{interval}, n={n}", two_decimals(mean)),
            ]);
        }
    }
    if !rows.is_empty() {
        say_markdown(&format!("{}: {} ({})", result.source.label, table.what, table.id));
        say_rows(rows);
        say_notes(table);
    }
}
