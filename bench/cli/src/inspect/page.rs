//! Inspection of a cell written to files: a figure for each layer and quantity, the numbers as JSON, and a page with
//! all of them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use analysis::PageLink;
use records::GateScore;
use reports::document::Table;
use reports::{PageFoot, PlainPage};
use serde_json::{Value, json};
use tasks::{FileError, Sample, Task, write_in};

use super::svg::{TokenAxis, escape, figure, svg};
use train::inspect::maps::averaged;
use train::run::{AttentionMap, Observed};

/// Maximum number of tokens of a sample; the maps of all heads and layers are held in memory.
pub(super) const MAX_TOKENS: usize = 1024;
/// Maximum number of tokens with a cell each; more do not fit a screen.
const OWN_CELLS: usize = 256;
/// Maximum number of cells in each direction of a map of more tokens, whose cells are averages.
const AVERAGED_CELLS: usize = 128;

/// Cell and sample shown on an inspection page.
#[derive(Debug)]
pub(super) struct InspectedCell<'a> {
    /// Key of the cell.
    pub(super) key: &'a str,
    /// Time at which the run of the cell started, in UTC.
    pub(super) started: &'a str,
    /// Links of the page.
    pub(super) links: &'a [PageLink],
    /// Workload of the cell.
    pub(super) workload: &'a str,
    /// Name of its encoding.
    pub(super) encoding: &'a str,
    /// Name of its encoding in titles.
    pub(super) label: &'a str,
    /// Seed of the cell.
    pub(super) seed: u64,
    /// Split of the sample.
    pub(super) split: &'a str,
    /// Number of the sample in its evaluation set, from 0.
    pub(super) index: usize,
    /// Sample that the maps belong to.
    pub(super) sample: &'a Sample,
    /// Task of the sample.
    pub(super) task: &'a dyn Task,
    /// Observed maps of the sample.
    pub(super) seen: &'a Observed,
    /// Gate scores of the model.
    pub(super) gates: &'a [GateScore],
    /// Marked tokens of the sample, against which gates are scored.
    pub(super) marked: Option<Vec<bool>>,
    /// Description of the marked tokens: `tokens that the task counts`.
    pub(super) marks: &'a str,
    /// Name of the encoding whose maps are subtracted.
    pub(super) against: Option<&'a str>,
}

