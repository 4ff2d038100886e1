//! `pe-bench report`: reports from existing records.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use percent_encoding::{percent_encode, utf8_percent_encode};
use records::number::count;
use records::settings::Settings;
use reports::document::Table;
use serde::{Deserialize, Serialize};

use super::columns::TerminalTable;
use super::folders;
use super::page::{LinkArgs, NOT_IN_LINKS, OpenArgs};
use super::prose::say_markdown;
use super::references::known;
use train::speed::SpeedRow;
use train::suite::{self, Overrides};

/// Default output folder of a report over several results folders.
pub(super) const ALL: &str = "results/report";

/// Criteria of a report: when a run counts as solved, and the base of an ablation.
#[derive(Args, Clone, Default)]
pub(crate) struct Criteria {
    /// TOML file with the settings of the report. The fields are the same as in the `[report]` section of a suite.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Base of an ablation: the name, in the suite, of the encoding with which all other encodings are compared.
    #[arg(long, value_name = "NAME")]
    ablation_base: Option<String>,
}

/// Option that names the base of an ablation.
pub(super) const BASE: &str = "--ablation-base";

impl Criteria {
    /// Base of the ablation that the command line names.
    pub(super) fn ablation_base(&self) -> Option<&str> {
        self.ablation_base.as_deref()
    }

    /// Settings of the report: those of the file if one is given, otherwise `suite`'s; with the ablation base, if given.
    ///
    /// # Errors
    /// If the file cannot be read, or a field is unknown or out of range; the error names it.
    pub(super) fn over(&self, suite: Settings) -> anyhow::Result<Settings> {
        let mut settings = match &self.settings {
            Some(path) => read(path)?,
            None => suite,
        };
        if let Some(base) = &self.ablation_base {
            settings.ablation_base = Some(base.clone());
        }
        settings.check()?;
        Ok(settings)
    }
}

fn read(path: &Path) -> anyhow::Result<Settings> {
    let text = tasks::read_text(path).context("--settings")?;
    toml::from_str(&text).map_err(|error| {
        let said = pe_zoo::settings::explain(&error.to_string());
        anyhow::anyhow!("--settings {}: {said}", path.display())
    })
}

/// Arguments of `report`.
#[derive(Args, Clone)]
pub(crate) struct ReportArgs {
    /// Results folders (with `cells` or `records.parquet`), or folders that contain results folders.
    #[arg(required = true)]
    pub(super) results: Vec<PathBuf>,
    /// Output folder; default: the results folder itself, or results/report for several results folders.
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Formats to write, separated by commas; default: all.
    #[arg(long, value_delimiter = ',', value_name = "NAME", value_parser = formats())]
    pub(super) formats: Vec<String>,
    #[command(flatten)]
    pub(super) criteria: Criteria,
    #[command(flatten)]
    pub(super) links: LinkArgs,
    #[command(flatten)]
    pub(super) page: OpenArgs,
}

/// Title and criteria of a suite, which `run` keeps beside its records for later reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredReport {
    /// Title of the suite.
    pub(super) title: String,
    /// Criteria of the report.
    pub(super) settings: Settings,
}

/// File of a [`StoredReport`] in a results folder.
pub(super) const STORED: &str = "report.json";

impl StoredReport {
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        // Every worker of a sweep writes it, and others read it at the same time.
        let (path, text) = (folder.join(STORED), serde_json::to_string_pretty(self)? + "\n");
        if std::fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            return Ok(());
        }
        let written = records::store::write_atomically(&path, text.as_bytes());
        Ok(written.map_err(tasks::FileError::of("write", &path))?)
    }

    /// Reads the file of a results folder; `None` if it has none.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let path = folder.join(STORED);
        // A link that leads nowhere is damage, not absence.
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let advice = || {
            format!(
                "{}: expected a title and settings; delete the file to report without them, or run the suite again, which \
                 writes the file again",
                path.display()
            )
        };
        let text = tasks::read_text(&path).with_context(advice)?;
        Ok(Some(serde_json::from_str(&text).with_context(advice)?))
    }
}

