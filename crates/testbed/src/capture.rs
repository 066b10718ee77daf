//! Captures the packets of a live run to a file, on a thread of its own so that the disk does not delay the emulator.

use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use weir_lab::scenario::Scenario;
use weir_live::clock::Clock;
use weir_live::tun::{DEVICE, Side};
use weir_report::atomic_write::write_atomically;
use weir_report::capture::announcements;
use weir_report::pcap::{DccpPacket, Payload, PcapFileError, PcapWriter};
use weir_units::Timestamp;

/// Most packets waiting for the disk; more are left out of the capture.
const WAITING: usize = 50_000;

/// Where packets are captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapturePoint {
    /// All packets that enter the emulator, of both directions.
    Entering,
    /// The media senders' end: media as it leaves, feedback as it arrives.
    Sender,
    /// The media receivers' end: media as it arrives, feedback as it leaves.
    Receiver,
}

impl CapturePoint {
    /// Whether it sees a packet from one side as it enters the emulator.
    pub(super) fn sees_sent(self, from: Side) -> bool {
        match self {
            Self::Entering => true,
            Self::Sender => from == Side::Left,
            Self::Receiver => from == Side::Right,
        }
    }
    /// Whether it sees a packet from one side as it leaves the emulator.
    pub(super) fn sees_delivered(self, from: Side) -> bool {
        self != Self::Entering && !self.sees_sent(from)
    }
}

/// A capture to write, as pcapng.
#[derive(Clone, Copy, Debug)]
pub struct CaptureFile<'a> {
    /// Where its packets are captured.
    pub at: CapturePoint,
    /// The file.
    pub path: &'a Path,
}

/// The sending side.
pub(super) struct Capture {
    pub(super) at: CapturePoint,
    packets: SyncSender<(Timestamp, Vec<u8>)>,
}

/// The receiving side.
pub(super) type Captured = Receiver<(Timestamp, Vec<u8>)>;

pub(super) fn capture(at: CapturePoint) -> (Capture, Captured) {
    let (packets, captured) = sync_channel(WAITING);
    (Capture { at, packets }, captured)
}

impl Capture {
    pub(super) fn packet(&mut self, now: Timestamp, bytes: &[u8]) {
        // A slow disk costs packets of the capture, not of the run.
        let _ = self.packets.try_send((now, bytes.to_vec()));
    }
}

/// Writes packets until the sending side is closed; returns their number. The file is created completely or not at all.
pub(super) fn write(path: &Path, scenario: &Scenario, captured: &Captured, clock: &OnceLock<Clock>) -> io::Result<u64> {
    let payload_type = weir_session::StreamIdentity::default().payload_type;
    let fail = |e: PcapFileError| io::Error::other(e.to_string());
    let of_day = |at| {
        let unix = clock.get().map_or_else(Default::default, |c| c.unix(at));
        Timestamp::from_nanos(i64::try_from(unix.as_nanos()).unwrap_or(i64::MAX))
    };
    let mut count = 0;
    write_atomically(path, |out| {
        let mut writer = PcapWriter::on(DEVICE, out, &scenario.label(), Payload::Snapped).map_err(fail)?;
        let mut announced = false;
        for (now, packet) in captured {
            if !announced {
                announced = true;
                for a in announcements(scenario, payload_type) {
                    writer.announce(of_day(Timestamp::ZERO), &a).map_err(fail)?;
                }
            }
            match DccpPacket::of_udp(&packet) {
                Some(dccp) => writer.dccp(of_day(now), &dccp),
                None => writer.ip(of_day(now), &packet),
            }
            .map_err(fail)?;
            count += 1;
        }
        writer.finish().map_err(fail)?;
        Ok(())
    })?;
    Ok(count)
}
