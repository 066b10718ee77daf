//! Flags of tests that end threads.

use std::sync::atomic::{AtomicBool, Ordering};

/// Raises a flag when it is dropped, also by a panic: a scope would otherwise wait for the thread that looks at it, and the test
/// hang in place of failing.
pub(crate) struct Raise<'a>(pub(crate) &'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
