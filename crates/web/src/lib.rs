//! The lab as WebAssembly: what a web page asks of it, as JSON, and what it answers.
//!
//! A request and its answer are texts, series are numbers beside it. [`answer`] is the whole of it and runs on any
//! machine; [`border`] passes its texts through WebAssembly's memory. A run's answer is the JSON of the C library's
//! `weir_run_json`, byte for byte.

pub mod answer;
pub mod border;
mod columns;
mod failure;
mod places;
