//! Files that a scenario names: capacity traces and frame sizes.

use super::error::InputError;
use super::spanned::At;
use super::suggest;
use super::tree::Text;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use weir_path::{Capacity, TraceError, TraceFormat};
use weir_units::DataSize;

/// Greatest size of a file that is read, in bytes.
pub(super) const MAX_FILE: u64 = 256 << 20;

/// The location of the files that a scenario names.
#[derive(Clone, Debug)]
pub(super) enum Folder {
    /// On disk; names are relative to this folder.
    Disk(PathBuf),
    /// Among those that ship with Weir; names are relative to this folder.
    BuiltIn(String),
    /// Provided by the caller, by the names that the scenario uses.
    Given(Arc<BTreeMap<String, Vec<u8>>>),
}

/// The files read so far.
#[derive(Clone, Debug)]
pub(super) struct Traces {
    folder: Folder,
    texts: BTreeMap<String, Arc<str>>,
    files: BTreeMap<String, Arc<[u8]>>,
    sizes: BTreeMap<String, Arc<[DataSize]>>,
    capacities: BTreeMap<(String, TraceFormat), Capacity>,
}

impl Traces {
    pub(super) fn new(folder: Folder) -> Self {
        let (texts, files) = (BTreeMap::new(), BTreeMap::new());
        Self { folder, texts, files, sizes: BTreeMap::new(), capacities: BTreeMap::new() }
    }

    /// The capacity in a trace file.
    pub(super) fn capacity(
        &mut self,
        text: &Text,
        file: &At<String>,
        format: Option<TraceFormat>,
    ) -> Result<Capacity, InputError> {
        let content = self.text(text, file)?;
        let format = format.unwrap_or_else(|| TraceFormat::detect(&file.value, &content));
        let key = (file.value.clone(), format);
        if let Some(known) = self.capacities.get(&key) {
            return Ok(known.clone());
        }
        let capacity = format.parse(&content, &file.value);
        let capacity = capacity.map_err(|e| trace_error(&content, &e))?;
        self.capacities.insert(key, capacity.clone());
        Ok(capacity)
    }

    /// Frame sizes, one per line in bytes; lines that start with `#` or `%` are comments.
    pub(super) fn frame_sizes(&mut self, text: &Text, file: &At<String>) -> Result<Arc<[DataSize]>, InputError> {
        if let Some(known) = self.sizes.get(&file.value) {
            return Ok(known.clone());
        }
        let content = self.text(text, file)?;
        let mut sizes = Vec::new();
        let mut at = 0;
        for line in content.split_inclusive('\n') {
            let trimmed = line.trim();
            if !trimmed.is_empty() && !trimmed.starts_with(['#', '%']) {
                let bytes = trimmed.parse::<u32>().ok().filter(|b| *b > 0).ok_or_else(|| {
                    let span = at..at + line.trim_end().len();
                    InputError::at(
                        &file.value,
                        &content,
                        span,
                        "expected a frame size in bytes, a whole number above zero",
                    )
                })?;
                sizes.push(DataSize::from_bytes(bytes.into()));
            }
            at += line.len();
        }
        if sizes.is_empty() {
            return Err(InputError::whole(&file.value, "expected at least one frame size"));
        }
        let sizes: Arc<[DataSize]> = sizes.into();
        self.sizes.insert(file.value.clone(), sizes.clone());
        Ok(sizes)
    }

    /// A file's contents. None ships with Weir: unless the caller has provided it, it is read from disk.
    pub(super) fn bytes(&mut self, text: &Text, file: &At<String>) -> Result<Arc<[u8]>, InputError> {
        if let Some(known) = self.files.get(&file.value) {
            return Ok(known.clone());
        }
        let path = match &self.folder {
            Folder::Disk(folder) => folder.join(&file.value),
            Folder::BuiltIn(_) => PathBuf::from(&file.value),
            Folder::Given(files) => {
                let read: Arc<[u8]> = given(files, text, file)?.into();
                self.files.insert(file.value.clone(), read.clone());
                return Ok(read);
            }
        };
        let error = |why: String| text.error(file.span.clone(), format!("{}: {why}", path.display()));
        let read: Arc<[u8]> = read_bytes(&path).map_err(error)?.into();
        self.files.insert(file.value.clone(), read.clone());
        Ok(read)
    }

    fn text(&mut self, text: &Text, file: &At<String>) -> Result<Arc<str>, InputError> {
        if let Some(known) = self.texts.get(&file.value) {
            return Ok(known.clone());
        }
        let read: Arc<str> = match &self.folder {
            Folder::Disk(folder) => {
                let path = folder.join(&file.value);
                read_text(&path).map_err(|why| text.error(file.span.clone(), format!("{}: {why}", path.display())))?
            }
            Folder::Given(files) => {
                let bytes = given(files, text, file)?.to_vec();
                decode(bytes).map_err(|why| text.error(file.span.clone(), format!("{}: {why}", file.value)))?
            }
            Folder::BuiltIn(folder) => {
                let path = format!("{folder}/{}", file.value);
                super::builtin::file(&path).map(Into::into).ok_or_else(|| {
                    let known: Vec<&str> = super::builtin::files().map(|f| f.0).collect();
                    text.error(file.span.clone(), format!("no file {path} ships with Weir"))
                        .help(suggest::help(&path, &known))
                })?
            }
        };
        self.texts.insert(file.value.clone(), read.clone());
        Ok(read)
    }
}

/// The file that the caller has given under a name.
fn given<'a>(files: &'a BTreeMap<String, Vec<u8>>, text: &Text, file: &At<String>) -> Result<&'a [u8], InputError> {
    files.get(&file.value).map(Vec::as_slice).ok_or_else(|| {
        let known: Vec<&str> = files.keys().map(String::as_str).collect();
        text.error(file.span.clone(), format!("no file `{}` was given", file.value))
            .help(suggest::help(&file.value, &known))
    })
}

fn trace_error(content: &Arc<str>, e: &TraceError) -> InputError {
    let mut start = 0;
    let mut span = 0..0;
    for (i, line) in content.split_inclusive('\n').enumerate().take(e.line) {
        if i + 1 == e.line {
            span = start..start + line.trim_end().len();
        }
        start += line.len();
    }
    InputError::at(&e.file, content, span, format!("expected {}, found \"{}\"", e.expected, e.value)).field(&e.field)
}

/// A file of reasonable size. Errors: why not, in words.
fn read_bytes(path: &std::path::Path) -> Result<Vec<u8>, String> {
    let say = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => e.to_string(),
    };
    let meta = std::fs::metadata(path).map_err(say)?;
    if meta.is_dir() {
        return Err("this is a folder, not a file".into());
    }
    if meta.len() > MAX_FILE {
        return Err(format!("the file is larger than {} MiB", MAX_FILE >> 20));
    }
    std::fs::read(path).map_err(say)
}

/// A text file of reasonable size. Errors: why not, in words.
pub(super) fn read_text(path: &std::path::Path) -> Result<Arc<str>, String> {
    decode(read_bytes(path)?)
}

fn decode(bytes: Vec<u8>) -> Result<Arc<str>, String> {
    match String::from_utf8(bytes) {
        Ok(s) => Ok(s.into()),
        Err(e) => {
            let upto = e.utf8_error().valid_up_to();
            let line = e.as_bytes()[..upto].iter().filter(|b| **b == b'\n').count() + 1;
            Err(format!("not UTF-8 text: see line {line}"))
        }
    }
}
