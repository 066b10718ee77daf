//! Measures the paths of a flow that has several: what each carries, and the order of arrival on all together.

use crate::histogram::Histogram;
use crate::results::{Distribution, MultipathSummary, PathSummary};
use crate::scenario::Multipath;
use std::collections::VecDeque;
use weir_session::PathStats;
use weir_units::{DataSize, PathId, TimeDelta, Timestamp};

/// Packets remembered per stream: several seconds of video at 10 Mbit/s.
const WINDOW: usize = 8_192;
/// Arrivals kept to find the first with a higher sequence number.
const MAX_RECORDS: usize = 4_096;
/// Streams of a flow that are followed.
const MAX_STREAMS: usize = 64;

/// Paths of one flow.
pub struct PathMeter {
    scheduler: String,
    paths: Vec<Path>,
    streams: Vec<Stream>,
    sent: u64,
    received: u64,
    duplicates: u64,
    recovered: u64,
    reordered: u64,
    extent: Histogram,
    late_time: Histogram,
    last_arrival: Option<Timestamp>,
    /// The longest gap and its beginning.
    gap: (TimeDelta, Timestamp),
}

#[derive(Default)]
struct Path {
    name: String,
    packets: u64,
    lost: u64,
    sent: u64,
    received: u64,
    delay: Histogram,
    /// Sums of the sampled targets and round-trip times, and their numbers.
    target: (f64, u64),
    rtt: (f64, u64),
    /// Bytes sent at the last row.
    row: u64,
}

struct Stream {
    ssrc: u32,
    packets: Vec<Sent>,
    /// The highest extended sequence number received, and arrivals so far.
    highest: Option<i64>,
    arrivals: u64,
    /// Arrivals with a higher number than all before: number, index and time.
    records: VecDeque<(i64, u64, Timestamp)>,
}

/// A media packet by its sequence number.
#[derive(Clone, Copy, Default)]
struct Sent {
    sequence: Option<u16>,
    path: PathId,
    is_received: bool,
    is_lost: bool,
}

/// The stream and sequence number of an RTP packet.
fn identity(rtp: &[u8]) -> Option<(u32, u16)> {
    let sequence = rtp.get(2..4)?.first_chunk()?;
    let ssrc = rtp.get(8..12)?.first_chunk()?;
    Some((u32::from_be_bytes(*ssrc), u16::from_be_bytes(*sequence)))
}

impl PathMeter {
    /// A meter of these paths.
    pub fn new(m: &Multipath) -> Self {
        let path = |name: &String| Path { name: name.clone(), ..Path::default() };
        Self {
            scheduler: m.scheduler.clone(),
            paths: m.paths.iter().map(|p| path(&p.name)).collect(),
            streams: Vec::new(),
            sent: 0,
            received: 0,
            duplicates: 0,
            recovered: 0,
            reordered: 0,
            extent: Histogram::new(),
            late_time: Histogram::new(),
            last_arrival: None,
            gap: (TimeDelta::ZERO, Timestamp::ZERO),
        }
    }

    fn packet(&mut self, rtp: &[u8]) -> Option<(usize, usize, u16)> {
        let (ssrc, sequence) = identity(rtp)?;
        let stream = match self.streams.iter().position(|s| s.ssrc == ssrc) {
            Some(known) => known,
            None if self.streams.len() >= MAX_STREAMS => return None,
            None => {
                self.streams.push(Stream {
                    ssrc,
                    packets: vec![Sent::default(); WINDOW],
                    highest: None,
                    arrivals: 0,
                    records: VecDeque::new(),
                });
                self.streams.len() - 1
            }
        };
        Some((stream, usize::from(sequence) % WINDOW, sequence))
    }

    /// An RTP packet was sent. Whether it is a copy of a media packet sent before.
    pub fn on_sent(&mut self, path: PathId, rtp: &[u8], size: DataSize, is_media: bool) -> bool {
        if let Some(p) = self.paths.get_mut(path.index()) {
            p.packets += 1;
            p.sent += size.as_bytes();
        }
        let Some((stream, slot, sequence)) = self.packet(rtp).filter(|_| is_media) else { return false };
        let packet = &mut self.streams[stream].packets[slot];
        if packet.sequence == Some(sequence) {
            return true;
        }
        *packet = Sent { sequence: Some(sequence), path, is_received: false, is_lost: false };
        self.sent += 1;
        false
    }

