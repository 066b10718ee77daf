//! The border to C: the only `unsafe` code of this crate. Pointers and sizes are checked here, and panics end here.
//!
//! A function here reads its arguments into values, calls a safe one, and writes the results. What cannot be checked, and
//! callers have to grant: a pointer that is neither null nor misaligned points to as many bytes as the header says, which
//! no other thread writes during the call; a text ends with 0.
#![expect(unsafe_code, reason = "C has pointers")]
#![expect(clippy::missing_safety_doc, reason = "said once, above")]

pub mod controller;
pub mod fec;
pub mod general;
#[cfg(feature = "lab")]
pub mod lab;

use crate::failure::{Failure, Status, remember};
use crate::types::{Cue, Probe, ReportBlock, SentPacket, Setup, Statistics, Target};
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a call; keeps the text of its failure. A panic is a failure.
fn guarded(call: impl FnOnce() -> Result<Status, Failure>) -> Status {
    let failure = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(status)) => return status,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let said = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
            let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Failure::new(Status::Internal, format!("a fault in the library, please report it: {said}"))
        }
    };
    remember(&failure.text);
    failure.status
}

/// A struct of the header that begins with its size in 32 bits and holds nothing but numbers.
///
/// # Safety
/// Every value of its bytes is valid, the first member is the `u32` size, and it is `repr(C)`.
unsafe trait Sized32: Copy {
    const NAME: &'static str;
}

macro_rules! sized {
    ($($ty:ty => $name:literal),*) => {$(
        // SAFETY: `repr(C)`, numbers only, the size first: see `types.rs`.
        unsafe impl Sized32 for $ty {
            const NAME: &'static str = $name;
        }
    )*};
}
sized!(
    Setup => "weir_setup",
    SentPacket => "weir_sent_packet",
    ReportBlock => "weir_report_block",
    Cue => "weir_cue",
    Target => "weir_target",
    Probe => "weir_probe",
    Statistics => "weir_statistics"
);

fn check<T>(p: *const T, name: &str) -> Result<(), Failure> {
    if p.is_null() {
        return Err(Failure::new(Status::NullPointer, format!("{name} is null")));
    }
    if !p.is_aligned() {
        let text = format!("{name} is {p:p}: expected an address divisible by {}", align_of::<T>());
        return Err(Failure::new(Status::Misaligned, text));
    }
    Ok(())
}

fn check_size<T: Sized32>(given: u32) -> Result<u32, Failure> {
    let own = size_of::<T>();
    if given as usize == own {
        return Ok(given);
    }
    let name = T::NAME;
    let text = format!("{name}.size is {given}: expected {own}; set it to sizeof({name}), of this library's weir.h");
    Err(Failure::new(Status::WrongSize, text))
}

/// A struct of the caller.
///
/// # Safety
/// `p` is null, misaligned or points to a `u32`, and if that is the size of `T`, to a `T`.
unsafe fn read<T: Sized32>(p: *const T, name: &str) -> Result<T, Failure> {
    check(p, name)?;
    // SAFETY: not null and aligned; the caller grants the rest. The size is the first member, read before the others.
    check_size::<T>(unsafe { p.cast::<u32>().read() })?;
    // SAFETY: the size is that of `T`, and every value of its bytes is valid.
    Ok(unsafe { p.read() })
}

/// A number of the caller.
///
/// # Safety
/// `p` is null, misaligned or points to one.
#[cfg(feature = "lab")]
unsafe fn read_plain(p: *const u64, name: &str) -> Result<u64, Failure> {
    check(p, name)?;
    // SAFETY: not null and aligned; the caller grants the rest.
    Ok(unsafe { p.read() })
}

