//! Messages about names that do not exist.

use pe_zoo::settings::nearest;

/// Number of known names in a message without a suggestion.
const SHOWN: usize = 12;

/// Message that there is no `kind` of this name, with the nearest known one, or the first of those that are known.
pub fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let near = did_you_mean(name, known.clone());
    if !near.is_empty() {
        return format!("unknown {kind} `{name}`{near}");
    }
    let shown = known.clone().take(SHOWN).collect::<Vec<_>>().join(", ");
    let more = match known.count().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("unknown {kind} `{name}`; known: {shown}{more}")
}

/// The known name with the most similar spelling, in parentheses; empty if none is near.
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"))
}