/// Returns the title and criteria of a built-in suite; the name of any other, with the defaults.
fn stored_of(suite: &str) -> StoredReport {
    let text = suite::BUILT_IN.iter().find(|(name, _)| *name == suite);
    let parsed = text.and_then(|(name, text)| suite::parse(name, text, &Overrides::default()).ok());
    match parsed {
        Some(suite) => StoredReport { title: suite.title, settings: suite.report },
        None => StoredReport { title: suite.to_owned(), settings: Settings::default() },
    }
}

/// Columns of the main table that a narrow terminal drops, in this order.
const SPARE: [&str; 5] =
    ["time of the training", "FLOPs of the training", "FLOPs of a step", "step time", "first rank"];

/// Prints the main table of a report, with a star at the results of the first rank.
pub(super) fn say_results(table: &Table) {
    let mut columns = TerminalTable { spare: &SPARE, ..TerminalTable::from(table) };
    let rows = table.rows.iter().zip(&mut columns.rows);
    let mut has_first = false;
    for (cell, text) in rows.flat_map(|(row, texts)| row.iter().zip(texts)) {
        if cell.strong {
            text.push('*');
            has_first = true;
        }
    }
    columns.say();
    let mut scores: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (workload, score) in table.columns.iter().filter_map(|head| head.split_once('\n')) {
        scores.entry(score).or_default().push(workload);
    }
    let is_one = scores.len() == 1;
    let scores = scores.into_iter().map(|(score, of)| {
        if is_one { score.to_owned() } else { format!("{}: {score}", of.join(", ")) }
    });
    let scores = scores.collect::<Vec<_>>().join("; ");
    if !scores.is_empty() {
        say_markdown(&format!("Columns: {scores}."));
    }
    if has_first {
        say_markdown(
            "*: first rank: the best encoding, and those that do not differ significantly from it with these seeds, \
             unless they are far behind.",
        );
    }
}

pub(super) fn formats() -> clap::builder::PossibleValuesParser {
    reports::formats::FORMATS.iter().map(|(name, _)| *name).collect::<Vec<_>>().into()
}

pub(super) fn report(arguments: &ReportArgs) -> anyhow::Result<()> {
    let ReportArgs { results, out, formats, criteria, links, page } = arguments;
    let folders = folders::or_all(results)?;
    let named = results.iter().map(|r| r.display().to_string()).collect::<Vec<_>>();
    let (frames, mut meta, stored) = gathered(&folders, &named.join(" "))?;
    meta.links.clone_from(&links.links);
    let settings = criteria.over(stored)?;
    if let Some(base) = criteria.ablation_base() {
        let names = frames.trained()?.into_iter().map(|[name, ..]| name).collect::<BTreeSet<_>>();
        let known = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        anyhow::ensure!(
            names.contains(base),
            "{BASE}: no record has the encoding `{base}`, expected one of {known}"
        );
    }
    let out = out.clone().unwrap_or_else(|| match folders.as_slice() {
        [one] => one.clone(),
        // The report of several folders is not written to any of them.
        _ => PathBuf::from(ALL),
    });
    folders::refuse_other(&out)?;
    for folder in &folders {
        add_files(folder, &out, &mut meta)?;
    }
    let rendered = reports::render_report(frames, &meta, &settings, formats)?;
    reports::write_files(&rendered.files, &out)?;
    say_results(&rendered.table);
    let first = rendered.files.first().map_or_else(|| out.clone(), |file| out.join(&file.path));
    page.show("Report", &first);
    folders::refuse_left_out("report", &meta.skipped)
}

