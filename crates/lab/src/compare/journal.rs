//! Finished runs in a file, which a later call takes up: a stop loses no more than the runs under way.

use crate::results::{Outline, RatesOverTime, RunResult};
use crate::scenario::{InputError, Scenario};
use crate::series::Series;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use weir_cc::Registry;

/// Name of the file in its folder.
const FILE: &str = "weir-runs";
/// First bytes of the file: what it is, and the version of its layout.
const MAGIC: &[u8; 12] = b"weir runs 1\n";
/// The header: the first bytes, and the digest of the program.
const HEADER: u64 = MAGIC.len() as u64 + 32;
/// Before each run: its length, its key and a check of its bytes.
const RECORD_HEADER: usize = 4 + 32 + 8;
/// Longest run that is kept, in bytes; a run with all its series has some MB.
const MAX_RUN: u32 = 256 << 20;

/// SHA-256 of everything that determines a run.
type Key = [u8; 32];
/// Position and length of each run.
type Places = BTreeMap<Key, (u64, u32)>;

/// Finished runs in a file. A run is found again by its resolved scenario, its controller and its seed, and only by the program
/// that made it: another build of it may give other results. A scenario's traces and clips count with their content.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: File,
    /// Where the next run is written.
    end: u64,
    places: Places,
    /// Runs taken from the file.
    found: u64,
    /// The first error of writing. No more is written after it.
    error: Option<io::Error>,
}

/// A run with the parts that are not in its JSON.
#[derive(Serialize)]
struct JournalEntry<'a> {
    result: &'a RunResult,
    rates_over_time: &'a RatesOverTime,
    outline: &'a Outline,
    series: Option<&'a Series>,
}

#[derive(Deserialize)]
struct Found {
    result: RunResult,
    rates_over_time: RatesOverTime,
    outline: Outline,
    series: Option<Series>,
}

/// Digest of all that determines the runs of a scenario, except the seed.
#[derive(Clone, Debug)]
pub(super) struct ScenarioDigest(Sha256);

impl ScenarioDigest {
    /// `None` where a controller is a program of the user's, which may be another one by the next call.
    pub(super) fn of(scenario: &Scenario, registry: &Registry) -> Option<Self> {
        struct Sink(Sha256);
        impl std::fmt::Write for Sink {
            fn write_str(&mut self, text: &str) -> std::fmt::Result {
                self.0.update(text);
                Ok(())
            }
        }
        let mut sink = Sink(Sha256::new());
        // Writing into a digest cannot fail.
        let _ = write!(sink, "{scenario:?}");
        // A controller from a file is named by its path, and its source says what the file has.
        for rtp in scenario.flows.iter().filter_map(|f| f.rtp()) {
            let spec = registry.find(&rtp.controller).ok()?;
            if !spec.is_fixed {
                return None;
            }
            let _ = write!(sink, "{:?}", spec.source);
        }
        Some(Self(sink.0))
    }

    fn key(&self, seed: u64, series: bool) -> Key {
        let mut sha = self.0.clone();
        sha.update(seed.to_le_bytes());
        sha.update([u8::from(series)]);
        sha.finalize().into()
    }
}

