//! Registry of the encodings that a program knows by id, and an encoding with its settings.

use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

use crate::card::{Card, Composition, Properties};
use crate::encoding::PositionEncoding;
use crate::erased::AnyEncoding;
use crate::{Cost, Dims, PeError, settings};

/// Encodings by id: those of this crate and any others.
///
/// ```
/// use pe_zoo::Registry;
///
/// let registry = Registry::builtin();
/// let cope = registry.encoding("cope")?;
/// assert_eq!(cope.card().label, "CoPE");
/// # Ok::<(), pe_zoo::PeError>(())
/// ```
#[derive(Clone)]
pub struct Registry {
    entries: Arc<BTreeMap<&'static str, Arc<Entry>>>,
}

/// Lists the ids.
impl Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.entries.keys()).finish()
    }
}

thread_local! {
    /// Registry whose settings this thread reads at the moment.
    static READING: RefCell<Option<Registry>> = const { RefCell::new(None) };
}

impl Registry {
    /// Creates a registry of these entries, whose ids must differ.
    pub(crate) fn of(entries: Vec<Entry>) -> Self {
        let entries = entries.into_iter().map(|entry| (entry.card.id, Arc::new(entry)));
        Self { entries: Arc::new(entries.collect()) }
    }

    /// Reads settings; [`Inner`](crate::compose::Inner) among them knows the encodings of this registry.
    pub(crate) fn reading<T>(&self, read: impl FnOnce() -> T) -> T {
        let outer = READING.replace(Some(self.clone()));
        let result = catch_unwind(AssertUnwindSafe(read));
        READING.set(outer);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Registry whose settings are read at the moment, or the one of this crate.
    pub(crate) fn being_read() -> Self {
        READING.with_borrow(Clone::clone).unwrap_or_else(Self::builtin)
    }

    /// Adds an encoding.
    ///
    /// # Errors
    ///
    /// [`PeError::Registration`] if the id of its card is taken or is not a kebab-case word.
    pub fn with<E: PositionEncoding>(mut self) -> Result<Self, PeError> {
        let entry = Entry::new::<E>(None);
        self.check_new_id(entry.card.id)?;
        Arc::make_mut(&mut self.entries).insert(entry.card.id, Arc::new(entry));
        Ok(self)
    }

    /// Checks that another encoding can have this id.
    ///
    /// # Errors
    ///
    /// [`PeError::Registration`] if the id is taken or is not a kebab-case word.
    pub fn check_new_id(&self, id: &str) -> Result<(), PeError> {
        let kebab = id.starts_with(|c: char| c.is_ascii_lowercase())
            && id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !kebab {
            let reason =
                "expected a lower-case letter followed by lower-case letters, digits and `-`";
            return Err(PeError::Registration { id: id.to_owned(), reason: reason.to_owned() });
        }
        if let Some(taken) = self.entries.get(id) {
            let reason = format!("{} has this id already; choose another id", taken.card.label);
            return Err(PeError::Registration { id: id.to_owned(), reason });
        }
        Ok(())
    }

    /// All encodings, sorted by id.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().map(|entry| &**entry)
    }

    /// All cards, sorted by id.
    pub fn cards(&self) -> impl Iterator<Item = &Card> {
        self.entries().map(|entry| &entry.card)
    }

    /// The entry with this id.
    ///
    /// # Errors
    /// [`PeError::UnknownId`], with the nearest id, or with `RoPE` of the scaling that is asked for.
    pub fn entry(&self, id: &str) -> Result<&Arc<Entry>, PeError> {
        self.entries.get(id).ok_or_else(|| PeError::UnknownId {
            id: id.to_owned(),
            nearest: scaled(id).or_else(|| settings::nearest(id, self.entries.keys().copied())),
            known: self.entries.keys().copied().collect::<Vec<_>>().join(", "),
        })
    }

    /// The encoding with this id at its default settings.
    ///
    /// # Errors
    /// [`PeError::UnknownId`], with the nearest id.
    pub fn encoding(&self, id: &str) -> Result<EncodingConfig, PeError> {
        self.configured(id, Map::new())
    }

    /// The encoding with this id and these settings. Settings that are not given keep their defaults.
    ///
    /// # Errors
    /// [`PeError::UnknownId`], or [`PeError::Settings`] with the field.
    pub fn configured(
        &self,
        id: &str,
        fields: Map<String, Value>,
    ) -> Result<EncodingConfig, PeError> {
        self.entry(id)?.configured(self, fields)
    }
}

/// Expression of `RoPE` with the scaling of this name, which is no encoding of its own.
fn scaled(name: &str) -> Option<String> {
    let name = name.to_lowercase();
    let is_scaling = ["linear", "dynamic", "ntk", "yarn"].contains(&&*name);
    is_scaling.then(|| format!("rope{{scaling={{rope_type={name},factor=2.0}}}}"))
}

