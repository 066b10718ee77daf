//! Series as Parquet and CSV files.
//!
//! Parquet without Arrow, thin LTO. Both keep a cold release build short (8 min 28 s on two cores, `time cargo run
//! --release`): most of Arrow would be compiled for nothing, and LTO compiles only reachable code.

use crate::atomic_write::write_atomically;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_lab::results::RunResult;
use weir_lab::series::Series;

/// Format of the files, in the metadata of Parquet; it counts up when columns get another name, unit or meaning. New columns are
/// no other format.
pub(crate) const FORMAT: u32 = 1;
pub(crate) const FORMAT_KEY: &str = "weir.format";

/// Why series could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeriesError {
    /// The run was made without series.
    #[error("the run kept no time series")]
    None,
    /// A file could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: String,
        /// The error.
        source: io::Error,
    },
}

/// A table of floating-point columns; each row begins with a time and the name of its flow or link.
struct Table {
    /// Name of the second column.
    subject: &'static str,
    /// Further text columns, one value per group of `rows`.
    texts: Vec<(&'static str, Vec<String>)>,
    time_s: Vec<f64>,
    subjects: Vec<String>,
    columns: Vec<(String, Vec<f64>)>,
}

/// Writes a run's series into a folder, which is created if it is missing: `STEM.flows.parquet` and `STEM.links.parquet`, and
/// the same tables as `.csv`. Returns the paths.
///
/// `flows` has a row for each flow and sampling interval: `time_s` (the row's end), `flow`, `controller`, the columns of
/// [`weir_lab::series::FlowSeries`], and the controllers' internals as `cc_NAME`; `links` likewise, with Jain's index of
/// the run. A missing value is null in Parquet and empty in CSV. Each file is written completely or not at all, by a rename.
pub fn write_series(run: &RunResult, dir: &Path, stem: &str) -> Result<Vec<PathBuf>, SeriesError> {
    let series = run.series.as_ref().ok_or(SeriesError::None)?;
    let failed = |path: &Path, source| SeriesError::Write { path: path.display().to_string(), source };
    std::fs::create_dir_all(dir).map_err(|e| failed(dir, e))?;
    let mut paths = Vec::new();
    for (name, table) in [("flows", flows(series)), ("links", links(series))] {
        let parquet = dir.join(format!("{stem}.{name}.parquet"));
        write_atomically(&parquet, |out| write_parquet(&table, run, out)).map_err(|e| failed(&parquet, e))?;
        let csv = dir.join(format!("{stem}.{name}.csv"));
        write_atomically(&csv, |out| write_csv(&table, out)).map_err(|e| failed(&csv, e))?;
        paths.extend([parquet, csv]);
    }
    Ok(paths)
}

fn flows(series: &Series) -> Table {
    let parts = series.flows.iter().map(|f| {
        let own = f.columns().len() - f.internals.len();
        let named = f.columns().into_iter().enumerate();
        (
            f.name.as_str(),
            named.map(|(i, (n, v))| (if i < own { n.to_owned() } else { format!("cc_{n}") }, v)).collect(),
        )
    });
    let mut table = table("flow", &series.time_s, parts.collect());
    let controllers = series.flows.iter().flat_map(|f| series.time_s.iter().map(|_| f.controller.clone()));
    table.texts.push(("controller", controllers.collect()));
    table
}

fn links(series: &Series) -> Table {
    let parts = series.links.iter().map(|l| {
        let mut columns: Vec<(String, &[f64])> = l.columns().into_iter().map(|(n, v)| (n.to_owned(), v)).collect();
        columns.push(("jain".into(), &series.jain));
        (l.name.as_str(), columns)
    });
    table("link", &series.time_s, parts.collect())
}

/// A subject and its columns by name.
type Part<'a> = (&'a str, Vec<(String, &'a [f64])>);

/// One table from several subjects whose columns may differ: their union, with NaN in columns that a subject does not have.
fn table(subject: &'static str, time_s: &[f64], parts: Vec<Part<'_>>) -> Table {
    let rows = time_s.len();
    let mut columns: Vec<(String, Vec<f64>)> = Vec::new();
    for (done, (_, part)) in parts.iter().enumerate() {
        for (name, values) in part {
            let at = columns.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                columns.push((name.clone(), Vec::new()));
                columns.len() - 1
            });
            let column = &mut columns[at].1;
            column.resize(done * rows, f64::NAN);
            column.extend_from_slice(values);
        }
    }
    columns.iter_mut().for_each(|(_, column)| column.resize(parts.len() * rows, f64::NAN));
    Table {
        subject,
        texts: Vec::new(),
        time_s: parts.iter().flat_map(|_| time_s.iter().copied()).collect(),
        subjects: parts.iter().flat_map(|(name, _)| time_s.iter().map(|_| (*name).to_owned())).collect(),
        columns,
    }
}

