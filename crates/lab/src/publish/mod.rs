//! Output of results: series files, reports, figures, papers' numbers with measured ones, and captures.

pub mod atomic_write;
pub mod capture;
pub mod explain;
pub mod explain_plot;
pub mod figures;
pub mod papers;
pub mod pcap;
pub mod report;
pub mod reproduce;
pub mod scoreboard;
pub mod scorecard;
pub mod series_files;
pub mod series_read;
mod smooth;
pub mod stability;
pub mod sweep;
pub mod tune;
pub mod twins;
