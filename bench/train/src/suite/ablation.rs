//! Ablations: a base encoding, its settings varied one at a time, and other variants of it.

use pe_zoo::Combination;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::encodings::{Named, encoding, read_all};
use super::error::{FieldError, at};
use super::values::{list, set_at};

/// Section `[ablation]` of a suite file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AblationSection {
    /// Base encoding, written as in `encodings`.
    base: Value,
    /// Lists of values by the name of a setting of the base. Each value makes one variant, with all other settings as
    /// in the base; the value of the base itself makes no variant.
    #[serde(default)]
    axes: Map<String, Value>,
    /// Further encodings, written as in `encodings`.
    #[serde(default)]
    changes: Vec<Value>,
}

impl AblationSection {
    /// Returns the name of the base, and all encodings with the base first.
    ///
    /// # Errors
    /// Path of the field and the reason.
    pub(super) fn encodings(&self) -> Result<(String, Vec<Named>), FieldError> {
        let base = encoding(&self.base).map_err(at("ablation.base"))?;
        let name = base.0.clone();
        let mut all = vec![base];
        for (field, values) in &self.axes {
            let path = format!("ablation.axes.`{field}`");
            for value in list(values).map_err(at(&path))? {
                let change = changed(&all[0].1, field, value).map_err(at(&path))?;
                if all.iter().all(|(_, known)| *known != change) {
                    all.push((change.to_string(), change));
                }
            }
        }
        all.extend(read_all(&self.changes).map_err(at("ablation.changes"))?);
        if all.len() == 1 {
            let reason = "no change, expected at least one change, or `axes` with values that differ from the base";
            return Err(at("ablation.changes")(reason.to_owned()));
        }
        Ok((name, all))
    }
}

/// Returns the base with another value of one setting.
fn changed(base: &Combination, field: &str, value: &Value) -> Result<Combination, String> {
    let [part] = base.parts() else {
        return Err(format!(
            "`{base}` has several parts, so the setting is ambiguous; list the changed encodings \
             under `changes`"
        ));
    };
    let mut fields = part.fields().clone();
    set_at(&mut fields, field, value.clone())?;
    let part = part.reread(fields).map_err(|error| error.to_string())?;
    Combination::try_from(part).map_err(|error| error.to_string())
}