fn write_parquet(table: &Table, run: &RunResult, out: &mut dyn Write) -> io::Result<()> {
    let about = [
        (FORMAT_KEY, FORMAT.to_string()),
        ("weir.scenario", run.scenario.clone()),
        ("weir.condition", run.condition.clone()),
        ("weir.controller", run.controller.clone()),
        ("weir.seed", run.seed.to_string()),
    ];
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by("weir".into())
        .set_key_value_metadata(Some(about.into_iter().map(|(k, v)| KeyValue::new(k.into(), v)).collect()))
        .build();
    // The writer has to be `Send`, which `out` need not be: it writes to memory first.
    let bytes = parquet_bytes(table, properties).map_err(io::Error::other)?;
    out.write_all(&bytes)
}

fn parquet_bytes(table: &Table, properties: WriterProperties) -> Result<Vec<u8>, ParquetError> {
    let field = |name: &str, physical, repetition| {
        let text = (physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
        let built = Type::primitive_type_builder(name, physical).with_repetition(repetition).with_logical_type(text);
        built.build().map(Arc::new)
    };
    let required = Repetition::REQUIRED;
    let mut fields =
        vec![field("time_s", Physical::DOUBLE, required)?, field(table.subject, Physical::BYTE_ARRAY, required)?];
    for (name, _) in &table.texts {
        fields.push(field(name, Physical::BYTE_ARRAY, required)?);
    }
    for (name, _) in &table.columns {
        fields.push(field(name, Physical::DOUBLE, Repetition::OPTIONAL)?);
    }
    let schema = Arc::new(Type::group_type_builder("series").with_fields(fields).build()?);
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    let missing = || ParquetError::General("fewer columns than the schema has".into());
    let mut time = group.next_column()?.ok_or_else(missing)?;
    time.typed::<DoubleType>().write_batch(&table.time_s, None, None)?;
    time.close()?;
    let texts = std::iter::once(&table.subjects).chain(table.texts.iter().map(|t| &t.1));
    for values in texts {
        let values: Vec<ByteArray> = values.iter().map(|v| v.as_str().into()).collect();
        let mut column = group.next_column()?.ok_or_else(missing)?;
        column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
        column.close()?;
    }
    for (_, values) in &table.columns {
        let mut column = group.next_column()?.ok_or_else(missing)?;
        let levels: Vec<i16> = values.iter().map(|v| i16::from(!v.is_nan())).collect();
        let present: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
        column.typed::<DoubleType>().write_batch(&present, Some(&levels), None)?;
        column.close()?;
    }
    group.close()?;
    file.into_inner()
}

fn write_csv(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let names = ["time_s", table.subject].into_iter().chain(table.texts.iter().map(|t| t.0));
    let names = names.chain(table.columns.iter().map(|c| c.0.as_str()));
    let header: Vec<_> = names.map(quoted).collect();
    let mut line = header.join(",");
    line.push('\n');
    for row in 0..table.time_s.len() {
        // Writing into a string does not fail.
        let _ = write!(line, "{},{}", table.time_s[row], quoted(&table.subjects[row]));
        for (_, values) in &table.texts {
            let _ = write!(line, ",{}", quoted(&values[row]));
        }
        for (_, values) in &table.columns {
            line.push(',');
            if !values[row].is_nan() {
                let _ = write!(line, "{}", values[row]);
            }
        }
        line.push('\n');
        if line.len() > 1 << 16 {
            out.write_all(line.as_bytes())?;
            line.clear();
        }
    }
    out.write_all(line.as_bytes())
}

/// A CSV field (RFC 4180).
fn quoted(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use weir_lab::series::{FlowSeries, LinkSeries};

    fn run() -> RunResult {
        let flow = |name: &str, internals| FlowSeries {
            name: name.into(),
            controller: "gcc".into(),
            target_bps: vec![1e6, 2e6],
            generated_bps: vec![1.0, 2.0],
            sent_bps: vec![3.0, 4.0],
            repair_bps: vec![0.0, 1.0],
            goodput_bps: vec![5.0, 6.0],
            delay_ms: vec![f64::NAN, 100.5],
            delay_max_ms: vec![f64::NAN, 101.0],
            loss: vec![0.0, 0.5],
            discard: vec![0.0, 0.0],
            streams: vec![],
            paths: vec![],
            internals,
        };
        let series = Series {
            interval_s: 0.1,
            time_s: vec![0.1, 0.2],
            flows: vec![flow("a,b", vec![]), flow("c", vec![("slope".into(), vec![0.25, f64::NAN])])],
            links: vec![LinkSeries {
                name: "bottleneck".into(),
                capacity_bps: vec![2e6, 2e6],
                queue_bytes: vec![0.0, 10.0],
                queue_delay_ms: vec![0.0, 1.0],
            }],
            jain: vec![f64::NAN, 0.9],
        };
        RunResult {
            scenario: "s".into(),
            condition: String::new(),
            controller: "gcc".into(),
            seed: 7,
            duration_s: 0.2,
            flows: vec![],
            fairness: Default::default(),
            queue: None,
            links: vec![],
            live: None,
            windows: vec![],
            rates_over_time: Default::default(),
            outline: Default::default(),
            series: Some(series),
        }
    }

    #[test]
    fn both_formats_hold_the_same() {
        let dir = tempfile::tempdir().expect("a folder");
        let paths = write_series(&run(), &dir.path().join("new"), "x").expect("written");
        let names: Vec<_> =
            paths.iter().map(|p| p.file_name().expect("a file").to_string_lossy().into_owned()).collect();
        assert_eq!(names, ["x.flows.parquet", "x.flows.csv", "x.links.parquet", "x.links.csv"]);
        let csv = std::fs::read_to_string(&paths[1]).expect("written");
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(
            lines[0],
            "time_s,flow,controller,target_bps,generated_bps,sent_bps,repair_bps,goodput_bps,delay_ms,delay_max_ms,loss,discard,cc_slope"
        );
        assert_eq!(lines[1], "0.1,\"a,b\",gcc,1000000,1,3,0,5,,,0,0,");
        assert_eq!(lines[3], "0.1,c,gcc,1000000,1,3,0,5,,,0,0,0.25");
        assert_eq!(
            std::fs::read_to_string(&paths[3]).expect("written").lines().nth(2),
            Some("0.2,bottleneck,2000000,10,1,0.9")
        );

        let file = std::fs::File::open(&paths[0]).expect("written");
        let reader = SerializedFileReader::new(file).expect("Parquet");
        let meta = reader.metadata().file_metadata();
        let metadata = meta.key_value_metadata().expect("metadata");
        assert!(metadata.iter().any(|kv| kv.key == "weir.seed" && kv.value.as_deref() == Some("7")));
        assert_eq!((meta.num_rows(), meta.schema_descr().num_columns()), (4, 13));
        let rows: Vec<_> = reader.get_row_iter(None).expect("Parquet").map(|r| r.expect("whole")).collect();
        let slope = |r: &parquet::record::Row| r.get_double(12).ok();
        assert_eq!(rows.iter().map(slope).collect::<Vec<_>>(), [None, None, Some(0.25), None]);
        assert_eq!((rows[3].get_double(0).ok(), rows[3].get_string(1).ok()), (Some(0.2), Some(&"c".to_owned())));
        assert_eq!(rows[0].get_string(1).ok(), Some(&"a,b".to_owned()));
        assert_eq!(std::fs::read_dir(dir.path().join("new")).expect("made").count(), 4, "no temporary file is left");
    }

    #[test]
    fn errors_name_the_file() {
        let mut without = run();
        without.series = None;
        assert!(matches!(write_series(&without, Path::new("."), "x"), Err(SeriesError::None)));
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("taken");
        std::fs::write(&file, "").expect("written");
        let error = write_series(&run(), &file, "x").expect_err("a file is no folder").to_string();
        assert!(error.contains("taken"), "{error}");
    }
}
