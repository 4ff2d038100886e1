//! Messages about names that do not exist.

use pe_zoo::settings::nearest;

/// Message that there is no `kind` of this name, with the nearest known one and all of them.
pub fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let near = did_you_mean(name, known.clone());
    format!("unknown {kind} `{name}`{near}; known: {}", known.collect::<Vec<_>>().join(", "))
}

/// The known name with the most similar spelling, in parentheses; empty if none is near.
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"))
}
