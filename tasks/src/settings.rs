//! Settings of a task: the [`TaskSettings`] trait, and [`TaskConfig`] for the settings of any task.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::ser::{Error as _, Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value};

use crate::error::TaskError;
use crate::generator::{Generated, Generator};
use crate::task::{Task, TaskMeta};

/// Defines settings with the default of each field behind it. Settings that are left out have their defaults, and unknown ones are
/// errors.
macro_rules! settings {
    ($(#[$about:meta])* $public:vis struct $name:ident {
        $($(#[$about_field:meta])* $public_field:vis $field:ident: $kind:ty = $default:expr,)+
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        $public struct $name {
            $($(#[$about_field])* $public_field $field: $kind,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default),+ }
            }
        }
    };
}
pub(crate) use settings;

/// Settings of one kind of task. Every [`Generator`] is one.
pub trait TaskSettings:
    Debug + Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Task that is built from the settings.
    type Task: Task + 'static;

    /// Facts about the task that hold for all settings.
    const META: &'static TaskMeta;

    /// Text of the file that defines the task. Its `//!` comment is the task's card.
    const SOURCE: &'static str;

    /// Checks the settings and builds the task.
    ///
    /// # Errors
    /// The first setting out of range, or a text that is not available.
    fn build(&self) -> Result<Self::Task, TaskError>;
}

impl<G: Generator> TaskSettings for G {
    type Task = Generated<G>;

    const META: &'static TaskMeta = G::META;

    const SOURCE: &'static str = G::SOURCE;

    fn build(&self) -> Result<Generated<G>, TaskError> {
        Generated::new(self.clone())
    }
}

/// Settings of any task, as a table with the task's id as `kind`: `{ kind = "flip-flop", ignore = 0.8 }`.
///
/// It is read through a [`TaskRegistry`](crate::registry::TaskRegistry), or by serde among the built-in tasks.
#[derive(Debug, Clone)]
pub struct TaskConfig(Arc<dyn AnySettings>);

impl TaskConfig {
    /// Facts about the configured task.
    pub fn meta(&self) -> &'static TaskMeta {
        self.0.meta()
    }

    /// Checks the settings and builds the task; a corpus is fetched if necessary.
    ///
    /// # Errors
    /// See [`TaskSettings::build`].
    pub fn build(&self) -> Result<Box<dyn Task>, TaskError> {
        self.0.build()
    }

    /// Returns the settings if they are of this type.
    pub fn get<S: TaskSettings>(&self) -> Option<&S> {
        let any: &dyn Any = &*self.0;
        any.downcast_ref()
    }
}

impl<S: TaskSettings> From<S> for TaskConfig {
    fn from(settings: S) -> Self {
        Self(Arc::new(settings))
    }
}

impl PartialEq for TaskConfig {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

impl Serialize for TaskConfig {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let settings = self.0.table().map_err(S::Error::custom)?;
        let mut map = to.serialize_map(Some(settings.len() + 1))?;
        map.serialize_entry("kind", self.meta().id)?;
        for (key, value) in &settings {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// Whether a setting that was added later has its default, with which it is left out of keys.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// [`TaskSettings`] in object-safe form.
trait AnySettings: Any + Debug + Send + Sync {
    fn meta(&self) -> &'static TaskMeta;
    fn table(&self) -> Result<Map<String, Value>, serde_json::Error>;
    fn build(&self) -> Result<Box<dyn Task>, TaskError>;
    fn equals(&self, other: &dyn AnySettings) -> bool;
}

impl<S: TaskSettings> AnySettings for S {
    fn meta(&self) -> &'static TaskMeta {
        S::META
    }

    fn table(&self) -> Result<Map<String, Value>, serde_json::Error> {
        serde_json::from_value(serde_json::to_value(self)?)
    }

    fn build(&self) -> Result<Box<dyn Task>, TaskError> {
        Ok(Box::new(TaskSettings::build(self)?))
    }

    fn equals(&self, other: &dyn AnySettings) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref() == Some(self)
    }
}
