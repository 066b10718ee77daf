//! What a file is resolved for.

use weir_cc::Registry;

/// What a file is resolved for, and what it may draw on.
pub(super) struct Request<'a> {
    pub(super) name: &'a str,
    pub(super) variant: Option<&'a str>,
    pub(super) controller: Option<&'a str>,
    pub(super) registry: &'a Registry,
}
