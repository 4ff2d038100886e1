//! Rows of frames as structs.

use polars::prelude::*;
use rayon::prelude::*;

use stats::{Estimate, Mean};

/// A type whose values can be read from a column, one per row.
pub trait FromColumn: Sized {
    /// Reads all values of a column.
    ///
    /// # Errors
    /// If the column has another type, or nulls where the type has none.
    fn read(column: &Series) -> PolarsResult<Vec<Self>>;
}

macro_rules! scalars {
    ($($type:ty: $get:ident,)*) => {$(
        impl FromColumn for Option<$type> {
            fn read(column: &Series) -> PolarsResult<Vec<Self>> {
                Ok(column.$get()?.iter().map(|value| value.map(Into::into)).collect())
            }
        }

        impl FromColumn for $type {
            fn read(column: &Series) -> PolarsResult<Vec<Self>> {
                let null = || polars_err!(ComputeError: "null in column `{}`", column.name());
                column.$get()?.iter().map(|value| value.map(Into::into).ok_or_else(null)).collect()
            }
        }
    )*};
}

scalars! { u32: u32, u64: u64, f64: f64, bool: bool, String: str, }

/// Lists; a null is an empty list.
impl<T: FromColumn> FromColumn for Vec<T> {
    fn read(column: &Series) -> PolarsResult<Vec<Self>> {
        let options = ExplodeOptions { empty_as_null: false, keep_nulls: false };
        let mut items = T::read(&column.explode(options)?)?.into_iter();
        let lengths = column.list()?.lst_lengths();
        let list = |len: Option<u32>| items.by_ref().take(len.unwrap_or(0) as usize).collect();
        Ok(lengths.iter().map(list).collect())
    }
}

/// Means of lists of values over seeds.
impl FromColumn for Mean {
    fn read(column: &Series) -> PolarsResult<Vec<Self>> {
        of_lists(column, Self::of)
    }
}

/// Estimates from lists of values over seeds.
impl FromColumn for Estimate {
    fn read(column: &Series) -> PolarsResult<Vec<Self>> {
        of_lists(column, Self::of)
    }
}

fn of_lists<T: Send>(column: &Series, of: fn(&[f64]) -> Option<T>) -> PolarsResult<Vec<T>> {
    let empty = || polars_err!(ComputeError: "an empty list in column `{}`", column.name());
    let lists = Vec::<f64>::read(column)?;
    lists.into_par_iter().map(|values| of(&values).ok_or_else(empty)).collect()
}

/// Defines a row struct and its function `of`, which collects a query and reads each row; a field is read from the
/// column of its name.
#[macro_export]
macro_rules! rows {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$of_field:meta])* $shown:vis $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$attribute])*
        $visibility struct $name {
            $($(#[$of_field])* $shown $field: $type,)*
        }

        impl $name {
            /// Names of the columns.
            #[allow(dead_code, reason = "few queries are made of the columns of their rows")]
            pub(crate) const COLUMNS: &[&str] = &[$(stringify!($field)),*];

            pub(crate) fn of(query: polars::prelude::LazyFrame) -> polars::prelude::PolarsResult<Vec<Self>> {
                let frame = query.collect()?;
                $(
                    let column = frame.column(stringify!($field))?.as_materialized_series();
                    let mut $field = <$type as $crate::frame::FromColumn>::read(column)?.into_iter();
                )*
                // Every column is as long as the frame.
                let row = |_| Some(Self { $($field: $field.next()?,)* });
                Ok((0..frame.height()).filter_map(row).collect())
            }
        }
    };
}
pub use rows;
