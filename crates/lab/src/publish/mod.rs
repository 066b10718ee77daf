//! Output of results: series files, reports, figures, papers' numbers with measured ones, and captures.

pub mod atomic_write;
pub mod capture;
pub mod figures;
pub mod papers;
pub mod pcap;
pub mod report;
pub mod reproduce;
pub mod scorecard;
pub mod series_files;
mod smooth;
pub mod twins;
