//! The call of a check with an estimator at the receiver.

use super::call::{Call, DELAY, Frames, LENGTH, PACKET, Path, SILENCE, STEP_MS};
use crate::{RemoteReceiver, nominal};
use weir_cc::cue::ReceivedPacket;
use weir_cc::{ReceiverController as _, Report};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

/// Bytes of headers in each packet.
const HEADERS: u64 = 20;
/// RTP clock in kHz.
const CLOCK_KHZ: f64 = 90.0;

fn asked(report: Option<Report>) -> Option<DataRate> {
    match report? {
        Report::Remb { rate } | Report::Tmmbr { rate } => Some(rate),
        _ => None,
    }
}

/// Packets go over the link at the rate that the receiver asked for last; a message is as long under way as a packet of an empty
/// link. During the silence nothing is sent. Targets are those asked for.
pub(super) fn call(remote: &mut RemoteReceiver) -> Call {
    let (mut out, mut path, mut frames) = (Call::default(), Path::default(), Frames::default());
    let limits = nominal().limits;
    let mut rate = nominal().start_rate;
    // Rates that the sender does not know yet, each with its time.
    let mut under_way: Vec<(f64, DataRate)> = Vec::new();
    let mut sequence = 0;
    let begin = crate::process::wall();
    for ms in 1..(LENGTH * 1e3) as i64 {
        let now = Timestamp::from_millis(ms * STEP_MS);
        let at = now.as_secs_f64();
        let mut asks = |rate: Option<DataRate>, out: &mut Call| {
            if let Some(rate) = rate {
                out.targets.push((at, rate));
                under_way.push((at + DELAY, limits.clamp(rate)));
            }
        };
        while remote.poll_timeout().is_some_and(|due| due <= now) {
            asks(asked(remote.poll_report(now)), &mut out);
            out.timers += 1;
        }
        let has_come = |p: &&weir_cc::cue::PacketResult| p.arrival.is_none_or(|a| a.as_secs_f64() <= at);
        let count = path.reported.iter().take_while(has_come).count();
        for p in path.reported.drain(..count) {
            // Lost ones are gaps in the numbers.
            if p.arrival.is_none() {
                continue;
            }
            remote.on_packet_received(&ReceivedPacket {
                now,
                departure: Some(RemoteTimestamp::from_nanos(p.departure.as_nanos())),
                size: p.size,
                payload: DataSize::from_bytes(PACKET - HEADERS),
                sequence: p.sequence,
                rtp_timestamp: (p.departure.as_secs_f64() * 1e3 * CLOCK_KHZ) as u32,
                marker: false,
                ecn: Ecn::NotEct,
            });
            asks(asked(remote.poll_report(now)), &mut out);
        }
        if ms % 1_000 == 0 {
            remote.on_rtt(TimeDelta::from_secs_f64(2.0 * DELAY), now);
        }
        while let Some(first) = under_way.first().filter(|(arrives, _)| *arrives <= at) {
            rate = first.1;
            under_way.remove(0);
        }
        if let Some(packets) = frames.due(at, rate).filter(|_| !SILENCE.contains(&at)) {
            for _ in 0..packets {
                sequence += 1;
                path.send(sequence, now);
            }
        }
    }
    (out.took, out.traffic) = (begin.elapsed().as_secs_f64(), remote.traffic());
    out
}
