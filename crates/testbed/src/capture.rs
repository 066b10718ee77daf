//! The packets of a run in real time as a file, written by a thread of its own so that no disk holds up the emulator.

use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use weir_lab::measure::scenario::Scenario;
use weir_lab::publish::atomic_write::write_atomically;
use weir_lab::publish::capture::announcements;
use weir_lab::publish::pcap::{DccpPacket, Payload, PcapFileError, PcapWriter};
use weir_live::clock::Clock;
use weir_live::tun::DEVICE;
use weir_units::Timestamp;

/// Packets that may wait for the disk; more are left out of the capture.
const WAITING: usize = 50_000;

/// Where packets are handed in.
pub(super) struct Capture {
    packets: SyncSender<(Timestamp, Vec<u8>)>,
}

/// Where they come out.
pub(super) type Captured = Receiver<(Timestamp, Vec<u8>)>;

pub(super) fn capture() -> (Capture, Captured) {
    let (packets, captured) = sync_channel(WAITING);
    (Capture { packets }, captured)
}

impl Capture {
    pub(super) fn packet(&mut self, now: Timestamp, bytes: &[u8]) {
        // A disk that does not keep up costs packets of the capture, not of the run.
        let _ = self.packets.try_send((now, bytes.to_vec()));
    }
}

/// Writes what comes until the other end goes; gives the number of packets. The file comes into being whole or not at all.
pub(super) fn write(path: &Path, scenario: &Scenario, captured: &Captured, clock: &OnceLock<Clock>) -> io::Result<u64> {
    let payload_type = weir_session::EndpointConfig::default().payload_type;
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
