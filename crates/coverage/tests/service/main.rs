//! The service as its callers see it.

mod attack;
mod cluster;
mod end_to_end;
mod faults;
#[cfg(target_os = "linux")]
#[path = "../../../live/tests/support/flood.rs"]
mod flood;
#[cfg(target_os = "linux")]
mod floods;
#[cfg(target_os = "linux")]
#[path = "../../../peer/tests/support/newcomer.rs"]
mod newcomer;
mod page;
mod postgres;
mod postgres_faults;
mod stores;
mod support;