/// Reads the records of the folders as frames, the metadata of their report, and its criteria where the folders agree on
/// them; `named` are the arguments of the command.
pub(super) fn gathered(
    folders: &[PathBuf],
    named: &str,
) -> anyhow::Result<(analysis::frame::Frames, analysis::ReportMeta, Settings)> {
    let mut frames = analysis::frame::Frames::of(&[])?;
    let mut skipped = Vec::new();
    let (mut titles, mut settings) = (BTreeSet::new(), Vec::new());
    for (folder, (own, errors)) in folders.iter().zip(folders::frames(folders)?) {
        skipped.extend(folders::messages(&errors));
        let stored = match StoredReport::read(folder)? {
            Some(stored) => vec![stored],
            None => own.suites()?.iter().map(|suite| stored_of(suite)).collect(),
        };
        for StoredReport { title, settings: own } in stored {
            titles.insert(title);
            settings.push(own);
        }
        frames.append(own)?;
    }
    let looked = folders::names(folders);
    if frames.suites()?.is_empty() {
        folders::refuse_left_out("report", &skipped)?;
        anyhow::bail!(
            "{looked}: the folder `cells` has no readable record, expected a results folder of `pe-bench run`"
        );
    }
    let title = titles.into_iter().collect::<Vec<_>>().join("; ");
    let command = format!("pe-bench report {named}");
    let first = settings.first().filter(|first| settings.iter().all(|other| other == *first));
    let settings = first.cloned().unwrap_or_default();
    let known = known(&frames.trained()?);
    Ok((frames, analysis::ReportMeta { title, command, skipped, ..known }, settings))
}

/// Adds pages about single cells and measured training steps that stand beside the records of a folder to a report in
/// `out`.
pub(super) fn add_files(
    folder: &Path,
    out: &Path,
    meta: &mut analysis::ReportMeta,
) -> anyhow::Result<()> {
    meta.inspected.extend(inspected(folder, out)?);
    measured(folder, meta)
}

/// File of training steps measured in one run in a results folder: the output of `pe-bench speed --json`.
const MEASURED: &str = "speed.jsonl";

/// Adds the training steps that were measured beside a results folder, those of the first folder that has them.
fn measured(folder: &Path, meta: &mut analysis::ReportMeta) -> anyhow::Result<()> {
    let file = folder.join(MEASURED);
    if !file.exists() {
        return Ok(());
    }
    let path = file.display();
    if !meta.measured.is_empty() {
        meta.skipped.push(format!(
            "{path}: not used, because a report shows the step times of one folder only"
        ));
        return Ok(());
    }
    let text = tasks::read_text(&file)?;
    for (line, json) in tasks::json_lines(&text) {
        let row: SpeedRow = serde_json::from_str(json).with_context(|| {
            format!("{path}: line {line}: expected a row of `pe-bench speed --json`")
        })?;
        let SpeedRow { batch, len, dim, layers, threads, .. } = row;
        let number = |of: usize, noun: &str| count(of as u64, noun);
        let at = format!(
            "batches of {} of {}, {} of width {dim} and {}",
            number(batch, "sequence"),
            number(len, "token"),
            number(layers, "layer"),
            number(threads, "CPU thread")
        );
        anyhow::ensure!(
            meta.measured.is_empty() || meta.measured_at == at,
            "{path}: line {line} was measured with {at}, but the lines before it with {}; measure all encodings in one run",
            meta.measured_at
        );
        meta.measured_at = at;
        meta.measured.push(analysis::MeasuredStep {
            encoding: row.encoding,
            step_seconds: row.step_seconds,
            peak_bytes: row.peak_bytes,
        });
    }
    Ok(())
}

/// Returns the keys of the pages that `inspect` wrote to the folder `inspect` beside the cells, and their paths relative
/// to `out`.
fn inspected(folder: &Path, out: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let entries = std::fs::read_dir(folder.join("inspect")).into_iter().flatten();
    let key = |entry: std::fs::DirEntry| {
        let page = entry.path().join("index.html");
        page.is_file().then(|| entry.file_name().into_string().ok())?
    };
    let mut keys: Vec<String> = entries.filter_map(|entry| key(entry.ok()?)).collect();
    keys.sort();
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let way = way(&resolved(out)?, &resolved(folder)?);
    Ok(keys
        .into_iter()
        .map(|key| {
            let link = utf8_percent_encode(&key, NOT_IN_LINKS);
            (key.clone(), format!("{way}inspect/{link}/index.html"))
        })
        .collect())
}

