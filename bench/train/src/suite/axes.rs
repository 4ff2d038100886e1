//! Axes: settings of a workload with several values, expanded to workload variants.

use pe_zoo::settings::nearest;
use serde_json::{Map, Value};

use super::error::{FieldError, at};
use super::file::{SuiteFile, WorkloadSection, merged};
use super::task_fields;
use super::values::{list, set_at};

/// Sections of a workload that may contain the path of an axis.
const SECTIONS: [&str; 4] = ["task", "model", "train", "eval"];

/// Workload with one value of each axis.
pub(super) struct WorkloadVariant {
    /// The workload's name, followed by what varies: `counting variables=3`.
    pub(super) name: String,
    /// Location of the variant in error messages.
    pub(super) place: String,
    /// Merged [`SECTIONS`] of the variant by their names.
    sections: Map<String, Value>,
}

impl WorkloadVariant {
    /// Returns one of [`SECTIONS`].
    pub(super) fn section(&self, name: &str) -> Value {
        self.sections.get(name).cloned().unwrap_or_default()
    }
}

/// Number of variants of the axes, which are only checked by [`expand`].
pub(super) fn count(axes: &Map<String, Value>) -> usize {
    let lens = axes.values().map(|values| values.as_array().map_or(1, Vec::len));
    lens.fold(1, usize::saturating_mul)
}

/// Returns the cross product of a workload's axes, the last axis varying fastest; axes are in the order of their
/// paths.
///
/// # Errors
/// Path of the field and the reason.
pub(super) fn expand(
    file: &SuiteFile,
    workload: &WorkloadSection,
) -> Result<Vec<WorkloadVariant>, FieldError> {
    let place = format!("workload `{}`", workload.name);
    let task = task_fields(&workload.task).map_err(at(format!("{place}.task")))?;
    let plain = [
        task,
        merged(&file.model, &workload.model),
        merged(&file.train, &workload.train),
        merged(&file.eval, &workload.eval),
    ];
    let mut axes = Vec::new();
    for (path, values) in &workload.axes {
        let field = format!("{place}.axes.`{path}`");
        check_path(path).map_err(at(&field))?;
        axes.push((path.as_str(), list(values).map_err(at(&field))?));
    }
    // Sorted here and not left to the map type, which a dependency may switch.
    axes.sort_by_key(|(path, _)| *path);
    let labels = labels(&axes.iter().map(|(path, _)| *path).collect::<Vec<_>>());
    let sections = SECTIONS.map(str::to_owned).into_iter().zip(plain.map(Value::Object)).collect();
    let mut variants = vec![WorkloadVariant { name: workload.name.clone(), place, sections }];
    for ((path, values), label) in axes.into_iter().zip(labels) {
        let mut next = Vec::with_capacity(variants.len() * values.len());
        for variant in &variants {
            for value in values {
                let mut sections = variant.sections.clone();
                let place = format!("{} ({path} = {value})", variant.place);
                set_at(&mut sections, path, value.clone()).map_err(at(&place))?;
                let name = format!("{} {label}={}", variant.name, text(value));
                next.push(WorkloadVariant { name, place, sections });
            }
        }
        variants = next;
    }
    Ok(variants)
}

/// Checks that a path leads into one of [`SECTIONS`].
fn check_path(path: &str) -> Result<(), String> {
    let (first, inner) = path.split_once('.').unwrap_or((path, ""));
    if SECTIONS.contains(&first) && !inner.is_empty() {
        return Ok(());
    }
    let near = nearest(first, SECTIONS)
        .map_or_else(String::new, |near| format!("; did you mean `{near}.…`?"));
    Err(format!(
        "expected a path in quotes that begins with task, model, train or eval, such as \
         \"task.variables\"{near}"
    ))
}

/// Returns the shortest suffixes of the paths that are unique.
fn labels<'a>(paths: &[&'a str]) -> Vec<&'a str> {
    let end = |path: &'a str, parts: usize| {
        let from = path.rmatch_indices('.').nth(parts - 1).map_or(0, |(at, _)| at + 1);
        &path[from..]
    };
    paths
        .iter()
        .map(|path| {
            let parts = 1..=path.split('.').count();
            let mut ends = parts.map(|parts| (parts, end(path, parts)));
            let alone = ends.find(|(parts, short)| {
                paths.iter().filter(|other| end(other, *parts) == *short).count() == 1
            });
            alone.map_or(*path, |(_, short)| short)
        })
        .collect()
}

/// Formats a value for a name.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
