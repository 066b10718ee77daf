//! The service as its callers see it.

mod attack;
mod cluster;
mod end_to_end;
mod faults;
mod page;
mod postgres;
mod postgres_faults;
mod stores;
mod support;
