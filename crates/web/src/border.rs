//! Functions that JavaScript calls. Texts and files pass through buffers of this module: JavaScript writes a request where
//! [`weir_reserve`] says, each file that belongs to it where [`weir_attach`] says, calls [`weir_answer`], and reads the outputs.
//! No pointer comes in, so there is nothing unsafe to do with one.
#![expect(unsafe_code, reason = "names that JavaScript calls by are unmangled")]

use crate::answer::{Lab, MAX_FILES, MAX_FILES_BYTES};
use serde_json::json;
use std::cell::RefCell;
use std::sync::{Mutex, Once};

/// Greatest request in bytes: a scenario of the size that is read from a file, written as JSON.
const MAX_REQUEST: usize = 16 << 20;
/// An answer, the result's JSON or a list.
const TEXT: u32 = 0;
/// JSON: the columns of the series, and the digest.
const ABOUT: u32 = 1;
/// The series as 64-bit floating-point numbers.
const NUMBERS: u32 = 2;
/// Why the program has stopped, after a trap.
const PANIC: u32 = 3;

#[derive(Default)]
struct Buffers {
    request: Vec<u8>,
    files: Vec<Vec<u8>>,
    text: String,
    about: String,
    numbers: Vec<f64>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
    static LAB: RefCell<Lab> = RefCell::default();
}
/// Apart from the rest, which may be in use when a panic writes here.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());
static HOOK: Once = Once::new();

/// Makes room for a request of this many bytes. Returns where to write it, or null if it is too large. Files that came for an
/// earlier one are dropped.
#[unsafe(no_mangle)]
pub extern "C" fn weir_reserve(len: usize) -> *mut u8 {
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            if let Ok(mut last) = LAST_PANIC.lock() {
                *last = info.to_string();
            }
        }));
    });
    if len > MAX_REQUEST {
        return std::ptr::null_mut();
    }
    BUFFERS.with_borrow_mut(|b| {
        b.files = Vec::new();
        b.request.clear();
        b.request.resize(len, 0);
        b.request.as_mut_ptr()
    })
}

/// Makes room for a further file of the request, of this many bytes. Returns where to write it, or null if there are too many
/// files, too many bytes of them, or no memory.
#[unsafe(no_mangle)]
pub extern "C" fn weir_attach(len: usize) -> *mut u8 {
    BUFFERS.with_borrow_mut(|b| {
        let bytes = b.files.iter().map(Vec::len).fold(len, usize::saturating_add);
        let mut file = Vec::new();
        if b.files.len() >= MAX_FILES || bytes > MAX_FILES_BYTES || file.try_reserve_exact(len).is_err() {
            return std::ptr::null_mut();
        }
        file.resize(len, 0);
        b.files.push(file);
        b.files.last_mut().map_or(std::ptr::null_mut(), Vec::as_mut_ptr)
    })
}

/// Answers the request that was written. Returns 0, or 1 if the output text is an error.
#[unsafe(no_mangle)]
pub extern "C" fn weir_answer() -> u32 {
    let (request, files) = BUFFERS.with_borrow_mut(|b| {
        let given = (std::mem::take(&mut b.request), std::mem::take(&mut b.files));
        *b = Buffers::default();
        given
    });
    let made = LAB.with_borrow_mut(|lab| lab.answer(&String::from_utf8_lossy(&request), files));
    BUFFERS.with_borrow_mut(|b| match made {
        Ok(made) => {
            b.about = json!({ "columns": made.columns, "digest": made.digest }).to_string();
            (b.text, b.numbers) = (made.text, made.numbers);
            0
        }
        Err(failure) => {
            b.text = json!(failure).to_string();
            1
        }
    })
}

/// Where an output is: 0 the answer, 1 what is in its numbers, 2 the numbers, 3 the text of a panic. Valid until the
/// next call.
#[unsafe(no_mangle)]
pub extern "C" fn weir_output(which: u32) -> *const u8 {
    output(which).0
}

/// Bytes of an output.
#[unsafe(no_mangle)]
pub extern "C" fn weir_output_len(which: u32) -> usize {
    output(which).1
}

fn output(which: u32) -> (*const u8, usize) {
    let of_text = |text: &str| (text.as_ptr(), text.len());
    if which == PANIC {
        return LAST_PANIC.lock().map_or((std::ptr::null(), 0), |last| of_text(&last));
    }
    BUFFERS.with_borrow(|b| match which {
        TEXT => of_text(&b.text),
        ABOUT => of_text(&b.about),
        NUMBERS => (b.numbers.as_ptr().cast(), size_of_val(b.numbers.as_slice())),
        _ => (std::ptr::null(), 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_panic_is_kept() {
        assert!(weir_reserve(MAX_REQUEST + 1).is_null());
        assert!(!weir_reserve(1).is_null());
        assert!(std::panic::catch_unwind(|| panic!("by design")).is_err());
        assert!(LAST_PANIC.lock().is_ok_and(|last| last.contains("by design")));
        assert!(output(PANIC).1 > 9 && output(4) == (std::ptr::null(), 0));
    }

    #[test]
    fn files_have_bounds_and_go_with_their_request() {
        assert!(!weir_reserve(1).is_null());
        assert!(weir_attach(MAX_FILES_BYTES + 1).is_null());
        for _ in 0..MAX_FILES {
            assert!(!weir_attach(1).is_null());
        }
        assert!(weir_attach(1).is_null(), "one more than a call may have");
        // Those of a request that was given up are gone.
        assert!(!weir_reserve(1).is_null() && !weir_attach(3).is_null());
        BUFFERS.with_borrow_mut(|b| {
            assert_eq!(b.files, [vec![0; 3]]);
            b.request = br#"{"ask":"open","names":["a.log"]}"#.to_vec();
        });
        assert_eq!(weir_answer(), 1);
        BUFFERS.with_borrow(|b| {
            assert!(b.files.is_empty() && b.text.contains("\"kind\":\"recording\""), "{}", b.text);
            assert!(b.text.contains("a.log: not a recording") && b.text.contains("00 00 00"), "{}", b.text);
        });
    }

    #[test]
    fn an_answer_is_left_where_it_is_looked_for() {
        BUFFERS.with_borrow_mut(|b| b.request = br#"{"ask":"schema"}"#.to_vec());
        assert_eq!(weir_answer(), 0);
        assert!(weir_output_len(TEXT) > 10_000 && weir_output_len(NUMBERS) == 0);
        assert_eq!(weir_answer(), 1);
        BUFFERS.with_borrow(|b| assert!(b.text.contains("\"kind\":\"request\""), "{}", b.text));
    }
}
