//! Simulations, in libraries built with the feature `lab`.

use super::{Out, guarded, read_plain, text};
use crate::failure::Status;
use crate::table::{self, Handle, Object};
use std::ffi::c_char;

/// Runs a simulation and waits for its end: the same numbers as `weir run --json` for the same scenario and seed.
/// `scenario` is a built-in scenario's name, a file's path, or the text of one (TOML). Null for `controller` and `seed`
/// takes the scenario's own. `result` is a text, JSON: copy it by weir_text_copy, free it by weir_free.
///
/// Only in libraries with the feature `lab`: weir_has_lab says so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_run_json(
    scenario: *const c_char,
    controller: *const c_char,
    seed: *const u64,
    result: *mut Handle,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller grants.
        let out = unsafe { Out::new(result, "result") }?;
        out.set(0);
        // SAFETY: as the caller grants.
        let scenario = unsafe { text(scenario, "scenario") }?;
        // SAFETY: as the caller grants.
        let controller = if controller.is_null() { None } else { Some(unsafe { text(controller, "controller") }?) };
        // SAFETY: as the caller grants.
        let seed = if seed.is_null() { None } else { Some(unsafe { read_plain(seed, "seed") }?) };
        out.set(table::keep(Object::Text(crate::lab::run(scenario, controller, seed)?))?);
        Ok(Status::Ok)
    })
}