/// Returns the absolute path of a file that need not exist, without links and `..` as far as it does.
fn resolved(path: &Path) -> Result<PathBuf, tasks::FileError> {
    let unknown = tasks::FileError::of("find", path);
    let path = std::path::absolute(path).map_err(unknown)?;
    let there = path.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(&path);
    let missing = path.strip_prefix(there).unwrap_or(Path::new(""));
    Ok(there.canonicalize().map_err(unknown)?.join(missing))
}

/// Returns the relative link from one absolute folder to another, empty or with `/` at its end.
fn way(from: &Path, to: &Path) -> String {
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let mut way = "../".repeat(from.components().count() - shared);
    for part in to.components().skip(shared) {
        let part = part.as_os_str().as_encoded_bytes();
        way.extend(percent_encode(part, NOT_IN_LINKS));
        way.push('/');
    }
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(encoding: &str, len: usize) -> String {
        let row = serde_json::json!({
            "encoding": encoding, "backend": "flex", "engine": "fused", "step_seconds": 0.5,
            "tokens_per_second": 8.0, "peak_bytes": null, "batch": 2, "len": len, "dim": 8,
            "heads": 1, "layers": 1, "threads": 1
        });
        format!("{row}\n")
    }

    #[test]
    fn pages_of_cells_are_linked_from_a_report_elsewhere() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("results/a");
        for (key, file) in [("k2", "index.html"), ("k1", "index.html"), ("k3", "other.html")] {
            std::fs::create_dir_all(folder.join("inspect").join(key)).unwrap();
            std::fs::write(folder.join("inspect").join(key).join(file), "").unwrap();
        }
        let links = |out: &str| {
            let found = inspected(&folder, &root.path().join(out)).unwrap();
            assert_eq!(found.iter().map(|(key, _)| &**key).collect::<Vec<_>>(), ["k1", "k2"]);
            found[0].1.clone()
        };
        assert_eq!(links("results/a"), "inspect/k1/index.html");
        assert_eq!(links("results/../results/a"), "inspect/k1/index.html");
        assert_eq!(links("doc/page"), "../../results/a/inspect/k1/index.html");
        assert_eq!(links("results/a/report"), "../inspect/k1/index.html");
        assert_eq!(inspected(root.path(), root.path()).unwrap(), []);

        let page = root.path().join("50 % (#2)/inspect/a b");
        std::fs::create_dir_all(&page).unwrap();
        std::fs::write(page.join("index.html"), "").unwrap();
        let found = inspected(&root.path().join("50 % (#2)"), root.path()).unwrap();
        let link = "50%20%25%20%28%232%29/inspect/a%20b/index.html";
        assert_eq!(found, [("a b".to_owned(), link.to_owned())]);
    }

    #[test]
    fn step_times_of_one_run_are_read_and_others_refused() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let write = |at: usize, lines: &[String]| {
            std::fs::write(folders[at].path().join(MEASURED), lines.concat()).unwrap();
        };
        let mut meta = analysis::ReportMeta::default();
        write(0, &[row("rope", 4), row("cope", 4)]);
        write(1, &[row("nope", 4)]);
        for folder in &folders {
            measured(folder.path(), &mut meta).unwrap();
        }
        let names: Vec<&str> = meta.measured.iter().map(|step| &*step.encoding).collect();
        assert_eq!(names, ["rope", "cope"]);
        assert_eq!(
            meta.measured_at,
            "batches of 2 sequences of 4 tokens, 1 layer of width 8 and 1 CPU thread"
        );
        assert!(meta.skipped.len() == 1 && meta.skipped[0].contains("of one folder"));
        for (second, expected) in [
            (row("cope", 5), "line 2 was measured with batches of 2 sequences of 5"),
            ("{}\n".to_owned(), "line 2: expected a row"),
        ] {
            write(1, &[row("rope", 4), second]);
            let found = measured(folders[1].path(), &mut analysis::ReportMeta::default());
            let said = found.unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        }
    }
}