    /// An RTP packet was dropped on its path. Whether it is a copy of a media packet.
    pub fn on_dropped(&mut self, path: PathId, rtp: &[u8], is_media: bool) -> bool {
        if let Some(p) = self.paths.get_mut(path.index()) {
            p.lost += 1;
        }
        let Some((stream, slot, sequence)) = self.packet(rtp).filter(|_| is_media) else { return false };
        let packet = &mut self.streams[stream].packets[slot];
        if packet.sequence != Some(sequence) {
            return false;
        }
        if packet.path != path {
            return true;
        }
        packet.is_lost = true;
        self.recovered += u64::from(packet.is_received);
        false
    }

    /// An RTP packet was received. Whether a copy of it was received before.
    pub fn on_received(
        &mut self,
        path: PathId,
        rtp: &[u8],
        size: DataSize,
        is_media: bool,
        (sent, now): (Timestamp, Timestamp),
    ) -> bool {
        if let Some(p) = self.paths.get_mut(path.index()) {
            p.received += size.as_bytes();
            p.delay.record(now.saturating_since(sent).as_nanos().max(0) as u64);
        }
        let Some((stream, slot, sequence)) = self.packet(rtp).filter(|_| is_media) else { return false };
        let packet = &mut self.streams[stream].packets[slot];
        if packet.sequence == Some(sequence) {
            if packet.is_received {
                self.duplicates += 1;
                return true;
            }
            packet.is_received = true;
            self.recovered += u64::from(packet.is_lost);
        }
        self.received += 1;
        self.on_order(stream, sequence, now);
        self.on_gap(now);
        false
    }

    fn on_gap(&mut self, now: Timestamp) {
        let last = self.last_arrival.replace(now).unwrap_or(now);
        if now - last > self.gap.0 {
            self.gap = (now - last, last);
        }
    }

    fn on_order(&mut self, stream: usize, sequence: u16, now: Timestamp) {
        let s = &mut self.streams[stream];
        let index = s.arrivals;
        s.arrivals += 1;
        let Some(highest) = s.highest else {
            s.highest = Some(sequence.into());
            s.records.push_back((sequence.into(), index, now));
            return;
        };
        let number = highest + i64::from(sequence.wrapping_sub(highest as u16) as i16);
        if number > highest {
            s.highest = Some(number);
            s.records.push_back((number, index, now));
            if s.records.len() > MAX_RECORDS {
                s.records.pop_front();
            }
            return;
        }
        self.reordered += 1;
        let first = s.records.partition_point(|r| r.0 < number);
        if let Some(&(_, before, at)) = s.records.get(first) {
            self.extent.record(index - before);
            self.late_time.record(now.saturating_since(at).as_nanos().max(0) as u64);
        }
    }

    /// A sample of one path of the sending end.
    pub fn on_stats(&mut self, path: usize, stats: &PathStats) {
        let Some(p) = self.paths.get_mut(path) else { return };
        p.target.0 += stats.target.as_bps_f64();
        p.target.1 += 1;
        if let Some(rtt) = stats.rtt {
            p.rtt.0 += rtt.as_millis_f64();
            p.rtt.1 += 1;
        }
    }

    /// Each path's name and the bytes sent on it since the last call.
    pub fn take_row(&mut self) -> impl Iterator<Item = (&str, u64)> {
        self.paths.iter_mut().map(|p| {
            let sent = p.sent - std::mem::replace(&mut p.row, p.sent);
            (p.name.as_str(), sent)
        })
    }

    /// Media packets lost of which a copy was received.
    pub fn recovered(&self) -> u64 {
        self.recovered
    }

