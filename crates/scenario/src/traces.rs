//! Files that a scenario names: capacity traces and frame sizes.

use super::error::InputError;
use super::forecast::{self, Foretold, MOST_RIDES};
use super::spanned::At;
use super::suggest;
use super::tree::Text;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use weir_path::{Capacity, TraceError, TraceFormat};
use weir_units::DataSize;

/// Greatest size of a trace or clip that is read, in bytes.
const MAX_FILE: u64 = 256 << 20;
/// Most characters of a trace that an error repeats.
const MAX_SHOWN: usize = 40;

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

    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// SHA-256 of the names and contents of the files read so far, if any was.
    pub(super) fn digest(&self) -> Option<String> {
        let texts = self.texts.iter().map(|(name, text)| (name, text.as_bytes()));
        let all = texts.chain(self.files.iter().map(|(name, bytes)| (name, &bytes[..])));
        let mut sha = Sha256::new();
        let mut any = false;
        for part in all.flat_map(|(name, content)| [name.as_bytes(), content]) {
            any = true;
            sha.update((part.len() as u64).to_le_bytes());
            sha.update(part);
        }
        any.then(|| sha.finalize().iter().map(|b| format!("{b:02x}")).collect())
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
        let capacity = capacity.map_err(|e| trace_error(&e))?;
        if matches!(&capacity, Capacity::Schedule(s) if s.steps().iter().all(|s| s.rate.as_bps() == 0)) {
            let message = "all rates are zero: nothing would ever leave the link; expected one above zero";
            return Err(InputError::whole(&file.value, message));
        }
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
        for (i, line) in content.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', '%']) {
                continue;
            }
            let bytes = line.parse::<u32>().ok().filter(|b| *b > 0).ok_or_else(|| {
                let found = found(line);
                let message = format!("expected a frame size in bytes, a whole number above zero, found {found}");
                InputError::at_line(&file.value, i + 1, message)
            })?;
            sizes.push(DataSize::from_bytes(bytes.into()));
        }
        if sizes.is_empty() {
            return Err(InputError::whole(&file.value, "expected at least one frame size"));
        }
        let sizes: Arc<[DataSize]> = sizes.into();
        self.sizes.insert(file.value.clone(), sizes.clone());
        Ok(sizes)
    }

    /// The capacities in the traces of a folder, in the order of their names, but for those `driven`.
    pub(super) fn rides(
        &mut self,
        text: &Text,
        folder: &At<String>,
        format: Option<TraceFormat>,
        driven: &[&str],
    ) -> Result<Vec<Capacity>, InputError> {
        let error = |why: String| text.error(folder.span.clone(), format!("{}: {why}", folder.value));
        let Folder::Disk(base) = &self.folder else {
            return Err(error("a folder is read from disk".into()).help("copy the scenario to a file"));
        };
        let driven: Vec<PathBuf> = driven.iter().map(|name| base.join(name)).collect();
        let mut files = Vec::new();
        for entry in std::fs::read_dir(base.join(&folder.value)).map_err(|e| error(e.to_string()))? {
            let entry = entry.map_err(|e| error(e.to_string()))?;
            let is_file = entry.file_type().is_ok_and(|t| t.is_file());
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            if is_file && !hidden && !driven.contains(&entry.path()) {
                files.push(entry.file_name().to_string_lossy().into_owned());
            }
            if files.len() > MOST_RIDES {
                return Err(error(format!("more than {MOST_RIDES} files")));
            }
        }
        if files.is_empty() {
            return Err(error("expected the trace of another ride, found none".into()));
        }
        files.sort();
        let folder_name = folder.value.trim_end_matches('/');
        let named = |name: String| At { value: format!("{folder_name}/{name}"), span: folder.span.clone() };
        files.into_iter().map(|name| self.capacity(text, &named(name), format)).collect()
    }

    /// A table of a forecast: see [`forecast::parse`].
    pub(super) fn foretold(&mut self, text: &Text, file: &At<String>) -> Result<Arc<[Foretold]>, InputError> {
        let content = self.text(text, file)?;
        let fault = |(line, field, value, expected): (usize, &str, String, &str)| {
            let message = format!("expected {expected}, found {}", found(&value));
            InputError::at_line(&file.value, line, message).field(field)
        };
        Ok(forecast::parse(&content).map_err(fault)?.into())
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
        let read: Arc<[u8]> = weir_files::read(&path, MAX_FILE).map_err(|e| error(e.to_string()))?.into();
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
                read_text(&path, MAX_FILE)
                    .map_err(|why| text.error(file.span.clone(), format!("{}: {why}", path.display())))?
            }
            Folder::Given(files) => {
                let bytes = given(files, text, file)?.to_vec();
                weir_files::text(bytes)
                    .map_err(|why| text.error(file.span.clone(), format!("{}: {why}", file.value)))?
                    .into()
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

fn trace_error(e: &TraceError) -> InputError {
    let message = format!("expected {}, found {}", e.expected, found(&e.value));
    InputError::at_line(&e.file, e.line, message).field(&e.field)
}

/// Describes the value found in place of the expected one. A scenario may name any file that its reader may read, so text that
/// is not a number is not repeated.
fn found(value: &str) -> String {
    let numeric = |c: char| c.is_ascii_digit() || " \t,;.:+-_eE".contains(c);
    match value {
        "" => "nothing".into(),
        _ if value.len() <= MAX_SHOWN && value.chars().all(numeric) => format!("\"{value}\""),
        _ => "text that is no such number: is this file a trace?".into(),
    }
}

/// A text file of at most `limit` bytes. Errors: why not, in words.
pub fn read_text(path: &std::path::Path, limit: u64) -> Result<Arc<str>, String> {
    weir_files::read_text(path, limit).map(Into::into).map_err(|e| e.to_string())
}
