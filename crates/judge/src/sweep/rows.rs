//! Tables of a sweep as Parquet.

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::RowAccessor;
use parquet::schema::types::Type;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A column, with `None` where a row has no value.
pub(super) enum Column {
    Text(Vec<Option<String>>),
    Whole(Vec<i64>),
    Number(Vec<Option<f64>>),
}

/// A table as the bytes of a file.
pub(super) fn bytes(columns: &[(String, Column)]) -> Result<Vec<u8>, ParquetError> {
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
pub(super) fn keys(path: &Path) -> Result<Vec<String>, ParquetError> {
    let reader = SerializedFileReader::new(weir_files::open(path).map_err(io::Error::from)?)?;
    let root = reader.metadata().file_metadata().schema();
    let key = root.get_fields().iter().find(|f| f.name() == "key");
    let key = key.ok_or_else(|| ParquetError::General("it has no column `key`".into()))?;
    let projection = Type::group_type_builder(root.name()).with_fields(vec![Arc::clone(key)]).build()?;
    reader.get_row_iter(Some(projection))?.map(|row| row?.get_string(0).cloned()).collect()
}
