//! Output of results: [`series_files`], [`figures`], the [`page`] of a comparison, what [`explain`] says of a run, [`capture`]s of
//! its packets, and the run as a [`recorded`] call.

pub mod atomic_write;
pub mod capture;
pub mod explain;
pub mod explain_plot;
pub mod figures;
pub mod page;
pub mod pcap;
pub mod published;
pub mod recorded;
pub mod series_files;
pub mod series_read;
mod smooth;
