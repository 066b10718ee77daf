//! Captures: pcap and pcapng.
//!
//! RTP headers and extensions are in the clear in SRTP too. RTCP is read where it is in the clear and whole. Packets that
//! a capture cut (snaplen) count with the length that their headers give.

mod clocks;
mod extensions;
mod file;
mod flows;
mod link;
mod repairs;

pub(crate) use extensions::{Elements, elements};

use crate::input::Input;
use crate::recording::Recording;
use crate::schema::{Clock, Stop};

pub(crate) fn read(input: &mut Input<'_>, out: &mut Recording) -> Option<Stop> {
    out.clock = Clock::Utc;
    let mut flows = flows::Flows::default();
    let stop = file::read(input, out, &mut |out, captured| {
        out.record = out.record.saturating_add(1);
        flows.add(out, captured);
    });
    flows.finish(out);
    stop
}

#[cfg(test)]
mod tests;
