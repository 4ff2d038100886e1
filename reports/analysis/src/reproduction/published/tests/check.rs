//! Conditions of published tables that types do not enforce, for the tests of the files.

use std::collections::BTreeSet;

use crate::reproduction::published::{PublishedMetric, PublishedTable, SmallerSuite};

impl PublishedTable {
    /// Checks the conditions that the types do not enforce. Fails with the place and the reason.
    pub(in crate::reproduction) fn check(&self) -> Result<(), (String, String)> {
        let wrong = |what: &str, reason: &str| {
            Err((format!("table `{}`: {what}", self.id), reason.to_owned()))
        };
        let plans = [&self.task, &self.instead, &self.missing];
        if plans.into_iter().flatten().count() != 1 || (self.suite.is_some() && self.task.is_none())
        {
            let reason =
                "expected exactly one of `task` (with or without `suite`), `instead` and `missing`";
            return wrong("plan", reason);
        }
        let records = self.task.is_some();
        let judgeable = records && self.unlike.is_empty();
        if judgeable == self.needs.is_some() {
            let reason = "expected the requirement for a verdict where there is `missing`, `instead` or `unlike`, and \
                          nothing elsewhere";
            return wrong("needs", reason);
        }
        // A column of scores is measured by another metric, any other by its own.
        let measured = |smaller: &SmallerSuite, other: bool| smaller.metric.is_some() == other;
        let unit = |smaller: &SmallerSuite| match &smaller.metric {
            Some(PublishedMetric::Other(unit)) => Some(unit.clone()),
            _ => None,
        };
        if let Some(unit) = self.smaller.iter().find_map(unit) {
            return wrong(
                "smaller.metric",
                &format!("`{unit}`, expected a metric that records have"),
            );
        }
        let mut columns = BTreeSet::new();
        for column in &self.columns {
            let at = format!("column `{}`", column.name);
            if !columns.insert(column.name.as_str()) {
                return wrong(&at, "stands twice");
            }
            if column.stability.is_some() == self.stability.is_empty() {
                let reason = "expected a `stability` where the table has one, and nowhere else";
                return wrong(&at, reason);
            }
            let other = matches!(self.metric_of(column), PublishedMetric::Other(_));
            let fits = match &column.split {
                Some(_) if self.smaller.is_empty() => records,
                Some(_) => self.smaller.iter().all(|smaller| measured(smaller, other)),
                None => !records,
            };
            if !fits {
                let reason = "expected a `split` where the table has a `task`, where it has a `smaller` suite that \
                              measures the column, and none elsewhere";
                return wrong(&at, reason);
            }
            if !(column.length_ratio.is_finite() && column.length_ratio > 0.0) {
                return wrong(
                    &at,
                    &format!("length_ratio {}, expected above 0", column.length_ratio),
                );
            }
            if records && other {
                return wrong(&at, "records do not hold this metric");
            }
        }
        let mut rows = BTreeSet::new();
        for row in &self.rows {
            let at = format!("row `{}`", row.title());
            if !rows.insert(row.title()) || row.title().is_empty() {
                return wrong(&at, "expected a `name` or `encoding` that no other row has");
            }
            if row.trained_as.is_some() && row.encoding.is_none() {
                return wrong(&at, "`trained_as` without an `encoding`");
            }
            if records && row.encoding.is_none() {
                return wrong(&at, "a table with a `task` needs an `encoding`");
            }
            if row.values.len() != self.columns.len() {
                let (found, expected) = (row.values.len(), self.columns.len());
                return wrong(
                    &at,
                    &format!("{found} values, expected {expected}, one for each column"),
                );
            }
            for name in row.deviations.keys().chain(row.standard_errors.keys()) {
                if !columns.contains(name.as_str()) {
                    return wrong(&at, &format!("no column is called `{name}`"));
                }
            }
            for (column, printed) in self.columns.iter().zip(&row.values) {
                let Some(value) = printed.value else { continue };
                let most = if self.metric_of(column).is_percent() { 100.0 } else { f64::MAX };
                let least =
                    if *self.metric_of(column) == PublishedMetric::Perplexity { 1.0 } else { 0.0 };
                if !(least..=most).contains(&value) {
                    return wrong(&at, &format!("{value}, expected {least} to {most}"));
                }
            }
        }
        Ok(())
    }
}
