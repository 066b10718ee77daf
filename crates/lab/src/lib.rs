//! From a scenario to numbers, and from numbers to what is read.
//!
//! [`measure`] runs scenario files and takes metrics; it needs no operating system. [`publish`] makes tables, figures, reports and captures
//! of what was measured, and sets it beside published numbers.

pub mod measure;
pub mod publish;