/// Reader of the settings of one kind of encoding.
type ReadSettings = fn(Map<String, Value>) -> Result<Arc<dyn ErasedSettings>, PeError>;

/// One kind of encoding in a [`Registry`].
pub struct Entry {
    /// Description of the encoding for tables, reports and help texts.
    pub card: Card,
    /// Text of the encoding's source file, whose module documentation is its full description; known
    /// for the encodings of this crate.
    pub source: Option<&'static str>,
    read: ReadSettings,
    /// Properties found by probing.
    pub(crate) properties: Probed<Properties>,
    /// Names of biases and slopes found by probing.
    pub(crate) biases: Probed<BTreeSet<String>>,
}

/// Results of probing an encoding, by settings.
pub(crate) struct Probed<T>(Mutex<BTreeMap<String, Arc<T>>>);

impl<T> Default for Probed<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Probed<T> {
    /// The result at these settings, computed by `probe` at the first call.
    pub(crate) fn get_or_probe(
        &self,
        settings: String,
        probe: impl FnOnce() -> Result<T, PeError>,
    ) -> Result<Arc<T>, PeError> {
        let all = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all().get(&settings) {
            return Ok(known.clone());
        }
        // Not under the lock: a wrapper may hold another one of its kind, which is probed within.
        let found = Arc::new(probe()?);
        Ok(all().entry(settings).or_insert(found).clone())
    }
}

impl Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("card", &self.card).finish_non_exhaustive()
    }
}

impl Entry {
    /// The entry of an encoding's type.
    pub(crate) fn new<E: PositionEncoding>(source: Option<&'static str>) -> Self {
        Self {
            card: E::CARD,
            source,
            read: read::<E>,
            properties: Probed::default(),
            biases: Probed::default(),
        }
    }

    fn configured(
        self: &Arc<Self>,
        registry: &Registry,
        fields: Map<String, Value>,
    ) -> Result<EncodingConfig, PeError> {
        let settings = registry.reading(|| (self.read)(fields))?;
        EncodingConfig::with(registry.clone(), self.clone(), settings)
    }
}

fn read<E: PositionEncoding>(
    given: Map<String, Value>,
) -> Result<Arc<dyn ErasedSettings>, PeError> {
    let value: E::Settings = settings::read(E::CARD.id, given.clone())?;
    let settings = Typed::<E>(value);
    let known = settings.fields()?;
    // Settings without `deny_unknown_fields` would silently drop a misspelled key. Those with it may leave out fields at
    // their defaults.
    let unknown = given.keys().find(|key| !known.contains_key(*key)).cloned();
    let mut with_unknown = given;
    with_unknown.insert("no such setting".to_owned(), Value::Null);
    let denies_unknown = || settings::read::<E::Settings>(E::CARD.id, with_unknown).is_err();
    match unknown.filter(|_| !denies_unknown()) {
        None => Ok(Arc::new(settings)),
        Some(unknown) => Err(PeError::Settings {
            pe: E::CARD.id.to_owned(),
            reason: settings::unknown_field(&unknown, known.keys().map(String::as_str)),
        }),
    }
}

/// An encoding of a registry with its settings.
#[derive(Clone)]
pub struct EncodingConfig {
    registry: Registry,
    entry: Arc<Entry>,
    card: Card,
    settings: Arc<dyn ErasedSettings>,
    fields: Map<String, Value>,
}

impl Debug for EncodingConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EncodingConfig")
            .field("id", &self.card.id)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl PartialEq for EncodingConfig {
    fn eq(&self, other: &Self) -> bool {
        self.entry.card.id == other.entry.card.id && self.fields == other.fields
    }
}

/// Serialises the settings alone.
impl serde::Serialize for EncodingConfig {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.fields.serialize(serializer)
    }
}

impl EncodingConfig {
    /// An encoding of the type `E`, which need not be in a registry.
    ///
    /// # Errors
    /// [`PeError::Settings`] if the settings cannot be written as a map of fields.
    pub fn of<E: PositionEncoding>(settings: E::Settings) -> Result<Self, PeError> {
        let entry = Arc::new(Entry::new::<E>(None));
        Self::with(Registry::builtin(), entry, Arc::new(Typed::<E>(settings)))
    }

    fn with(
        registry: Registry,
        entry: Arc<Entry>,
        settings: Arc<dyn ErasedSettings>,
    ) -> Result<Self, PeError> {
        let fields = settings.fields()?;
        Ok(Self { card: settings.card(), registry, entry, settings, fields })
    }

    /// Registry in which the encodings that the settings name are looked up.
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Registry entry of the encoding.
    pub fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    /// Description of the encoding at these settings.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// Settings by name, with defaults, except those that are not serialized at their default.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// Ids and settings, which represent the encoding in a cell's key.
    pub fn identity(&self) -> Value {
        json!({ "id": self.card().id, "settings": self })
    }

