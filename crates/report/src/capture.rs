//! A run's packets as a file.

use crate::atomic_write::write_atomically;
use crate::pcap::{Announcement, Datagram, Direction, PacketKind, Payload, PcapFileError, PcapWriter};
use pcap_file::PcapError;
use std::io;
use std::path::Path;
use weir_lab::results::RunResult;
use weir_lab::run::{Capture, CapturePoint, CapturedPacket, RunError, RunOptions, run_with};
use weir_lab::scenario::Scenario;
use weir_units::Timestamp;

/// Why a capture could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The run failed or was stopped.
    #[error(transparent)]
    Run(Box<RunError>),
    /// The file could not be written.
    #[error("cannot write {file}: {source}")]
    Write {
        /// The file.
        file: String,
        /// The error.
        source: io::Error,
    },
}

/// Options of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CaptureOptions {
    /// The point of the network, which the file's comment states.
    pub at: CapturePoint,
    /// Write payloads that exist as a length only as zeros; otherwise such packets are truncated.
    pub zeros: bool,
}

/// The name of a point as a capture's interface, and its description.
fn described(at: CapturePoint, scenario: &Scenario) -> (&'static str, String) {
    let link = scenario.links.get(scenario.bottleneck).map_or("", |l| &l.name);
    match at {
        CapturePoint::Sender => ("sender", "captured at the media sender: lost packets are here".into()),
        CapturePoint::Receiver => ("receiver", "captured at the media receiver: lost packets are missing".into()),
        CapturePoint::Ends => ("ends", "captured at both ends: each packet that arrives is there twice".into()),
        CapturePoint::Link => {
            ("link", format!("captured behind the link `{link}`: what was lost up to its far end is missing"))
        }
    }
}

/// Runs a scenario and writes its RTP, RTCP and DCCP packets as pcapng, the last as IP protocol 33; the file is written
/// completely or not at all. Returns the run's result and the number of packets.
pub fn write(
    scenario: &Scenario,
    seed: u64,
    options: &RunOptions<'_>,
    path: &Path,
    what: CaptureOptions,
) -> Result<(RunResult, u64), CaptureError> {
    let payload_type = weir_session::StreamIdentity::default().payload_type;
    let payload = if what.zeros { Payload::Zeros } else { Payload::Snapped };
    let mut packets = 0;
    let mut ended = None;
    let fail = |e: PcapFileError| match e {
        PcapFileError::Write(PcapError::IoError(e)) => e,
        e => io::Error::other(e.to_string()),
    };
    let written = write_atomically(path, |out| {
        let (interface, seen) = described(what.at, scenario);
        let comment = format!("{}, seed {seed}; {seen}", scenario.label());
        let mut writer = PcapWriter::on(interface, out, &comment, payload).map_err(fail)?;
        for a in announcements(scenario, payload_type) {
            writer.announce(Timestamp::ZERO, &a).map_err(fail)?;
        }
        let mut error = None;
        let mut sink = |p: &CapturedPacket<'_>| {
            let Ok(flow) = u16::try_from(p.flow) else { return };
            if error.is_some() {
                return;
            }
            let direction = if p.forward { Direction::Forward } else { Direction::Reverse };
            let length = p.bytes.len() + p.payload as usize;
            let kind = if p.is_dccp { PacketKind::Dccp } else { PacketKind::Udp };
            match writer.packet(&Datagram { now: p.now, flow, direction, kind, bytes: p.bytes, length, ecn: p.ecn }) {
                Ok(()) => packets += 1,
                Err(e) => error = Some(e),
            }
        };
        let result = run_with(scenario, seed, options, Some(Capture { at: what.at, sink: &mut sink }));
        if let Some(e) = error {
            return Err(fail(e));
        }
        writer.finish().map_err(fail)?;
        let failed = result.is_err();
        ended = Some(result);
        if failed { Err(io::Error::other("the run failed")) } else { Ok(()) }
    });
    let fail_write = |source| CaptureError::Write { file: path.display().to_string(), source };
    match (ended, written) {
        (Some(Err(e)), _) => Err(CaptureError::Run(Box::new(e))),
        (_, Err(source)) => Err(fail_write(source)),
        (Some(Ok(result)), Ok(())) => Ok((result, packets)),
        (None, Ok(())) => Err(fail_write(io::Error::other("nothing was run"))),
    }
}

/// The RTP flows of a scenario, for the announcements of a capture.
pub fn announcements(scenario: &Scenario, payload_type: u8) -> impl Iterator<Item = Announcement<'_>> {
    scenario.flows.iter().enumerate().filter_map(move |(i, flow)| {
        let kind = if flow.rtp()?.dccp.is_some() { PacketKind::Dccp } else { PacketKind::Udp };
        Some(Announcement { flow: u16::try_from(i).ok()?, name: &flow.name, kind, payload_type })
    })
}
