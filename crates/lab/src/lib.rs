//! From a scenario to numbers, and from numbers to reports.
//!
//! [`measure`] runs scenario files and computes metrics; it needs no operating system. [`publish`] makes tables,
//! figures, reports and captures of the results, and compares them with published numbers.

pub mod measure;
#[cfg(feature = "publish")]
pub mod publish;