impl InspectedCell<'_> {
    fn texts(&self) -> Vec<String> {
        self.sample.tokens.iter().map(|token| self.task.token_text(*token)).collect()
    }

    /// Number of tokens that a cell of a map stands for in each direction.
    fn tokens_per_cell(&self) -> usize {
        // The last token is never read.
        let read = self.sample.tokens.len() - 1;
        if read <= OWN_CELLS { 1 } else { read.div_ceil(AVERAGED_CELLS) }
    }

    /// Data of all figures as JSON; each row has the columns that it sees.
    pub(super) fn json(&self) -> Value {
        let seen = averaged(self.seen, self.tokens_per_cell());
        let map = |map: &AttentionMap| json!({ "name": map.look.id(), "heads": map.heads });
        let layer = |(index, maps): (usize, &Vec<AttentionMap>)| json!({ "layer": index, "maps": maps.iter().map(map).collect::<Vec<_>>() });
        json!({
            "cell": self.key,
            "workload": self.workload,
            "encoding": self.encoding,
            "seed": self.seed,
            "split": self.split,
            "sample": self.index,
            "tokens": self.texts(),
            "scored": self.sample.scored,
            "counted": self.marked,
            "against": self.against,
            "tokens_per_cell": self.tokens_per_cell(),
            "layers": seen.layers.iter().enumerate().map(layer).collect::<Vec<_>>(),
            "gate_scores": self.gates,
        })
    }

    /// Writes `inspect.json`, `layer-N-NAME.svg` and `index.html` into a folder, which is created, and returns the path of
    /// the page.
    ///
    /// # Errors
    /// [`FileError`] of the first file that cannot be written.
    pub(super) fn write(&self, folder: &Path) -> Result<PathBuf, FileError> {
        std::fs::create_dir_all(folder).map_err(FileError::of("create", folder))?;
        let texts = self.texts();
        // The last token is never read.
        let read = texts.len() - 1;
        let tokens = self.tokens_per_cell();
        let seen = averaged(self.seen, tokens);
        let firsts: Vec<String> = texts[..read].iter().step_by(tokens).cloned().collect();
        let any = |marks: &[bool]| -> Vec<bool> {
            marks.chunks(tokens).map(|block| block.contains(&true)).collect()
        };
        let counted = self.marked.as_deref().unwrap_or_default();
        let axis = TokenAxis {
            texts: &firsts,
            asked: &any(&self.sample.scored[1..]),
            counted: &any(&counted[..counted.len().min(read)]),
            tokens,
        };
        let mut figures = String::new();
        for (layer, maps) in seen.layers.iter().enumerate() {
            for (number, map) in maps.iter().enumerate() {
                let before = maps[..number].iter().filter(|other| other.look == map.look).count();
                // Two parts of a combination may have gates.
                let part = if before > 0 { format!("-{}", before + 1) } else { String::new() };
                let name = format!("layer-{}-{}{part}.svg", layer + 1, map.look.id());
                write_in(folder, &name, svg(layer, map, &axis))?;
                figures += &figure(layer, map, &axis);
            }
        }
        write_in(folder, "inspect.json", self.json().to_string())?;
        write_in(folder, "index.html", self.html(folder, &texts, &figures))?;
        Ok(folder.join("index.html"))
    }

    fn scores(&self) -> Table {
        let row = |score: &GateScore| {
            let (layer, head) = (score.layer + 1, score.head + 1);
            let texts = [format!("{}, layer {layer}, head {head}", score.gate)];
            let numbers = [format!("{:.3}", score.auc), score.rows.to_string()];
            texts.into_iter().chain(numbers).map(Into::into).collect()
        };
        let columns = ["gate", "score", "rows"].map(str::to_owned).to_vec();
        let caption = "Gate scores".to_owned();
        Table { caption, columns, rows: self.gates.iter().map(row).collect(), ..Table::default() }
    }

    /// Returns a sentence on the gate that agrees best, or least, with the marked tokens.
    fn what_to_see(&self) -> Option<String> {
        let far = |score: &&GateScore| (score.auc - 0.5).abs();
        let best = self.gates.iter().max_by(|a, b| far(a).total_cmp(&far(b)))?;
        let (layer, head) = (best.layer + 1, best.head + 1);
        let how = if best.auc < 0.5 { "lower" } else { "higher" };
        Some(format!(
            "Look at layer {layer}, head {head}: the values of {} are {how} at {} than elsewhere (AUC {:.3}).",
            best.gate, self.marks, best.auc
        ))
    }

    fn html(&self, folder: &Path, texts: &[String], figures: &str) -> String {
        let against = self.against.map_or_else(String::new, |other| format!(" − {other}"));
        let title = format!("{}{against}: attention on {}", self.label, self.workload);
        let mut out = String::new();
        if let Some(text) = self.what_to_see() {
            let _ = writeln!(out, "<p><b>{}</b></p>", escape(&text));
        }
        let _ = write!(
            out,
            "<p>Sample {} of {}, cell <code>{}</code>, seed {}. Each row shows how one token attends to the \
             tokens before it and to itself, which are the columns. Rows with orange names predict a scored token.",
            self.index,
            escape(self.split),
            escape(self.key),
            self.seed
        );
        if self.marked.is_some() {
            let _ = write!(out, " Columns with blue names are {}.", self.marks);
        }
        if let Some(other) = self.against {
            let _ = write!(
                out,
                " Each value is the value of {} minus the value of {}.",
                escape(self.encoding),
                escape(other)
            );
        }
        if self.tokens_per_cell() > 1 {
            let tokens = self.tokens_per_cell();
            let _ =
                write!(out, " Each cell of a map is the mean over {tokens} by {tokens} tokens.");
        }
        out.push_str("</p>\n<p class=\"text\">");
        let counted = self.marked.as_deref().unwrap_or_default();
        for (t, text) in texts.iter().enumerate() {
            let text = escape(text);
            let text = if self.sample.scored[t] { format!("<u>{text}</u>") } else { text };
            let text = if counted.get(t) == Some(&true) { format!("<b>{text}</b>") } else { text };
            let _ = write!(out, "{text} ");
        }
        out.push_str("</p>\n");
        if !self.gates.is_empty() {
            out.push_str(
                "<h2 id=\"gate-scores\">Gate scores</h2>\n<p>A score shows how well a gate agrees with the marked \
                 tokens. In each row, it is the area under the ROC curve (AUC) when the gate's values are used to \
                 detect the marked tokens; the page shows the mean over the rows. The score is 1 if the values at \
                 marked tokens are larger than all other values, 0 if they are smaller, and 0.5 if they are unrelated.</p>\n",
            );
            out.push_str(&reports::html_table(&self.scores()));
        }
        out.push_str("<h2 id=\"maps\">Maps</h2>\n");
        out.push_str(figures);
        reports::plain_page(&PlainPage {
            title: &title,
            menu: &way_back(folder, self.links),
            body: &out,
            foot: PageFoot {
                title: &title,
                date: Some(self.started).filter(|date| !date.is_empty()),
                links: self.links,
                data: Some("inspect.json"),
                up: "",
            },
        })
    }
}

/// Returns the way from a page to its report, as HTML: the link of this name, or the report of the results folder that has the
/// page; nothing for a page elsewhere.
fn way_back(folder: &Path, links: &[PageLink]) -> String {
    const REPORT: &str = "All results";
    const INDEX: &str = "../../index.html";
    let is_of_report =
        folder.parent().and_then(Path::file_name).is_some_and(|name| name == "inspect");
    let given = links.iter().find(|link| link.name == REPORT);
    let address = given.map(|link| &*link.address);
    address
        .or_else(|| (is_of_report && folder.join(INDEX).is_file()).then_some(INDEX))
        .map_or_else(String::new, |address| {
            format!("<ul>\n<li><a href=\"{}\">{REPORT}</a></li>\n</ul>\n", escape(address))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_leads_to_the_report() {
        let results = std::env::temp_dir().join(format!("pe-zoo-way-back-{}", std::process::id()));
        let page = results.join("inspect/k");
        std::fs::create_dir_all(&page).unwrap();
        assert_eq!(way_back(&page, &[]), "");
        std::fs::write(results.join("index.html"), "").unwrap();
        assert!(way_back(&page, &[]).contains("\"../../index.html\""));
        std::fs::remove_dir_all(results).unwrap();
        assert_eq!(way_back(Path::new("a/b/k"), &[]), "");
        let link = PageLink { name: "All results".into(), address: "../../zoo/index.html".into() };
        assert!(way_back(Path::new("site/inspect/k"), &[link]).contains("../../zoo/index.html"));
    }
}
