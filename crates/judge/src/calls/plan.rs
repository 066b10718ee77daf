//! Rows that a dataset lacks, as work.

use super::find::{FoundCall, FoundCalls};
use crate::sweep::address::{canonical, digest};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use weir_cc::Registry;
use weir_fit::Changes;
use weir_lab::scenario::{InputError, suggest};

/// Calls in a file at most, so that little is lost if the program is killed.
pub const CHUNK: usize = 16;
/// Links that can be drawn for a call.
const DRAWS: std::ops::RangeInclusive<u64> = 1..=1_000;
/// Bytes of a file that are read at once.
const BLOCK: usize = 1 << 18;

/// Options of many calls.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Question {
    /// Controllers that are run over each call's links; none for fits alone.
    pub controllers: Vec<String>,
    /// The controller that was recorded.
    pub controller: Option<String>,
    /// Greatest rate that the application sends, in bit/s; found in each call if absent.
    pub ceiling_bps: Option<f64>,
    /// Links drawn for each call.
    pub draws: u64,
    /// Changes to the calls, as [`weir_fit::CHANGES`] has them.
    pub set: BTreeMap<String, String>,
    /// Whether what can be read of damaged recordings is taken for them.
    pub take_damaged: bool,
}

/// A controller over the links of a call: a row.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CallController {
    /// Its content address.
    pub key: String,
    /// The controller.
    pub name: String,
    /// Whether the changes apply: the recorded controller is run without them.
    pub is_changed: bool,
}

/// Rows of one call that are missing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CallTask {
    /// The call's name.
    pub name: String,
    /// Its files.
    pub files: Vec<PathBuf>,
    /// Whether files that are no recordings are passed over.
    pub is_folder: bool,
    /// Content address of the fit.
    pub fit: String,
    /// Whether the fit's row is missing.
    pub lacks_fit: bool,
    /// Controllers whose rows are missing.
    pub controllers: Vec<CallController>,
    /// As in [`Question`].
    pub ceiling_bps: Option<f64>,
    /// As in [`Question`].
    pub draws: u64,
    /// As in [`Question`].
    pub set: BTreeMap<String, String>,
    /// As in [`Question`].
    pub take_damaged: bool,
    /// Why the files cannot be read, if they cannot.
    pub unreadable: Option<String>,
}

/// The work that a dataset lacks.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct CallsPlan {
    /// Different calls.
    pub calls: usize,
    /// Calls with the same files' contents as one before.
    pub copies: usize,
    /// Content addresses of all fits.
    pub fits: BTreeSet<String>,
    /// Content addresses of all controllers' rows.
    pub controllers: BTreeSet<String>,
    /// The changes, as rows have them.
    pub set: BTreeMap<String, String>,
    /// Calls of which rows are missing.
    pub tasks: Vec<CallTask>,
}

/// Reads the files of all calls once, for their content addresses, and finds the rows that are neither among those that are `kept` nor
/// among the `failed` ones. `each` is called for each call.
///
/// # Errors
/// A controller or a change that is none. `Ok(None)` if it was stopped.
pub fn plan(
    found: &FoundCalls,
    question: &Question,
    kept: &BTreeSet<String>,
    failed: &BTreeSet<String>,
    registry: &Registry,
    stop: &AtomicBool,
    mut each: impl FnMut(usize),
) -> Result<Option<CallsPlan>, InputError> {
    let changes = Changes::new(&question.set).map_err(|e| InputError::whole("set", e.message).help(e.help))?;
    let has_any = !question.controllers.is_empty() || question.controller.is_some();
    if has_any && !DRAWS.contains(&question.draws) {
        let message = format!("{} is not within {} and {}", question.draws, DRAWS.start(), DRAWS.end());
        return Err(InputError::whole("draws", message));
    }
    let mut names: Vec<(&str, bool, Option<String>)> = Vec::new();
    let recorded = question.controller.iter().map(|c| ("controller", c, false));
    for (place, name, is_changed) in
        question.controllers.iter().map(|c| ("controllers", c, !changes.is_empty())).chain(recorded)
    {
        let spec = suggest::find(registry, place, name)?;
        if !names.iter().any(|n| n.0 == name.as_str() && n.1 == is_changed) {
            // The name of a policy file does not determine its contents.
            let policy = registry.specs().all(|s| s.name != *name).then(|| spec.source.clone());
            names.push((name.as_str(), is_changed, policy));
        }
    }
    let set: BTreeMap<String, String> = changes.given().iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    let mut plan = CallsPlan { set: set.clone(), ..CallsPlan::default() };
    for (n, call) in found.calls.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        each(n);
        let (content, unreadable) = match contents(call) {
            Ok(digests) => (json!(digests), None),
            // It is another call once it can be read.
            Err(why) => (json!({ "unreadable": call.name, "why": why }), Some(why)),
        };
        let mut about = json!({
            "weir": env!("CARGO_PKG_VERSION"), "call": content, "ceiling_bps": question.ceiling_bps,
        });
        if question.take_damaged {
            about["take_damaged"] = true.into();
        }
        let fit = digest(&canonical(&about));
        if !plan.fits.insert(fit.clone()) {
            plan.copies += 1;
            continue;
        }
        let mut controllers = Vec::new();
        for (name, is_changed, policy) in &names {
            let mut about = about.clone();
            about["controller"] = (*name).into();
            about["draws"] = question.draws.into();
            if *is_changed {
                about["set"] = json!(set);
            }
            if let Some(policy) = policy {
                about["policy"] = policy.as_str().into();
            }
            let key = digest(&canonical(&about));
            plan.controllers.insert(key.clone());
            controllers.push(CallController { key, name: (*name).to_owned(), is_changed: *is_changed });
        }
        controllers.retain(|c| !kept.contains(&c.key) && !failed.contains(&c.key));
        let lacks_fit = !kept.contains(&fit);
        // Without a fit no controller has a row.
        if failed.contains(&fit) {
            continue;
        }
        if lacks_fit || !controllers.is_empty() {
            plan.tasks.push(CallTask {
                name: call.name.clone(),
                files: call.files.clone(),
                is_folder: call.is_folder,
                fit,
                lacks_fit,
                controllers,
                ceiling_bps: question.ceiling_bps,
                draws: question.draws,
                set: set.clone(),
                take_damaged: question.take_damaged,
                unreadable,
            });
        }
    }
    plan.calls = plan.fits.len();
    Ok(Some(plan))
}

/// The tasks in parts of at most [`CHUNK`] calls.
pub fn chunks(tasks: Vec<CallTask>) -> Vec<Vec<CallTask>> {
    tasks.chunks(CHUNK).map(<[CallTask]>::to_vec).collect()
}

/// SHA-256 of each file's content. Errors, in words: a file cannot be read.
fn contents(call: &FoundCall) -> Result<Vec<String>, String> {
    call.files.iter().map(|path| content(path).map_err(|why| format!("{}: {why}", path.display()))).collect()
}

fn content(path: &Path) -> Result<String, String> {
    let mut file = weir_files::open(path).map_err(|e| e.to_string())?;
    let (mut hash, mut block) = (Sha256::new(), vec![0; BLOCK]);
    loop {
        match file.read(&mut block) {
            Ok(0) => break,
            Ok(n) => hash.update(&block[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.to_string()),
        }
    }
    let mut out = String::new();
    for byte in hash.finalize() {
        // Writing into a string does not fail.
        let _ = write!(out, "{byte:02x}");
    }
    Ok(out)
}
