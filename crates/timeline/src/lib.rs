//! Recorded calls of other programs as one timeline, and why their rate fell.
//!
//! [`read`] recognises a file by its content, compressed by gzip or not, and returns a [`Recording`]: tables of packets,
//! RTCP, feedback, estimates, probes, frames, candidate pairs and statistics, each row with its time. A table that the
//! format does not have is empty, and a field that it does not have is `None`: nothing is made up. Several files of one
//! call make a [`Call`]; [`why::explain`] finds its episodes and ranks their causes.
//!
//! Sans-IO: bytes come by [`std::io::Read`], in order and once. All of them are hostile. A reader allocates by bytes that
//! have come, never by a length field, and a damaged file yields everything before the damage ([`Stop`]).

mod call;
mod capture;
mod columns;
mod event_log;
mod format;
mod input;
mod limits;
mod line;
pub mod lint;
mod marks;
mod number;
mod observed;
mod parameters;
mod pion;
mod recording;
pub mod redact;
pub mod replay;
mod report;
mod rtcp;
mod rtpdump;
mod schema;
mod scream;
mod source;
mod stats;
mod strays;
mod tables;
mod varint;
mod weir;
pub mod why;
mod window;

pub use call::{Call, Counts};
pub use format::Format;
pub use limits::Limits;
pub use observed::Observed;
pub use recording::Recording;
pub use report::Report;
pub use schema::{
    BlockReport, CandidatePair, Clock, Detector, Direction, Estimate, EstimateKind, Event, EventKind, Frame, Limited,
    NetworkType, OtherTraffic, Packet, PairChange, Probe, ProbeStep, Reported, Rtcp, RtcpKind, Series, Stop, Stream,
    StreamKind,
};
pub use source::{Interruption, Packets, Source};
pub use tables::{TABLES, Table, Values};
pub use window::Window;

use std::io::Read;
use thiserror::Error;

/// Why nothing of a file was read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No reader recognises the content.
    #[error("not a recording that Weir knows: {0}")]
    Unknown(String),
    /// An RtcEventLog in the format of before 2019.
    #[error("an RtcEventLog of version 1: only version 2 is read (Chromium writes it since 2019)")]
    OldEventLog,
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// The format of a recording by its first bytes. Of JSON, only [`read`] finds whether it is of a call.
///
/// # Errors
/// As of [`read`].
pub fn recognise(source: impl Read) -> Result<Format, ReadError> {
    let mut input = input::Input::new(source, Limits::default().bytes)?;
    input.skip_mark()?;
    Format::recognise(input.peek(format::PEEK)?)
}

/// Reads a recording whose format is recognised by its content. `name` is only kept, in [`Recording::name`].
///
/// # Errors
/// The format is unknown, or reading fails before the first record. Damage behind that is in [`Recording::stop`].
pub fn read(name: &str, source: impl Read) -> Result<Recording, ReadError> {
    read_within(name, source, Limits::default())
}

/// As [`read`], with bounds of one's own on bytes and rows.
///
/// # Errors
/// As [`read`].
pub fn read_within(name: &str, source: impl Read, limits: Limits) -> Result<Recording, ReadError> {
    let mut input = input::Input::new(source, limits.bytes)?;
    input.skip_mark()?;
    let head = input.peek(format::PEEK)?.to_vec();
    let format = Format::recognise(&head)?;
    let mut recording = Recording::within(name, format, limits);
    let stop = match format {
        Format::EventLog => event_log::read(&mut input, &mut recording)?,
        Format::Pcap | Format::Pcapng => capture::read(&mut input, &mut recording),
        Format::InternalsDump => stats::dump::read(&mut input, &mut recording),
        Format::GetStats => stats::lines::read(&mut input, &mut recording),
        Format::RtcStats => stats::rtcstats::read(&mut input, &mut recording),
        Format::PionRtp | Format::PionRtcp | Format::PionTarget => pion::read(format, &mut input, &mut recording),
        Format::RtpDump => rtpdump::read(&mut input, &mut recording),
        Format::Scream => scream::read(&mut input, &mut recording),
        Format::WeirSeries => weir::series::read(&mut input, &mut recording),
        Format::WeirResult => weir::result::read(&mut input, &mut recording),
        Format::WeirPage => weir::page::read(&mut input, &mut recording),
        Format::Observed => return Err(ReadError::Unknown("such packets are in no file".into())),
    };
    // Rows may run out behind the last record, where some of them are put together.
    let full = || recording.full().map(|why| Stop { offset: input.offset(), why });
    recording.stop = stop.or_else(full);
    if !recording.is_full() && stats::is_foreign(format, &recording, &head) {
        return Err(ReadError::Unknown("JSON without statistics or events of a call".into()));
    }
    recording.sort();
    // Totals of a report have few times, and far apart.
    if format != Format::WeirResult {
        strays::leave_out(&mut recording);
    }
    Ok(recording)
}