/// A place for one number or struct of the caller, checked before anything is done.
struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    /// # Safety
    /// `p` is null, misaligned or points to a `T` until the place is gone.
    unsafe fn new(p: *mut T, name: &str) -> Result<Self, Failure> {
        check(p, name).map(|()| Self(p))
    }
    /// One that the caller may leave out with null.
    ///
    /// # Safety
    /// As [`Self::new`].
    unsafe fn optional(p: *mut T, name: &str) -> Result<Option<Self>, Failure> {
        // SAFETY: as granted.
        if p.is_null() { Ok(None) } else { unsafe { Self::new(p, name) }.map(Some) }
    }
    fn set(&self, value: T) {
        // SAFETY: not null, aligned, and the caller's until the place is gone.
        unsafe { self.0.write(value) }
    }
}

/// A place for a struct with its size set by the caller, and that size.
///
/// # Safety
/// As [`read`].
unsafe fn sized_out<T: Sized32>(p: *mut T, name: &str) -> Result<(Out<T>, u32), Failure> {
    // SAFETY: as granted.
    let out = unsafe { Out::new(p, name) }?;
    // SAFETY: not null and aligned; the size is the first member.
    let size = check_size::<T>(unsafe { p.cast::<u32>().read() })?;
    Ok((out, size))
}

/// `count` elements from `p`; null is allowed for none.
///
/// # Safety
/// `p` is null, misaligned or points to as many elements, which nobody writes for as long as the slice is used.
unsafe fn slice<'a, T: Copy>(p: *const T, count: usize, name: &str) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    check(p, name)?;
    let most = isize::MAX as usize / size_of::<T>().max(1);
    if count > most {
        return Err(Failure::value(&format!("length of {name}"), count, &format!("at most {most}")));
    }
    // SAFETY: not null, aligned, no longer than an object can be; the caller grants the rest.
    Ok(unsafe { std::slice::from_raw_parts(p, count) })
}

/// Elements whose size the caller states, since they have no size of their own.
fn check_element<T>(given: usize, name: &str) -> Result<(), Failure> {
    let own = size_of::<T>();
    if given == own {
        return Ok(());
    }
    Err(Failure::new(Status::WrongSize, format!("element size is {given}: expected {own}, sizeof({name})")))
}

/// A text of the caller.
///
/// # Safety
/// `p` is null or points to bytes that end with 0, which nobody writes for as long as the text is used.
unsafe fn text<'a>(p: *const c_char, name: &str) -> Result<&'a str, Failure> {
    check(p, name)?;
    // SAFETY: not null; the caller grants the rest.
    let text = unsafe { CStr::from_ptr(p) };
    text.to_str()
        .map_err(|e| Failure::new(Status::BadValue, format!("{name} is no UTF-8 from byte {} on", e.valid_up_to())))
}

/// A buffer of the caller, and the place for the length of what is written or would be.
struct Buffer {
    p: *mut u8,
    capacity: usize,
    len: Out<usize>,
}

impl Buffer {
    /// # Safety
    /// `p` is null or points to `capacity` bytes, `len` is null, misaligned or points to a `usize`, both until the
    /// buffer is gone.
    unsafe fn new(p: *mut u8, capacity: usize, len: *mut usize) -> Result<Self, Failure> {
        // SAFETY: as granted.
        let len = unsafe { Out::new(len, "length") }?;
        if capacity > 0 {
            check(p, "buffer")?;
        }
        Ok(Self { p, capacity, len })
    }
    /// Sets the length needed. Failure: it exceeds the capacity.
    fn reserve(&self, needed: usize) -> Result<(), Failure> {
        self.len.set(needed);
        if needed <= self.capacity {
            return Ok(());
        }
        let text = format!("capacity is {}: expected at least {needed}", self.capacity);
        Err(Failure::new(Status::BufferTooSmall, text))
    }
    fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        self.reserve(bytes.len())?;
        if !bytes.is_empty() {
            // SAFETY: `p` is not null and has room; `bytes` is this library's, or read from the caller's before: `copy`
            // allows an overlap.
            unsafe { std::ptr::copy(bytes.as_ptr(), self.p, bytes.len()) }
        }
        Ok(())
    }
}
