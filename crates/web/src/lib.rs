//! The lab as WebAssembly: what a web page asks of it, as JSON, and what it answers.
//!
//! A request and its answer are texts, files of recorded calls are bytes beside it, series are numbers. [`answer`] is the
//! whole of it and runs on any machine; [`border`] passes its texts through WebAssembly's memory. A run's answer is the JSON of
//! the C library's `weir_run_json`, byte for byte.
//!
//! The lab's page calls WebAssembly by five functions, without wasm-bindgen. What passes is a text each way, bytes of files
//! and one list of numbers, for which wasm-bindgen's program would take 7 minutes of CPU to install, in the version of its
//! library exactly. JavaScript writes where `weir_reserve` and `weir_attach` say, so that no pointer comes in and no `unsafe`
//! block is needed. `lab` and `timeline` need no operating system.

pub mod answer;
pub mod border;
mod columns;
mod failure;
mod places;
mod recorded;
