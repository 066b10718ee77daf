//! Versions, errors, texts, and the end of objects.

use super::{Buffer, guarded};
use crate::failure::{Status, last};
use crate::table::{self, Handle};
use std::ffi::{CString, c_char};
use std::sync::OnceLock;

/// Version of the ABI of this header. A library of another version is not compatible.
pub const WEIR_ABI_VERSION: u32 = 1;

/// Version of the library's ABI: compare it with WEIR_ABI_VERSION before other calls.
#[unsafe(no_mangle)]
pub extern "C" fn weir_abi_version() -> u32 {
    WEIR_ABI_VERSION
}

/// Version of the library, as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn weir_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// 1 if this library can simulate (weir_run_json), 0 if it was built without.
#[unsafe(no_mangle)]
pub extern "C" fn weir_has_lab() -> i32 {
    i32::from(cfg!(feature = "lab"))
}

/// 1 if this library takes learned policies as controllers ("onnx:FILE"), 0 if it was built without.
#[unsafe(no_mangle)]
pub extern "C" fn weir_has_onnx() -> i32 {
    i32::from(cfg!(feature = "onnx"))
}

/// Text of this thread's last failure, which names the field, its value and what was expected; empty before the first.
/// Valid until the thread's next failure.
#[unsafe(no_mangle)]
pub extern "C" fn weir_last_error() -> *const c_char {
    last()
}

/// Frees an object of any kind. Its handle is refused afterwards, and never given out again.
#[unsafe(no_mangle)]
pub extern "C" fn weir_free(handle: Handle) -> Status {
    guarded(|| table::free(handle).map(|()| Status::Ok))
}

/// Copies a text, without an end of 0, to a buffer of `capacity` bytes; `length` is set to its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_text_copy(
    text: Handle,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller grants.
        let buffer = unsafe { Buffer::new(buffer.cast(), capacity, length) }?;
        table::with(text, |text: &mut String| buffer.write(text.as_bytes()).map(|()| Status::Ok))
    })
}

/// Name of the `index`-th controller, from 0; null after the last. Valid for ever. Each is also there as NAME+fec,
/// NAME+map and NAME+vidaptive.
#[unsafe(no_mangle)]
pub extern "C" fn weir_controller_name(index: usize) -> *const c_char {
    static NAMES: OnceLock<Vec<CString>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let registry = weir_cc::Registry::builtin();
        registry.specs().filter_map(|s| CString::new(s.name.as_str()).ok()).collect()
    });
    names.get(index).map_or(std::ptr::null(), |n| n.as_ptr())
}
