//! Settings of cells as columns.

use std::collections::BTreeMap;

use polars::prelude::*;
use rayon::prelude::*;
use serde_json::Value;

/// Number of cells whose settings are read by one thread at a time.
const BATCH: usize = 8192;

/// Returns one column `config.<path>` for each setting of the cells, sorted by path: numbers, booleans or text; lists
/// and columns of several types as JSON.
pub(super) fn settings(cells: &DataFrame) -> PolarsResult<DataFrame> {
    let texts: Vec<Option<&str>> = cells.column("config")?.str()?.iter().collect();
    let batches: Vec<SettingsBatch> =
        texts.par_chunks(BATCH).map(SettingsBatch::read).collect::<PolarsResult<_>>()?;
    let mut all = SettingsBatch::default();
    for batch in batches {
        all.append(batch);
    }
    let column = |(path, mut setting): (String, SettingValues)| {
        setting.fill(cells.height());
        setting.column(path.into())
    };
    DataFrame::new(cells.height(), all.settings.into_iter().map(column).collect())
}

/// Values of one setting. Most cells have one of a few values.
#[derive(Default)]
struct SettingValues {
    /// Distinct values; the first is null.
    values: Vec<Value>,
    /// Places in `values`, one for each cell.
    places: Vec<u32>,
    /// Places in `values` by their JSON.
    known: BTreeMap<String, u32>,
}

impl SettingValues {
    /// Appends nulls up to this number of cells.
    fn fill(&mut self, cells: usize) {
        if self.values.is_empty() {
            self.values.push(Value::Null);
        }
        self.places.resize(cells, 0);
    }

    /// Appends the value of a cell, given by its number, after nulls for the cells before it.
    fn push(&mut self, cell: usize, value: Value) {
        self.fill(cell);
        // Cells of one workload and encoding are neighbours.
        let last = self.places.last().copied().unwrap_or_default();
        let place = if self.values[last as usize] == value { last } else { self.place(value) };
        self.places.push(place);
    }

    /// Returns the place of a value, which is added if it is new.
    fn place(&mut self, value: Value) -> u32 {
        if value.is_null() {
            return 0;
        }
        let next = self.values.len() as u32;
        let place = *self.known.entry(value.to_string()).or_insert(next);
        if place == next {
            self.values.push(value);
        }
        place
    }

    fn column(&self, name: PlSmallStr) -> Column {
        let all = |is: fn(&Value) -> bool| self.values.iter().all(|v| v.is_null() || is(v));
        if all(Value::is_number) {
            Column::new(name, self.each(Value::as_f64))
        } else if all(Value::is_boolean) {
            Column::new(name, self.each(Value::as_bool))
        } else {
            let texts: Vec<Option<String>> = self.values.iter().map(text).collect();
            let of = |place: &u32| texts[*place as usize].as_deref();
            Column::new(name, self.places.iter().map(of).collect::<Vec<_>>())
        }
    }

    /// Returns the values of all cells in another form.
    fn each<T: Copy>(&self, get: fn(&Value) -> Option<T>) -> Vec<Option<T>> {
        let values: Vec<Option<T>> = self.values.iter().map(get).collect();
        self.places.iter().map(|place| values[*place as usize]).collect()
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Settings of consecutive cells by path.
#[derive(Default)]
struct SettingsBatch {
    settings: BTreeMap<String, SettingValues>,
    cells: usize,
}

impl SettingsBatch {
    /// Reads the settings of cells from their configurations as JSON.
    fn read(texts: &[Option<&str>]) -> PolarsResult<Self> {
        let mut batch = Self::default();
        for text in texts {
            let config = serde_json::from_str(text.unwrap_or("null"))
                .map_err(|error| polars_err!(ComputeError: "column `config`: {error}"))?;
            batch.add(&mut String::from("config"), config);
            batch.cells += 1;
        }
        Ok(batch)
    }

    /// Adds the settings of a cell at a path and below it.
    fn add(&mut self, path: &mut String, value: Value) {
        let own = path.len();
        if let Value::Object(fields) = value {
            for (name, value) in fields {
                path.push('.');
                path.push_str(&name);
                self.add(path, value);
                path.truncate(own);
            }
        } else if let Some(setting) = self.settings.get_mut(path) {
            setting.push(self.cells, value);
        } else {
            self.settings.entry(path.clone()).or_default().push(self.cells, value);
        }
    }

    /// Appends the cells of another batch.
    fn append(&mut self, other: Self) {
        for (path, mut setting) in other.settings {
            let own = self.settings.entry(path).or_default();
            own.fill(self.cells);
            setting.fill(other.cells);
            let places: Vec<u32> = setting.values.into_iter().map(|v| own.place(v)).collect();
            own.places.extend(setting.places.into_iter().map(|place| places[place as usize]));
        }
        self.cells += other.cells;
    }
}
