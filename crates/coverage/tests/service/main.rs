//! The service as its callers see it.

mod attack;
mod end_to_end;
mod faults;
mod page;
mod stores;
mod support;
