//! Plans of the built-in suites.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::collections::BTreeSet;

use sweep::SweepPlan;
use tasks::suite::text::TextConfig;
use train::experiment::Experiment;
use train::suite::{BUILT_IN, Overrides, parse};

#[test]
fn every_cell_of_every_suite_passes_its_checks_and_has_a_key_of_its_own() {
    for (name, text) in BUILT_IN {
        let mut suite = parse(name, text, &Overrides::default()).unwrap();
        let cells = suite.cells.len();
        suite.cells.iter_mut().for_each(with_a_text_that_needs_no_download);
        let plan = SweepPlan::new(suite).unwrap_or_else(|error| panic!("{name}: {error}"));
        let left_out = plan.unrunnable.iter().map(|left| left.cells).sum::<usize>();
        assert_eq!(plan.cells.len() + left_out, cells, "{name}");
        let keys = plan.cells.iter().map(|p| p.cell.key(&*p.task)).collect::<BTreeSet<_>>();
        // Nothing is trained twice.
        assert_eq!(keys.len(), plan.cells.len(), "{name}: two cells are the same");
    }
}

/// Replaces the text of a cell by a small corpus with characters as tokens, so that its settings can be checked
/// without downloads and without learning byte pairs.
fn with_a_text_that_needs_no_download(cell: &mut Experiment) {
    let Some(text) = cell.task.get::<TextConfig>() else { return };
    let corpus = TextConfig::default();
    if text.source != corpus.source {
        // It has no test part.
        cell.eval.splits = None;
        // Still another cell than one on that text, and than one on another corpus.
        cell.eval.seed += format!("{:?}", text.source).len() as u64;
        let (documents, eval_windows) = (text.documents, text.eval_windows);
        cell.task = TextConfig { documents, eval_windows, ..corpus }.into();
    }
}
