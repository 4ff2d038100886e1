//! The setting of an encoding that acts through others.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::{Map, Value, json};

use super::{Combination, Registry};
use crate::card::Composition;
use crate::{EncodingConfig, PeError};

/// Encodings through which another one acts: a setting of a wrapper.
///
/// The encodings are those of the registry in which the wrapper is looked up, so that a wrapper in a crate of its own can act
/// through any encoding of its program. In a suite the setting is a table with the id as `type`, a list of such tables, or
/// an expression; in an expression it stands in brackets, as `interleaved(cope+rope)`, if the wrapper's `composition` is
/// [`Composition::Inner`](crate::card::Composition::Inner). It is written as a list of tables.
///
/// `check` of the wrapper checks the encodings with [`Combination::check`], and `build` builds them with
/// [`Combination::init`]; the [`Combined`](super::Combined) that it returns has every hook.
///
/// ```
/// use pe_zoo::compose::Inner;
/// let inner: Inner = serde_json::from_str(r#"[{ "type": "cope", "max_positions": 8 }, { "type": "rope" }]"#)?;
/// assert_eq!(inner.combination().to_string(), "cope{max_positions=8}+rope");
/// assert_eq!(inner, serde_json::from_str::<Inner>(r#""cope{max_positions=8}+rope""#)?);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Inner(Arc<Combination>);

/// Field that holds the id of an encoding.
const ID: &str = "type";

impl Inner {
    /// The encodings, which act together.
    pub fn combination(&self) -> &Combination {
        &self.0
    }

    /// Reads the setting; its encodings are those of `registry`.
    pub(super) fn read(registry: &Registry, value: Value) -> Result<Self, PeError> {
        let part = |value: Value| match value {
            Value::Object(mut fields) => match fields.remove(ID) {
                Some(Value::String(id)) => registry.configured(&id, fields),
                _ => Err(refused(&Value::Object(fields))),
            },
            other => Err(refused(&other)),
        };
        let combination = match value {
            Value::String(text) => registry.parse(&text)?,
            Value::Array(parts) => {
                Combination::new(parts.into_iter().map(part).collect::<Result<_, _>>()?)?
            }
            table => Combination::new(vec![part(table)?])?,
        };
        Ok(Self::from(combination))
    }
}

/// Encodings of the layers of a pattern, in order; `None` if the encoding has no pattern.
pub(super) fn layers(part: &EncodingConfig) -> Option<Vec<Combination>> {
    let Composition::Layers { field } = part.composition() else { return None };
    let Some(Value::Array(pattern)) = part.fields().get(field) else { return None };
    let read = |value: &Value| {
        Some(Inner::read(part.registry(), value.clone()).ok()?.combination().clone())
    };
    pattern.iter().map(read).collect()
}

fn refused(value: &Value) -> PeError {
    let reason = format!("expected an expression, or a table with the id of an encoding as `{ID}`");
    PeError::Expression { text: value.to_string(), at: 1, reason }
}

impl From<Combination> for Inner {
    fn from(combination: Combination) -> Self {
        Self(Arc::new(combination))
    }
}

impl PartialEq for Inner {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Serialize for Inner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let table = |part: &EncodingConfig| {
            let id = std::iter::once((ID.to_owned(), json!(part.card().id)));
            let fields = part.fields();
            if fields.contains_key(ID) {
                let reason = format!(
                    "{} has a setting `{ID}`, which names the encoding here",
                    part.card().id
                );
                return Err(ser::Error::custom(reason));
            }
            Ok(id.chain(fields.clone()).collect::<Map<_, _>>())
        };
        let tables = self.0.parts().iter().map(table).collect::<Result<Vec<_>, _>>()?;
        tables.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Inner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::read(&Registry::being_read(), value).map_err(de::Error::custom)
    }
}
