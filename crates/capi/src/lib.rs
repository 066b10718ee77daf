//! Weir for C and C++: the controllers and the Reed-Solomon repair of RFC 6865 behind a small, stable ABI.
//!
//! The header is `include/weir.h`, made from [`border`] by cbindgen; users read `docs/c.md`. Only `border` has `unsafe`
//! code: it checks pointers and sizes, and passes values to the modules beside it, which are safe.
//!
//! Handles are not pointers. They name a slot, its generation and the kind of object, so that one that was freed, forged or
//! of another kind is an error at every call.

pub mod border;
mod controller;
pub mod failure;
mod fec;
#[cfg(feature = "lab")]
mod lab;
mod names;
mod params;
mod policies;
mod reader;
mod rtcp;
mod runs;
pub mod table;
pub mod types;
