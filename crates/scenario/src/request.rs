//! Inputs to the resolution of a file.

use weir_cc::Registry;

/// Inputs to the resolution of a file.
pub(super) struct Request<'a> {
    pub(super) name: &'a str,
    pub(super) variant: Option<&'a str>,
    pub(super) controller: Option<&'a str>,
    pub(super) registry: &'a Registry,
}
