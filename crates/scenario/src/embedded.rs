//! Files of the project inside the program, as `build.rs` lists them: adding a file to one of these folders is enough.

/// Path below the folder and text of each file, in the order of the paths.
pub type Files = &'static [(&'static str, &'static str)];

/// Scenario files and their traces, from `scenarios/`.
pub const SCENARIOS: Files = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));
/// Papers with their published numbers and curves, from `papers/`.
pub const PAPERS: Files = include!(concat!(env!("OUT_DIR"), "/papers.rs"));
/// Recordings of the authors' own programs, from `twins/`.
pub const TWINS: Files = include!(concat!(env!("OUT_DIR"), "/twins.rs"));
