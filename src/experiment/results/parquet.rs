//! Results as Parquet: the columns of the CSV with types, an empty field being null. One row
//! group, not compressed; the same rows give the same bytes.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use ::csv::StringRecord;
use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::record::Field;
use ::parquet::schema::types::Type;

use super::csv::{Columns, Words};
use super::{Results, ResultsError, header, record};

/// What a column holds.
fn kind(name: &str, axes: &[String]) -> Physical {
    match name {
        "case" | "m" | "n" | "k" | "bytes" | "tp" => Physical::INT64,
        "makespan_s" | "unsplit_gemm_s" | "lower_bound_s" => Physical::DOUBLE,
        "verified" => Physical::BOOLEAN,
        name if axes.iter().any(|axis| axis == name) => Physical::INT64,
        _ => Physical::BYTE_ARRAY,
    }
}

/// The file as bytes.
///
/// # Errors
/// What the encoder refuses, in words.
pub(super) fn write(results: &Results) -> Result<Vec<u8>, String> {
    encode(results).map_err(|error| error.to_string())
}

fn encode(results: &Results) -> Result<Vec<u8>, ParquetError> {
    let names = header(&results.sets, &results.axes);
    let columns = names.iter().map(|name| {
        let physical = kind(name, &results.axes);
        let builder =
            Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
        let text = (physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
        builder.with_logical_type(text).build().map(Arc::new)
    });
    let schema = Type::group_type_builder("results")
        .with_fields(columns.collect::<Result<_, _>>()?)
        .build()?;
    let properties = WriterProperties::builder()
        .set_created_by(format!("duet {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), properties.into())?;
    let records: Vec<Vec<String>> = results.rows.iter().map(record).collect();
    let mut group = writer.next_row_group()?;
    for (at, name) in names.iter().enumerate() {
        let fields = || records.iter().map(|record| record[at].as_str());
        match kind(name, &results.axes) {
            Physical::INT64 => column::<Int64Type>(&mut group, fields(), |text| text.parse().ok())?,
            Physical::DOUBLE => {
                column::<DoubleType>(&mut group, fields(), |text| text.parse().ok())?
            }
            Physical::BOOLEAN => {
                column::<BoolType>(&mut group, fields(), |text| text.parse().ok())?
            }
            _ => column::<ByteArrayType>(&mut group, fields(), |text| Some(ByteArray::from(text)))?,
        }
    }
    group.close()?;
    writer.close()?;
    Ok(bytes)
}

/// Writes the next column; an empty field is null.
fn column<'r, T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    fields: impl Iterator<Item = &'r str>,
    read: impl Fn(&str) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for field in fields {
        let value = match field {
            "" => None,
            field => Some(read(field).ok_or_else(|| {
                ParquetError::General(format!("`{field}` does not fit its column"))
            })?),
        };
        levels.push(i16::from(value.is_some()));
        values.extend(value);
    }
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("a column too many".to_owned()))?;
    column
        .typed::<T>()
        .write_batch(&values, Some(&levels), None)?;
    column.close()
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, ResultsError> {
    let unreadable = |reason: String| ResultsError::Unreadable {
        path: path.display().to_string(),
        reason,
    };
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    SerializedFileReader::new(file).map_err(|error| unreadable(error.to_string()))
}

/// The number of rows, as the file states it.
pub(super) fn count(path: &Path) -> Result<u64, ResultsError> {
    let rows = open(path)?.metadata().file_metadata().num_rows();
    Ok(u64::try_from(rows).unwrap_or(0))
}

/// Reads a file that [`write`] made.
pub(super) fn read(path: &Path) -> Result<Results, ResultsError> {
    let shown = path.display().to_string();
    let reader = open(path)?;
    let schema = reader.metadata().file_metadata().schema();
    let header: StringRecord = schema
        .get_fields()
        .iter()
        .map(|field| field.name())
        .collect();
    let fail = |row: usize, words: String| ResultsError::Row {
        path: shown.clone(),
        row: row as u64,
        words,
    };
    let columns = Columns::of(&header).map_err(|words| fail(0, words))?;
    let mut results = Results {
        sets: columns.sets.clone(),
        axes: columns.axes.clone(),
        rows: Vec::new(),
    };
    let mut words = Words::default();
    for (number, row) in reader.into_iter().enumerate() {
        let row = row.map_err(|error| fail(number + 1, error.to_string()))?;
        let fields: StringRecord = row
            .into_columns()
            .into_iter()
            .map(|(_, field)| match field {
                Field::Null => String::new(),
                Field::Str(text) => text,
                Field::Double(value) => format!("{value}"),
                other => other.to_string(),
            })
            .collect();
        let row = columns.row(&fields, &mut words);
        results
            .rows
            .push(row.map_err(|wrong| fail(number + 1, wrong.words))?);
    }
    Ok(results)
}
