//! Loss Event Rate, Loss Intervals, Receive Rate (RFC 4342, section 8) and Dropped Packets (RFC 5622, section 8.7).

use crate::option::{DccpOption, Options};
use crate::packet::PacketWriter;
use weir_cc::tcp::LOSS_INTERVALS;
use weir_units::Seq48;

pub(super) const LOSS_EVENT_RATE: u8 = 192;
pub(super) const LOSS_INTERVAL: u8 = 193;
pub(super) const RECEIVE_RATE: u8 = 194;
pub(super) const DROPPED_PACKETS: u8 = 195;

/// NINTERVAL + 1: loss intervals that are reported and used.
pub(super) const INTERVALS: usize = LOSS_INTERVALS + 1;
/// NDUPACK, and the greatest Skip Length.
pub(super) const NDUPACK: u64 = 3;
const INTERVAL_BYTES: usize = 9;
const DROP_BYTES: usize = 3;
const MAX_24: u64 = 0xff_ffff;
const MAX_23: u64 = 0x7f_ffff;

/// A loss interval as it is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Interval {
    /// Packets of the part without loss.
    pub(super) lossless: u64,
    /// Packets of the lossy part; zero in the very first interval.
    pub(super) lossy: u64,
    /// Its length in data packets.
    pub(super) data: u64,
    /// Packets lost or marked.
    pub(super) dropped: u64,
}

fn put_24(out: &mut [u8], n: u64) {
    out.copy_from_slice(&(n.min(MAX_24) as u32).to_be_bytes()[1..]);
}

fn get_24(bytes: &[u8]) -> u64 {
    bytes[..3].iter().fold(0, |n, &b| n << 8 | u64::from(b))
}

/// Writes Loss Intervals, newest first; returns `false` if there is no room.
pub(super) fn write_intervals(out: &mut PacketWriter<'_>, skip: u8, intervals: impl Iterator<Item = Interval>) -> bool {
    let mut data = [0; 1 + INTERVALS * INTERVAL_BYTES];
    data[0] = skip;
    let mut len = 1;
    for (place, i) in data[1..].chunks_exact_mut(INTERVAL_BYTES).zip(intervals) {
        put_24(&mut place[..3], i.lossless);
        put_24(&mut place[3..6], i.lossy.min(MAX_23));
        put_24(&mut place[6..], i.data);
        len += INTERVAL_BYTES;
    }
    out.option(&DccpOption::Ccid { number: LOSS_INTERVAL, data: &data[..len] })
}

/// Writes Dropped Packets for the same intervals.
pub(super) fn write_dropped(out: &mut PacketWriter<'_>, intervals: impl Iterator<Item = Interval>) -> bool {
    let mut data = [0; INTERVALS * DROP_BYTES];
    let mut len = 0;
    for (place, i) in data.chunks_exact_mut(DROP_BYTES).zip(intervals) {
        put_24(place, i.dropped.min(i.lossy));
        len += DROP_BYTES;
    }
    out.option(&DccpOption::Ccid { number: DROPPED_PACKETS, data: &data[..len] })
}

/// Writes one of the options of four bytes.
pub(super) fn write_u32(out: &mut PacketWriter<'_>, number: u8, value: u32) -> bool {
    out.option(&DccpOption::Ccid { number, data: &value.to_be_bytes() })
}

/// Reports in the options of an acknowledgement.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    /// Bytes a second.
    pub(super) receive_rate: Option<u32>,
    /// Data packets a loss interval, 2^32 - 1 without loss.
    pub(super) loss_event_rate: Option<u32>,
    intervals: [(Seq48, Interval); INTERVALS],
    count: usize,
    has_intervals: bool,
}

impl Report {
    /// Reads them. Options of a wrong length are ignored.
    pub(super) fn read(acknowledged: Seq48, options: &Options<'_>) -> Self {
        let mut report = Self::default();
        let mut end = acknowledged.next();
        let mut drops = 0;
        for option in options.iter() {
            let Ok(option) = option else { break };
            let DccpOption::Ccid { number, data } = option else { continue };
            match number {
                LOSS_EVENT_RATE | RECEIVE_RATE => {
                    let value = data.try_into().ok().map(u32::from_be_bytes);
                    let place =
                        if number == RECEIVE_RATE { &mut report.receive_rate } else { &mut report.loss_event_rate };
                    *place = place.or(value);
                }
                LOSS_INTERVAL => report.read_intervals(data, &mut end),
                DROPPED_PACKETS => {
                    for count in data.chunks_exact(DROP_BYTES) {
                        if let Some((_, i)) = report.intervals.get_mut(drops) {
                            i.dropped = get_24(count);
                        }
                        drops += 1;
                    }
                }
                _ => {}
            }
        }
        for (n, (_, i)) in report.intervals[..report.count].iter_mut().enumerate() {
            i.dropped = if n < drops { i.dropped.min(i.lossy) } else { i.lossy };
        }
        report
    }

    fn read_intervals(&mut self, data: &[u8], end: &mut Seq48) {
        let Some((&skip, intervals)) = data.split_first() else { return };
        let first = !self.has_intervals;
        if intervals.is_empty()
            || intervals.len() % INTERVAL_BYTES != 0
            || u64::from(skip) > NDUPACK
            || (!first && skip != 0)
        {
            return;
        }
        self.has_intervals = true;
        *end = end.sub(u64::from(skip));
        for bytes in intervals.chunks_exact(INTERVAL_BYTES) {
            let lossless = get_24(bytes);
            let lossy = get_24(&bytes[3..]) & MAX_23;
            let mut data = get_24(&bytes[6..]);
            *end = end.sub(lossless + lossy);
            if lossy > 0 {
                data = data.clamp(1, (lossless + lossy).max(1));
            }
            if self.count < INTERVALS {
                let dropped = self.intervals[self.count].1.dropped;
                self.intervals[self.count] = (*end, Interval { lossless, lossy, data, dropped });
                self.count += 1;
            }
        }
    }

    /// The intervals with their first sequence numbers, newest first; `None` if they are not reported.
    pub(super) fn intervals(&self) -> Option<&[(Seq48, Interval)]> {
        self.has_intervals.then_some(&self.intervals[..self.count])
    }
}