    /// The summary of a flow active from `start` to `stop`.
    pub fn finish(&mut self, start: Timestamp, stop: Timestamp) -> MultipathSummary {
        if self.received > 0 {
            self.on_gap(stop);
        }
        let seconds = stop.saturating_since(start).as_secs_f64().max(1e-9);
        let all: u64 = self.paths.iter().map(|p| p.sent).sum();
        let share = |part: u64, whole: u64| if whole > 0 { part as f64 / whole as f64 } else { 0.0 };
        let mean = |(sum, n): (f64, u64)| (n > 0).then(|| sum / n as f64);
        let paths: Vec<PathSummary> = (self.paths.iter())
            .map(|p| PathSummary {
                name: p.name.clone(),
                share: share(p.sent, all),
                sent_bps: p.sent as f64 * 8.0 / seconds,
                received_bps: p.received as f64 * 8.0 / seconds,
                target_bps: mean(p.target),
                rtt_ms: mean(p.rtt),
                one_way_delay_ms: Distribution::of(&p.delay, 1e-6),
                packets: p.packets,
                loss: share(p.lost, p.packets),
            })
            .collect();
        let medians = || paths.iter().filter_map(|p| p.one_way_delay_ms.map(|d| d.p50));
        let skew = medians().fold(f64::NEG_INFINITY, f64::max) - medians().fold(f64::INFINITY, f64::min);
        MultipathSummary {
            scheduler: self.scheduler.clone(),
            skew_ms: (medians().count() > 1).then_some(skew),
            residual_loss: share(self.sent.saturating_sub(self.received), self.sent),
            duplicates: share(self.duplicates, self.received + self.duplicates),
            reordered: share(self.reordered, self.received),
            reordering_extent: Distribution::of(&self.extent, 1.0),
            late_time_ms: Distribution::of(&self.late_time, 1e-6),
            longest_gap_ms: self.gap.0.as_millis_f64(),
            longest_gap_at_s: self.gap.1.as_nanos() as f64 / 1e9,
            paths,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::FlowPath;

    const A: PathId = PathId::FIRST;
    const B: PathId = PathId::new(1);
    const SIZE: DataSize = DataSize::from_bytes(1_000);

    fn meter() -> PathMeter {
        let path = |name: &str| FlowPath { name: name.into(), forward: vec![0], reverse: vec![1] };
        let paths = vec![path("a"), path("b")];
        let m = Multipath {
            scheduler: "earliest".into(),
            coupling: "none".into(),
            skew_playout: false,
            policies: Vec::new(),
            sufficient_rate: None,
            priorities: Vec::new(),
            paths,
        };
        PathMeter::new(&m)
    }
    fn packet(sequence: u16) -> [u8; 12] {
        let [s0, s1] = sequence.to_be_bytes();
        [0x80, 96, s0, s1, 0, 0, 0, 0, 0, 0, 0, 7]
    }
    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }
    fn receive(m: &mut PathMeter, path: PathId, sequence: u16, at: i64) -> bool {
        m.on_received(path, &packet(sequence), SIZE, true, (Timestamp::ZERO, ms(at)))
    }

    #[test]
    fn copies_are_counted_once() {
        let mut m = meter();
        for sequence in 0..4 {
            assert!(!m.on_sent(A, &packet(sequence), SIZE, true));
            assert!(m.on_sent(B, &packet(sequence), SIZE, true));
        }
        // 0 arrives twice; of 1 the first copy is lost, of 2 the second, of 3 both.
        assert!(!receive(&mut m, A, 0, 10));
        assert!(receive(&mut m, B, 0, 20));
        assert!(!m.on_dropped(A, &packet(1), true));
        assert!(!receive(&mut m, B, 1, 21));
        assert!(!receive(&mut m, A, 2, 22));
        assert!(m.on_dropped(B, &packet(2), true));
        assert!(!m.on_dropped(A, &packet(3), true));
        assert!(m.on_dropped(B, &packet(3), true));
        assert_eq!(m.recovered(), 1);
        let s = m.finish(Timestamp::ZERO, ms(1_000));
        assert_eq!((s.residual_loss, s.duplicates, s.reordered), (0.25, 0.25, 0.0));
        assert_eq!((s.paths[0].loss, s.paths[1].loss, s.paths[0].share), (0.5, 0.5, 0.5));
        assert_eq!((s.longest_gap_ms, s.longest_gap_at_s), (978.0, 0.022));
    }

    #[test]
    fn reordering_is_that_of_rfc_4737() {
        // RFC 4737, section 4.2.2: in 1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11 packet 4 has the extent 4, 5 has 5 and 6 has 6.
        let mut m = meter();
        let order = [1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11];
        for (sequence, i) in order.into_iter().zip(0..) {
            receive(&mut m, A, sequence, 10 * i);
        }
        let s = m.finish(Timestamp::ZERO, ms(200));
        assert!((s.reordered - 3.0 / 11.0).abs() < 1e-12);
        let extent = s.reordering_extent.expect("reordered");
        assert_eq!((extent.min, extent.max, extent.mean), (4.0, 6.0, 5.0));
        let late = s.late_time_ms.expect("reordered");
        assert_eq!((late.min, late.max), (40.0, 60.0));
    }

    #[test]
    fn numbers_wrap_and_streams_are_apart() {
        let mut m = meter();
        for sequence in [65_534, 65_535, 0, 1] {
            receive(&mut m, A, sequence, 5);
        }
        let mut other = packet(3);
        other[11] = 8;
        m.on_received(A, &other, SIZE, true, (Timestamp::ZERO, ms(6)));
        assert_eq!(m.finish(Timestamp::ZERO, ms(10)).reordered, 0.0);
    }
}