    /// Meaning of an expression in brackets after the encoding's id.
    pub fn composition(&self) -> Composition {
        self.settings.composition()
    }

    /// Sizes for which the encodings that act together with this one are built.
    pub fn dims_beside(&self, dims: &Dims) -> Dims {
        self.settings.dims_beside(dims)
    }

    /// Refuses settings and sizes that cannot work, before anything is built.
    ///
    /// # Errors
    /// [`PeError::InvalidSetting`] with the field.
    pub fn check(&self, dims: &Dims) -> Result<(), PeError> {
        self.check_limits()?;
        self.settings.check(dims)
    }

    /// Refuses numbers with which sizes cannot be computed.
    pub(crate) fn check_limits(&self) -> Result<(), PeError> {
        settings::limits::check(self.card().id, &self.fields)
    }

    /// Builds the encoding; `rng` is the source of all random numbers.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn build(
        &self,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<AnyEncoding, PeError> {
        self.check(dims)?;
        self.settings.build(dims, rng, device)
    }

    /// Number of learned parameters in the whole model by the encoding's formula; `None` if it states none.
    pub fn param_formula(&self, dims: &Dims) -> Option<usize> {
        self.settings.param_count(dims)
    }

    /// Number of positions that a row of a layer sees; `None`: all.
    pub fn horizon(&self, layers: usize, layer: usize) -> Option<usize> {
        self.settings.horizon(layers, layer)
    }

    /// Operations that the encoding adds to one forward pass over `len` tokens, if it states them.
    pub fn cost(&self, dims: &Dims, len: usize) -> Option<Cost> {
        self.settings.cost(dims, len)
    }

    /// Parses settings that were written by [`fields`](Self::fields) or in a suite.
    ///
    /// # Errors
    ///
    /// [`PeError::Settings`] with the field.
    pub fn reread(&self, fields: Map<String, Value>) -> Result<Self, PeError> {
        self.entry.configured(&self.registry, fields)
    }

    /// Whether both hold equal settings of the same type.
    pub(crate) fn same_settings(&self, other: &Self) -> bool {
        self.settings.equals(other.settings.as_any())
    }
}

/// Associated functions of [`PositionEncoding`] in object-safe form, together with the settings
/// they take.
trait ErasedSettings: Debug + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn equals(&self, other: &dyn Any) -> bool;
    fn fields(&self) -> Result<Map<String, Value>, PeError>;
    fn composition(&self) -> Composition;
    fn dims_beside(&self, dims: &Dims) -> Dims;
    fn card(&self) -> Card;
    fn check(&self, dims: &Dims) -> Result<(), PeError>;
    fn build(
        &self,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<AnyEncoding, PeError>;
    fn param_count(&self, dims: &Dims) -> Option<usize>;
    fn cost(&self, dims: &Dims, len: usize) -> Option<Cost>;
    fn horizon(&self, layers: usize, layer: usize) -> Option<usize>;
}

/// Settings of the encoding `E`.
struct Typed<E: PositionEncoding>(E::Settings);

impl<E: PositionEncoding> Debug for Typed<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<E: PositionEncoding> ErasedSettings for Typed<E> {
    fn as_any(&self) -> &dyn Any {
        &self.0
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<E::Settings>() == Some(&self.0)
    }

    fn fields(&self) -> Result<Map<String, Value>, PeError> {
        let refused = |reason| PeError::Settings { pe: E::CARD.id.to_owned(), reason };
        match serde_json::to_value(&self.0) {
            Ok(Value::Object(fields)) => Ok(fields),
            Ok(other) => Err(refused(format!("settings are written as {other}, expected a map"))),
            Err(error) => Err(refused(error.to_string())),
        }
    }

    fn composition(&self) -> Composition {
        E::composition(&self.0)
    }

    fn dims_beside(&self, dims: &Dims) -> Dims {
        E::dims_beside(&self.0, dims)
    }

    fn card(&self) -> Card {
        E::card(&self.0)
    }

    fn check(&self, dims: &Dims) -> Result<(), PeError> {
        E::check(&self.0, dims)
    }

    fn build(
        &self,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<AnyEncoding, PeError> {
        E::build(&self.0, dims, rng, device).map(AnyEncoding::new)
    }

    fn param_count(&self, dims: &Dims) -> Option<usize> {
        E::param_count(&self.0, dims)
    }

    fn cost(&self, dims: &Dims, len: usize) -> Option<Cost> {
        E::cost(&self.0, dims, len)
    }

    fn horizon(&self, layers: usize, layer: usize) -> Option<usize> {
        E::horizon(&self.0, layers, layer)
    }
}
