//! Reads the series that [`super::series_files`] writes.

use crate::series_files::{FORMAT, FORMAT_KEY};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use weir_lab::series::{FlowSeries, LinkSeries, Series};

/// Ends of the names of a run's files.
const FLOWS: &str = ".flows.parquet";
const LINKS: &str = ".links.parquet";
/// Most rows, and greatest size of a file in bytes.
const MAX_ROWS: i64 = 5_000_000;
const MAX_BYTES: u64 = 512 << 20;

/// Why series could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The folder has no series of a run, or those of several.
    #[error("{0}")]
    Folder(String),
    /// A file could not be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The error.
        source: io::Error,
    },
    /// A file is no such series.
    #[error("{path}: {why}")]
    Content {
        /// The file.
        path: String,
        /// The fault.
        why: String,
    },
}

/// Columns of a table by the name of their flow or link, in its order, and each one's controller.
type Columns = Vec<(String, String, BTreeMap<String, Vec<f64>>)>;

/// Reads the one run whose series are in a folder, written by `weir run --series`. Errors: none, or several; a file that cannot
/// be read, or has other contents.
pub fn read_series(dir: &Path) -> Result<Series, ReadError> {
    let failed = |source| ReadError::Read { path: dir.display().to_string(), source };
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.file_name().is_some_and(|n| n.to_string_lossy().ends_with(FLOWS)) {
            found.push(path);
        }
    }
    found.sort();
    let [flows] = &found[..] else {
        let why = match found.len() {
            0 => format!("no *{FLOWS} in this folder: weir run --series DIR writes one"),
            n => format!("{n} runs in this folder; keep one run's files in a folder of their own"),
        };
        return Err(ReadError::Folder(why));
    };
    let stem = flows.to_string_lossy().trim_end_matches(FLOWS).to_owned();
    let links = PathBuf::from(format!("{stem}{LINKS}"));
    let (time_s, by_flow) = table(flows, "flow")?;
    let by_link = if links.exists() { table(&links, "link")?.1 } else { vec![] };
    let interval_s = match time_s[..] {
        [a, b, ..] => b - a,
        [a] => a,
        [] => return Err(content(flows, "it has no rows")),
    };
    if interval_s <= 0.0 {
        return Err(content(flows, "its times do not rise"));
    }
    Ok(Series {
        interval_s,
        jain: vec![f64::NAN; time_s.len()],
        time_s,
        flows: by_flow.into_iter().map(flow).collect(),
        links: by_link.into_iter().map(link).collect(),
    })
}

fn content(path: &Path, why: impl std::fmt::Display) -> ReadError {
    ReadError::Content { path: path.display().to_string(), why: why.to_string() }
}

fn flow((name, controller, mut columns): (String, String, BTreeMap<String, Vec<f64>>)) -> FlowSeries {
    let mut take = |name: &str| columns.remove(name).unwrap_or_default();
    let mut flow = FlowSeries {
        name,
        controller,
        target_bps: take("target_bps"),
        generated_bps: take("generated_bps"),
        sent_bps: take("sent_bps"),
        repair_bps: take("repair_bps"),
        goodput_bps: take("goodput_bps"),
        delay_ms: take("delay_ms"),
        delay_max_ms: take("delay_max_ms"),
        loss: take("loss"),
        discard: take("discard"),
        ..FlowSeries::default()
    };
    let internals = columns.into_iter().filter_map(|(n, v)| Some((n.strip_prefix("cc_")?.to_owned().into(), v)));
    flow.internals = internals.collect();
    flow
}

fn link((name, _, mut columns): (String, String, BTreeMap<String, Vec<f64>>)) -> LinkSeries {
    let mut take = |name: &str| columns.remove(name).unwrap_or_default();
    LinkSeries {
        name,
        capacity_bps: take("capacity_bps"),
        queue_bytes: take("queue_bytes"),
        queue_delay_ms: take("queue_delay_ms"),
    }
}

/// Refuses files that a newer Weir has written otherwise; those of before formats had numbers have none.
fn check_format(reader: &SerializedFileReader<std::fs::File>) -> Result<(), String> {
    let about = reader.metadata().file_metadata().key_value_metadata().map_or(&[][..], Vec::as_slice);
    match about.iter().find(|a| a.key == FORMAT_KEY).map(|a| a.value.as_deref().unwrap_or_default()) {
        Some(format) if format.parse().is_ok_and(|n: u32| n <= FORMAT) => Ok(()),
        Some(format) => Err(format!("written in format {format:?} of series; this Weir reads formats up to {FORMAT}")),
        None => Ok(()),
    }
}