impl Journal {
    /// Opens the journal in a folder, or begins one there. `program` is the program that makes the runs. The end of a file
    /// whose writing was cut off is dropped.
    ///
    /// # Errors
    /// The folder or the program cannot be read or written; the file is none of these, was begun by another build, or is in use.
    pub fn open(folder: &Path, program: &Path) -> Result<Self, InputError> {
        let path = folder.join(FILE);
        let name = path.display().to_string();
        let system = |e: io::Error| InputError::whole(name.clone(), e.to_string());
        let build = digest_of(program).map_err(|e| InputError::whole(program.display().to_string(), e.to_string()))?;
        fs::create_dir_all(folder).map_err(system)?;
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(system)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let help = "wait until that command has ended, or name another folder";
                return Err(InputError::whole(name, "another weir is writing its runs there").help(help));
            }
            Err(TryLockError::Error(e)) => return Err(system(e)),
        }
        let length = file.metadata().map_err(system)?.len();
        if length == 0 {
            file.write_all(MAGIC).and_then(|()| file.write_all(&build)).map_err(system)?;
        } else {
            let mut magic = [0; MAGIC.len()];
            let mut by = [0; 32];
            let read = file.read_exact(&mut magic).and_then(|()| file.read_exact(&mut by));
            if read.is_err() || &magic != MAGIC {
                return Err(InputError::whole(name, "not a file of finished runs").help("name another folder"));
            }
            if by != build {
                let help = "remove the file to make its runs again, or name another folder";
                return Err(InputError::whole(name, "its runs were made by another build of weir").help(help));
            }
        }
        let (places, end) = index(&file, length).map_err(system)?;
        if end < length {
            file.set_len(end).map_err(system)?;
        }
        Ok(Self { path, inner: Mutex::new(Inner { file, end, places, found: 0, error: None }) })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs in the file.
    pub fn runs(&self) -> usize {
        self.lock().places.len()
    }

    /// Runs that were taken from the file so far.
    pub fn found(&self) -> u64 {
        self.lock().found
    }

    /// Why finished runs could not be written, if so.
    pub fn error(&self) -> Option<String> {
        self.lock().error.as_ref().map(|e| format!("{}: {e}: later runs are not kept there", self.path.display()))
    }

    /// A run that finished before; `None` also if its bytes are damaged.
    pub(super) fn find(&self, scenario: &ScenarioDigest, seed: u64, series: bool) -> Option<RunResult> {
        let key = scenario.key(seed, series);
        let mut inner = self.lock();
        let &(at, length) = inner.places.get(&key)?;
        let mut bytes = vec![0; length as usize + 8];
        inner.file.seek(SeekFrom::Start(at)).ok()?;
        inner.file.read_exact(&mut bytes).ok()?;
        let (check, run) = bytes.split_at(8);
        if check != check_of(&key, run) {
            return None;
        }
        let found: Found = ciborium::from_reader(run).ok()?;
        inner.found += 1;
        let Found { result, rates_over_time, outline, series } = found;
        Some(RunResult { rates_over_time, outline, series, ..result })
    }

    /// Keeps a finished run.
    pub(super) fn add(&self, scenario: &ScenarioDigest, seed: u64, series: bool, run: &RunResult) {
        let key = scenario.key(seed, series);
        let mut record = vec![0; RECORD_HEADER];
        let RunResult { rates_over_time, outline, series, .. } = run;
        let entry = JournalEntry { result: run, rates_over_time, outline, series: series.as_ref() };
        // Of plain structs; writing to memory does not fail.
        if ciborium::into_writer(&entry, &mut record).is_err() {
            return;
        }
        let Some(length) = u32::try_from(record.len() - RECORD_HEADER).ok().filter(|l| *l <= MAX_RUN) else { return };
        let check = check_of(&key, &record[RECORD_HEADER..]);
        record[..4].copy_from_slice(&length.to_le_bytes());
        record[4..36].copy_from_slice(&key);
        record[36..RECORD_HEADER].copy_from_slice(&check);
        let mut inner = self.lock();
        if inner.error.is_some() {
            return;
        }
        let end = inner.end;
        let written = inner.file.seek(SeekFrom::Start(end)).and_then(|_| inner.file.write_all(&record));
        match written {
            Ok(()) => {
                inner.places.insert(key, (end + 36, length));
                inner.end += record.len() as u64;
            }
            Err(e) => {
                // Half a record would hide what is written after it.
                let _ = inner.file.set_len(end);
                inner.error = Some(e);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // The file's state is valid between any two operations on it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where each run is, and where the last whole one ends.
fn index(file: &File, length: u64) -> io::Result<(Places, u64)> {
    let mut places = BTreeMap::new();
    let mut file = BufReader::new(file);
    let mut at = HEADER;
    file.seek(SeekFrom::Start(at))?;
    while at + RECORD_HEADER as u64 <= length {
        let mut header = [0; RECORD_HEADER];
        file.read_exact(&mut header)?;
        let mut size = [0; 4];
        let mut key = [0; 32];
        size.copy_from_slice(&header[..4]);
        key.copy_from_slice(&header[4..36]);
        let size = u32::from_le_bytes(size);
        let next = at + RECORD_HEADER as u64 + u64::from(size);
        if size > MAX_RUN || next > length {
            break;
        }
        places.insert(key, (at + 36, size));
        file.seek_relative(i64::from(size))?;
        at = next;
    }
    Ok((places, at))
}

fn check_of(key: &Key, run: &[u8]) -> [u8; 8] {
    let digest = Sha256::new().chain_update(key).chain_update(run).finalize();
    let mut check = [0; 8];
    check.copy_from_slice(&digest[..8]);
    check
}

fn digest_of(program: &Path) -> io::Result<[u8; 32]> {
    let mut sha = Sha256::new();
    let mut file = File::open(program)?;
    let mut part = vec![0; 1 << 16];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(sha.finalize().into()),
            n => sha.update(&part[..n]),
        }
    }
}

#[cfg(test)]
mod tests;
