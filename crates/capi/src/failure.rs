//! Results of calls: a status, and for failures a text that names field, value and a way out.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

/// Outcome of a call. Failures are negative; `weir_last_error` has their text.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// Done, and there is nothing to return: no probe, no timeout, no packet.
    None = 1,
    /// A pointer is null.
    NullPointer = -1,
    /// A pointer is not aligned for its type.
    Misaligned = -2,
    /// A struct's size is not that of this version of the ABI: its size member was not set, or another header was used.
    WrongSize = -3,
    /// The handle is 0, was freed, or was never given out.
    BadHandle = -4,
    /// The handle names an object of another kind.
    WrongKind = -5,
    /// A value is outside its range.
    BadValue = -6,
    /// There is no such name: of a controller, a parameter or a metric.
    UnknownName = -7,
    /// Bytes from the network do not parse. Messages before the fault have been applied.
    Malformed = -8,
    /// The caller's buffer is too small; the length needed is returned, and nothing is lost.
    BufferTooSmall = -9,
    /// The object cannot do this.
    Unsupported = -10,
    /// More objects, streams or packets than this library keeps.
    TooMany = -11,
    /// A simulation failed.
    RunFailed = -12,
    /// A fault of this library. The object cannot be used any more, only freed.
    Internal = -13,
}

/// A failed call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    pub status: Status,
    pub text: String,
}

impl Failure {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }
    /// A value outside its range.
    pub(crate) fn value(field: &str, value: impl std::fmt::Display, expected: &str) -> Self {
        Self::new(Status::BadValue, format!("{field} is {value}: expected {expected}"))
    }
}

impl From<weir_wire::Error> for Failure {
    fn from(e: weir_wire::Error) -> Self {
        Self::new(Status::Malformed, e.to_string())
    }
}

thread_local! {
    /// Text of this thread's last failure.
    static LAST: RefCell<CString> = RefCell::default();
}

/// Keeps a failure's text for `weir_last_error`.
pub(crate) fn remember(text: &str) {
    let clean = text.replace('\0', "\u{fffd}");
    // At a thread's end there is nobody left to read it.
    let _ = LAST.try_with(|last| *last.borrow_mut() = CString::new(clean).unwrap_or_default());
}

/// The text, valid until this thread's next failure.
pub(crate) fn last() -> *const c_char {
    const NONE: &CStr = c"";
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(NONE.as_ptr())
}
