//! Tables of a sweep as Parquet.

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::{Field, RowAccessor};
use parquet::schema::types::Type;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A column, with `None` where a row has no value.
pub(crate) enum Column {
    Text(Vec<Option<String>>),
    Whole(Vec<i64>),
    Number(Vec<Option<f64>>),
}

/// A table as the bytes of a file.
pub(crate) fn bytes(columns: &[(String, Column)]) -> Result<Vec<u8>, ParquetError> {
    let field = |(name, column): &(String, Column)| {
        let (physical, logical, repetition) = match column {
            Column::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::OPTIONAL),
            Column::Whole(_) => (Physical::INT64, None, Repetition::REQUIRED),
            Column::Number(_) => (Physical::DOUBLE, None, Repetition::OPTIONAL),
        };
        let built = Type::primitive_type_builder(name, physical).with_repetition(repetition).with_logical_type(logical);
        built.build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Arc::new(Type::group_type_builder("sweep").with_fields(fields).build()?);
    let properties =
        WriterProperties::builder().set_compression(Compression::SNAPPY).set_created_by("weir".into()).build();
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for (_, values) in columns {
        let missing = || ParquetError::General("fewer columns than the schema has".into());
        let mut column = group.next_column()?.ok_or_else(missing)?;
        match values {
            Column::Text(values) => {
                let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
                let present: Vec<ByteArray> = values.iter().flatten().map(|v| v.as_str().into()).collect();
                column.typed::<ByteArrayType>().write_batch(&present, Some(&levels), None)?;
            }
            Column::Whole(values) => {
                column.typed::<Int64Type>().write_batch(values, None, None)?;
            }
            Column::Number(values) => {
                let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
                let present: Vec<f64> = values.iter().flatten().copied().collect();
                column.typed::<DoubleType>().write_batch(&present, Some(&levels), None)?;
            }
        }
        column.close()?;
    }
    group.close()?;
    file.into_inner()
}

/// The column `key` of a file.
pub(crate) fn keys(path: &Path) -> Result<Vec<String>, ParquetError> {
    let reader = SerializedFileReader::new(weir_files::open(path).map_err(io::Error::from)?)?;
    let root = reader.metadata().file_metadata().schema();
    let key = root.get_fields().iter().find(|f| f.name() == "key");
    let key = key.ok_or_else(|| ParquetError::General("it has no column `key`".into()))?;
    let projection = Type::group_type_builder(root.name()).with_fields(vec![Arc::clone(key)]).build()?;
    reader.get_row_iter(Some(projection))?.map(|row| row?.get_string(0).cloned()).collect()
}

/// Texts and numbers of a row, by column; what a row has not is left out.
#[derive(Default)]
pub(crate) struct Values {
    pub(crate) texts: BTreeMap<String, String>,
    pub(crate) numbers: BTreeMap<String, f64>,
}

impl Values {
    pub(crate) fn text(&self, name: &str) -> &str {
        self.texts.get(name).map_or("", String::as_str)
    }
    /// NaN where there is none.
    pub(crate) fn number(&self, name: &str) -> f64 {
        self.numbers.get(name).copied().unwrap_or(f64::NAN)
    }
}

/// The rows of a file one after the other, with the columns that `wanted` takes.
pub(crate) fn each(
    path: &Path,
    wanted: impl Fn(&str) -> bool,
    mut take: impl FnMut(Values),
) -> Result<(), ParquetError> {
    let reader = SerializedFileReader::new(weir_files::open(path).map_err(io::Error::from)?)?;
    let root = reader.metadata().file_metadata().schema();
    let fields: Vec<_> = root.get_fields().iter().filter(|f| wanted(f.name())).map(Arc::clone).collect();
    let projection = Type::group_type_builder(root.name()).with_fields(fields).build()?;
    for row in reader.get_row_iter(Some(projection))? {
        let mut values = Values::default();
        for (name, field) in row?.get_column_iter() {
            match field {
                Field::Str(text) => drop(values.texts.insert(name.clone(), text.clone())),
                Field::Double(number) => drop(values.numbers.insert(name.clone(), *number)),
                Field::Long(number) => drop(values.numbers.insert(name.clone(), *number as f64)),
                _ => {}
            }
        }
        take(values);
    }
    Ok(())
}