/// The times of the first subject, and the columns of each.
fn table(path: &Path, subject: &str) -> Result<(Vec<f64>, Columns), ReadError> {
    let failed = |source| ReadError::Read { path: path.display().to_string(), source };
    let file = weir_files::open(path).map_err(|e| failed(e.into()))?;
    if file.metadata().map_err(failed)?.len() > MAX_BYTES {
        return Err(content(path, format!("larger than {} MiB", MAX_BYTES >> 20)));
    }
    let bad = |e: ParquetError| content(path, e);
    let reader = SerializedFileReader::new(file).map_err(bad)?;
    check_format(&reader).map_err(|why| content(path, why))?;
    if reader.metadata().file_metadata().num_rows() > MAX_ROWS {
        return Err(content(path, format!("more than {MAX_ROWS} rows")));
    }
    let (mut times, mut subjects): (Vec<f64>, Columns) = Default::default();
    for row in reader.get_row_iter(None).map_err(bad)? {
        let row = row.map_err(bad)?;
        let (mut time, mut name, mut controller, mut values) = (f64::NAN, None, String::new(), Vec::new());
        for (column, field) in row.get_column_iter() {
            match field {
                Field::Double(t) if column == "time_s" => time = *t,
                Field::Str(s) if column == subject => name = Some(s.clone()),
                Field::Str(s) if column == "controller" => controller = s.clone(),
                Field::Double(v) => values.push((column, *v)),
                Field::Null => values.push((column, f64::NAN)),
                _ => {}
            }
        }
        let Some(name) = name else { return Err(content(path, format!("no column `{subject}` of text"))) };
        let at = subjects.iter().position(|s| s.0 == name).unwrap_or_else(|| {
            subjects.push((name, controller, BTreeMap::new()));
            subjects.len() - 1
        });
        if at == 0 {
            if !time.is_finite() || times.last().is_some_and(|last| *last >= time) {
                return Err(content(path, "times that do not rise"));
            }
            times.push(time);
        }
        for (column, value) in values {
            match subjects[at].2.get_mut(column) {
                Some(known) => known.push(value),
                None => {
                    subjects[at].2.insert(column.clone(), vec![value]);
                }
            }
        }
    }
    let rows = times.len();
    if subjects.iter().any(|s| s.2.values().any(|v| v.len() != rows)) {
        return Err(content(path, "subjects with different numbers of rows"));
    }
    Ok((times, subjects))
}

#[cfg(test)]
mod tests {
    use super::super::series_files::write_series;
    use super::*;
    use parquet::file::metadata::KeyValue;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use std::sync::atomic::AtomicBool;
    use weir_cc::Registry;
    use weir_lab::run::{RunOptions, run};
    use weir_lab::scenario::ScenarioFile;

    #[test]
    fn a_run_is_read_as_it_was_written() {
        let registry = Registry::builtin();
        let text = "title = \"x\"\nduration = \"3 s\"\n[links.b]\nrate = \"1 Mbps\"\ndelay = \"20 ms\"\n[rtp.v]\ncontroller = \"nada\"\n";
        let file = ScenarioFile::parse("x", text, Path::new("."), &registry).expect("sound");
        let scenario = file.scenario(None, None, &registry).expect("resolves");
        let stop = AtomicBool::new(false);
        let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
        let made = run(&scenario, 1, &options).expect("runs");
        let dir = tempfile::tempdir().expect("a folder");
        write_series(&made, dir.path(), "x").expect("written");
        let (read, made) = (read_series(dir.path()).expect("read"), made.series.expect("series"));
        assert_eq!(read.time_s, made.time_s);
        let (a, b) = (&read.flows[0], &made.flows[0]);
        assert_eq!((&a.name, &a.controller), (&b.name, &b.controller));
        assert_eq!((&a.target_bps, &a.goodput_bps), (&b.target_bps, &b.goodput_bps));
        let internals = |f: &FlowSeries| -> BTreeMap<String, Vec<u64>> {
            let bits = |v: &[f64]| v.iter().map(|x| if x.is_nan() { 0 } else { x.to_bits() }).collect();
            f.internals.iter().map(|(n, v)| (n.to_string(), bits(v))).collect()
        };
        assert!(!internals(a).is_empty());
        assert_eq!(internals(a), internals(b));
        assert_eq!(read.links[0].capacity_bps, made.links[0].capacity_bps);
    }

    /// A folder for each format, and for files that state none, stays in `tests/`.
    #[test]
    fn files_of_former_formats_are_read_and_those_of_later_ones_refused() {
        let former = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/series-without-format"));
        let read = read_series(former).expect("read");
        assert_eq!((read.time_s.len(), read.flows[0].controller.as_str()), (5, "fixed"));
        assert!(read.flows[0].goodput_bps.iter().any(|g| *g > 200e3) && !read.links[0].capacity_bps.is_empty());
        let written = |format: &str| {
            let about = vec![KeyValue::new(FORMAT_KEY.into(), format.to_owned())];
            let file = std::fs::File::open(former.join("tiny.flows.parquet")).expect("there");
            let rows = SerializedFileReader::new(file).expect("Parquet");
            let schema = rows.metadata().file_metadata().schema_descr().root_schema_ptr();
            let properties = WriterProperties::builder().set_key_value_metadata(Some(about)).build();
            let dir = tempfile::tempdir().expect("a folder");
            let file = std::fs::File::create(dir.path().join("x.flows.parquet")).expect("made");
            SerializedFileWriter::new(file, schema, properties.into()).expect("begun").close().expect("written");
            read_series(dir.path()).expect_err("no rows").to_string()
        };
        assert!(written("1").contains("it has no rows"));
        let later = written("2");
        assert!(later.contains("format \"2\" of series") && later.contains("reads formats up to 1"), "{later}");
        assert!(written("x").contains("format \"x\""));
    }

    #[test]
    fn what_is_no_series_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let none = read_series(dir.path()).expect_err("empty").to_string();
        assert!(none.contains("weir run --series"), "{none}");
        std::fs::write(dir.path().join("x.flows.parquet"), b"PAR1 nonsense PAR1").expect("written");
        let bad = read_series(dir.path()).expect_err("nonsense").to_string();
        assert!(bad.contains("x.flows.parquet"), "{bad}");
        std::fs::write(dir.path().join("y.flows.parquet"), b"").expect("written");
        let two = read_series(dir.path()).expect_err("two").to_string();
        assert!(two.contains("2 runs"), "{two}");
        assert!(read_series(&dir.path().join("nowhere")).is_err());
    }
}
