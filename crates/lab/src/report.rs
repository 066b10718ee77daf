//! Output of results: series files, pages, figures, explanations and captures.

pub mod atomic_write;
pub mod capture;
pub mod explain;
pub mod explain_plot;
pub mod figures;
pub mod page;
pub mod pcap;
pub mod published;
pub mod series_files;
pub mod series_read;
mod smooth;
