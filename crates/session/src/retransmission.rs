//! The sender's half of retransmission: keeps packets for a while, and retransmits them on a stream of their own when
//! the other end reports them missing (RFC 4588, multiplexed by SSRC).
//!
//! Retransmissions are separate streams (RFC 4588, by SSRC), and separate packets to controllers. NACKs are sent at
//! once, limited by a leaky bucket of 5 % in addition to regular RTCP.

use crate::sent::SentStream;
use std::collections::VecDeque;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};
use weir_wire::rtp::PacketView;
use weir_wire::rtp::retransmission::OSN_SIZE;

/// Buffers kept for reuse.
const MAX_SPARE: usize = 256;
/// Share of the minimum round-trip time within which a packet is not retransmitted again: such a request was sent
/// before the first response arrived. Below one, since measured round-trip times include some processing time.
const SAME_REQUEST: f64 = 0.9;

/// How a sender responds to generic NACKs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RetransmissionConfig {
    /// How long packets are kept (rtx-time of RFC 4588, section 8.1). Default: 1 s, libwebrtc's for video.
    pub kept: TimeDelta,
    /// Most bytes of RTP payload kept, also where media is a length only. Default: 2 MB.
    pub max_size: DataSize,
    /// Greatest share of the media rate for retransmissions, so that NACKs do not amplify traffic. Default: 0.5, enough
    /// for the loss of a third of all packets.
    pub max_share: f64,
    /// Time over which that share applies: after a pause this much of it may be used at once. Default: 1 s.
    pub burst: TimeDelta,
}

impl Default for RetransmissionConfig {
    fn default() -> Self {
        Self {
            kept: TimeDelta::from_secs(1),
            max_size: DataSize::from_bytes(2_000_000),
            max_share: 0.5,
            burst: TimeDelta::from_secs(1),
        }
    }
}

/// Results of NACKs at the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RetransmissionCounters {
    /// Generic NACK messages received.
    pub nacks: u64,
    /// Packets that they request, repetitions included.
    pub requested: u64,
    /// Packets retransmitted.
    pub packets: u64,
    /// RTP bytes retransmitted: headers and payload.
    pub bytes: u64,
    /// RTP payload bytes retransmitted.
    pub payload: u64,
    /// Requests for packets never sent, or no longer kept.
    pub unknown: u64,
    /// Requests for packets already queued, or whose retransmission was still in flight.
    pub repeated: u64,
    /// Requests beyond [`RetransmissionConfig::max_share`].
    pub refused: u64,
    /// Requests for packets that were in flight on one of several paths.
    pub early: u64,
    /// Packets queued without a request: another path has fallen, and would deliver them too late.
    pub unasked: u64,
}

impl core::ops::Add for RetransmissionCounters {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            nacks: self.nacks + other.nacks,
            requested: self.requested + other.requested,
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            payload: self.payload + other.payload,
            unknown: self.unknown + other.unknown,
            repeated: self.repeated + other.repeated,
            refused: self.refused + other.refused,
            early: self.early + other.early,
            unasked: self.unasked + other.unasked,
        }
    }
}

/// Part of a packet that is kept for retransmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keep {
    /// Its payload.
    Payload,
    /// Its payload without the one octet of RED before it.
    BehindRed,
    /// Nothing: padding and repair packets need not be recovered, but an empty response ends the requests for them.
    Nothing,
}

/// A packet that may be requested.
#[derive(Clone, Debug)]
struct StoredPacket {
    departure: Timestamp,
    rtp_timestamp: u32,
    marker: bool,
    /// Its payload bytes present.
    bytes: Vec<u8>,
    /// Payload bytes that follow, carried as a length only.
    zeros: u32,
    waiting: bool,
    /// When it was queued last.
    queued: Timestamp,
    resent: Option<Timestamp>,
}

impl StoredPacket {
    fn size(&self) -> u64 {
        self.bytes.len() as u64 + u64::from(self.zeros)
    }
}

/// A packet being retransmitted: the header fields taken over, and its sequence number on the media stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Resent {
    pub sequence: u64,
    pub rtp_timestamp: u32,
    pub marker: bool,
}

/// Keeps packets, and queues requested ones.
#[derive(Debug)]
pub(crate) struct Retransmitter {
    config: RetransmissionConfig,
    /// In sequence; the last one is the packet before `next`.
    kept: VecDeque<StoredPacket>,
    /// The media stream's next sequence number.
    next: u64,
    size: u64,
    /// Sequence numbers of kept packets queued for retransmission.
    waiting: VecDeque<u64>,
    waiting_size: u64,
    /// Those that the last request has queued.
    accepted: Vec<u64>,
    spare: Vec<Vec<u8>>,
    /// Bytes that may be queued, and the time of that value.
    budget: (f64, Option<Timestamp>),
    least_rtt: Option<TimeDelta>,
    pub stream: SentStream,
    pub counters: RetransmissionCounters,
}

impl Retransmitter {
    /// `first` is the first sequence number of the retransmission stream.
    pub(crate) fn new(config: RetransmissionConfig, first: u64) -> Self {
        Self {
            config,
            kept: VecDeque::new(),
            next: 0,
            size: 0,
            waiting: VecDeque::new(),
            waiting_size: 0,
            accepted: Vec::new(),
            spare: Vec::new(),
            budget: (0.0, None),
            least_rtt: None,
            stream: SentStream::new(first, true),
            counters: RetransmissionCounters::default(),
        }
    }

    /// A packet of the media stream is sent, with `zeros` payload bytes not in `packet`.
    #[inline(never)]
    pub(crate) fn keep(&mut self, now: Timestamp, sequence: u64, packet: &[u8], zeros: u16, keep: Keep) {
        let Ok(view) = PacketView::parse_header(packet) else { return };
        if sequence != self.next {
            while !self.kept.is_empty() {
                self.forget_oldest();
            }
        }
        self.next = sequence + 1;
        let payload = match keep {
            Keep::Payload => view.payload(),
            Keep::BehindRed => view.payload().get(1..).unwrap_or_default(),
            Keep::Nothing => &[],
        };
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(payload);
        let (rtp_timestamp, marker) = (view.timestamp(), view.marker());
        let kept = StoredPacket {
            departure: now,
            rtp_timestamp,
            marker,
            bytes,
            zeros: zeros.into(),
            waiting: false,
            queued: now,
            resent: None,
        };
        self.size += kept.size();
        self.kept.push_back(kept);
        while self.kept.len() > 1
            && (self.size > self.config.max_size.as_bytes()
                || self.kept.front().is_some_and(|k| now - k.departure > self.config.kept))
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let sequence = self.first();
        let Some(old) = self.kept.pop_front() else { return };
        self.size -= old.size();
        if old.waiting {
            self.waiting.retain(|&s| s != sequence);
            self.waiting_size -= resent_size(&old);
        }
        if self.spare.len() < MAX_SPARE {
            self.spare.push(old.bytes);
        }
    }

    fn first(&self) -> u64 {
        self.next - self.kept.len() as u64
    }

    fn get_mut(&mut self, sequence: u64) -> Option<&mut StoredPacket> {
        let first = self.first();
        self.kept.get_mut(usize::try_from(sequence.checked_sub(first)?).ok()?)
    }

    pub(crate) fn on_rtt(&mut self, rtt: TimeDelta) {
        self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
    }

    /// The other end reports these packets missing, by their numbers on the media stream, while the media rate is
    /// `rate`. Those that `is_on_its_way` returns true for are not retransmitted yet.
    pub(crate) fn on_nack(
        &mut self,
        sequences: impl Iterator<Item = u64>,
        is_on_its_way: impl Fn(u64) -> bool,
        rate: DataRate,
        now: Timestamp,
    ) {
        self.counters.nacks += 1;
        self.accepted.clear();
        self.renew_budget(rate, now);
        let guard = self.least_rtt.map_or(TimeDelta::ZERO, |rtt| rtt.mul_f64(SAME_REQUEST));
        for sequence in sequences {
            self.counters.requested += 1;
            let Some(kept) = self.get_mut(sequence) else {
                self.counters.unknown += 1;
                continue;
            };
            if kept.waiting || kept.resent.is_some_and(|at| now < at + guard) {
                self.counters.repeated += 1;
            } else if is_on_its_way(sequence) {
                self.counters.early += 1;
            } else if self.queue(sequence) {
                self.accepted.push(sequence);
            } else {
                self.counters.refused += 1;
            }
        }
    }

    /// The packets that the last request has queued, in the order of the request.
    pub(crate) fn accepted(&self) -> &[u64] {
        &self.accepted
    }

    /// Renews the bytes that may be queued at this media rate; those not used are kept.
    pub(crate) fn renew_budget(&mut self, rate: DataRate, now: Timestamp) {
        let bytes_per_second = rate.as_bps_f64() / 8.0 * self.config.max_share;
        let most = bytes_per_second * self.config.burst.as_secs_f64();
        self.budget.0 = match self.budget.1.replace(now) {
            Some(last) => (self.budget.0 + bytes_per_second * now.saturating_since(last).as_secs_f64()).min(most),
            None => most,
        };
    }

    /// Takes so many bytes off what may be queued: they are sent besides the packets of a request.
    pub(crate) fn charge(&mut self, bytes: u64) {
        self.budget.0 -= bytes as f64;
    }

    /// Queues a kept packet; `false` if the budget does not allow it.
    fn queue(&mut self, sequence: u64) -> bool {
        let (left, now) = self.budget;
        let Some(kept) = self.get_mut(sequence) else { return false };
        let size = resent_size(kept);
        if size as f64 > left {
            return false;
        }
        kept.waiting = true;
        kept.queued = now.unwrap_or(kept.queued);
        self.budget.0 -= size as f64;
        self.waiting_size += size;
        self.waiting.push_back(sequence);
        true
    }

    /// Queues the kept packets that `select` returns true for, and that have not been retransmitted, in sequence and within the
    /// budget.
    pub(crate) fn resend(&mut self, mut select: impl FnMut(u64, DataSize) -> bool) {
        for sequence in self.first()..self.next {
            let Some(kept) = self.get_mut(sequence) else { return };
            let size = DataSize::from_bytes(resent_size(kept));
            let is_due = !kept.waiting && kept.resent.is_none() && kept.size() > 0;
            if is_due && select(sequence, size) && self.queue(sequence) {
                self.counters.unasked += 1;
            }
        }
    }

    /// Payload size of the next retransmission, with the original sequence number.
    #[inline]
    pub(crate) fn front_size(&self) -> Option<u64> {
        let sequence = *self.waiting.front()?;
        let kept = self.kept.get(usize::try_from(sequence.checked_sub(self.first())?).ok()?)?;
        Some(resent_size(kept))
    }
    /// Whether any packet is queued.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
    /// Payload bytes queued.
    pub(crate) fn waiting_size(&self) -> u64 {
        self.waiting_size
    }

    /// Packets queued, and the sum of the times since they were.
    pub(crate) fn ages(&self, now: Timestamp) -> (usize, TimeDelta) {
        let first = self.first();
        let age = |s: &u64| {
            let kept = self.kept.get(usize::try_from(s.checked_sub(first)?).ok()?)?;
            Some(now.saturating_since(kept.queued))
        };
        (self.waiting.len(), self.waiting.iter().filter_map(age).fold(TimeDelta::ZERO, |a, b| a + b))
    }

    /// Takes the next packet to retransmit; [`Self::write`] writes its payload.
    pub(crate) fn pop(&mut self, now: Timestamp) -> Option<Resent> {
        let sequence = self.waiting.pop_front()?;
        let kept = self.get_mut(sequence)?;
        (kept.waiting, kept.resent) = (false, Some(now));
        let (rtp_timestamp, marker, size) = (kept.rtp_timestamp, kept.marker, resent_size(kept));
        self.waiting_size -= size;
        self.counters.packets += 1;
        self.counters.payload += size;
        Some(Resent { sequence, rtp_timestamp, marker })
    }

    /// Appends the payload of the packet last taken; returns how much of it is not in `out`.
    pub(crate) fn write(&mut self, sequence: u64, out: &mut Vec<u8>) -> u32 {
        weir_wire::rtp::retransmission::write_osn(sequence as u16, out);
        let Some(kept) = self.get_mut(sequence) else { return 0 };
        out.extend_from_slice(&kept.bytes);
        kept.zeros
    }

    /// Discards all queued packets.
    pub(crate) fn discard_all(&mut self) {
        while let Some(sequence) = self.waiting.pop_front() {
            if let Some(kept) = self.get_mut(sequence) {
                kept.waiting = false;
            }
        }
        self.waiting_size = 0;
    }
}

fn resent_size(kept: &StoredPacket) -> u64 {
    kept.size() + OSN_SIZE as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_wire::rtp::Header;

    const RATE: DataRate = DataRate::from_kbps(800);

    fn ms(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }

    /// A packet every 10 ms from 65,530 on the wire, with `real` bytes of payload and as many carried as a length only.
    fn sent(config: RetransmissionConfig, count: u64, real: usize) -> Retransmitter {
        let mut r = Retransmitter::new(config, 1);
        for i in 0..count {
            let sequence = 131_066 + i;
            let mut out = vec![];
            Header { sequence: sequence as u16, timestamp: i as u32, marker: i % 3 == 0, ..Header::default() }
                .write_into(&mut out);
            out.resize(out.len() + real, i as u8);
            r.keep(ms(i as i64 * 10), sequence, &out, real as u16, Keep::Payload);
        }
        r
    }

    #[test]
    fn requested_packets_are_sent_once_with_the_original_number_first() {
        let mut r = sent(RetransmissionConfig::default(), 20, 50);
        r.on_rtt(TimeDelta::from_millis(100));
        // 65,535 and 1, across the wrap; one that was never sent, and one twice.
        r.on_nack([131_071, 131_073, 131_071, 200_000, 5].into_iter(), |_| false, RATE, ms(200));
        assert_eq!((r.front_size(), r.waiting_size()), (Some(102), 204));
        for (sequence, byte, marker) in [(131_071u64, 5u8, false), (131_073, 7, false)] {
            let packet = r.pop(ms(201)).unwrap();
            assert_eq!(packet, Resent { sequence, rtp_timestamp: byte.into(), marker });
            let mut out = vec![];
            assert_eq!(r.write(sequence, &mut out), 50);
            assert_eq!(weir_wire::rtp::retransmission::read(&out).unwrap(), (sequence as u16, &[byte; 50][..]));
        }
        assert_eq!((r.pop(ms(202)), r.waiting_size()), (None, 0));
        // The response is still in flight; a round trip later the request counts again.
        r.on_nack([131_071].into_iter(), |_| false, RATE, ms(280));
        r.on_nack([131_071].into_iter(), |_| false, RATE, ms(301));
        assert!(r.pop(ms(301)).is_some() && r.pop(ms(301)).is_none());
        let c = r.counters;
        assert_eq!((c.nacks, c.requested, c.packets, c.unknown, c.repeated, c.refused), (3, 7, 3, 2, 2, 0));
        assert_eq!(c.payload, 3 * 102);
    }

    #[test]
    fn memory_is_bounded_by_time_and_by_bytes() {
        let kept = |config| sent(config, 200, 500).kept.len();
        // 1 s of packets every 10 ms, and the one at the bound.
        assert_eq!(kept(RetransmissionConfig::default()), 101);
        let max_size = DataSize::from_bytes(10_500);
        assert_eq!(kept(RetransmissionConfig { max_size, ..RetransmissionConfig::default() }), 10);
        // A queued packet expires with the kept one.
        let mut r = sent(RetransmissionConfig { max_size, ..RetransmissionConfig::default() }, 10, 500);
        r.on_nack((0..10).map(|i| 131_066 + i), |_| false, RATE, ms(100));
        assert_eq!(r.waiting.len(), 10);
        let mut out = vec![];
        Header { sequence: 131_076u64 as u16, ..Header::default() }.write_into(&mut out);
        r.keep(ms(110), 131_076, &out, 9_400, Keep::Payload);
        assert_eq!((r.waiting.len(), r.waiting_size(), r.front_size()), (1, 1_002, Some(1_002)));
    }

    proptest! {
        /// For any number of requests, no more is sent than the share allows, and the sums are consistent.
        #[test]
        fn a_storm_of_requests_stays_within_the_share(
            asks in proptest::collection::vec((0u64..60, 1u64..200, 0i64..40), 1..200),
            share in 0.05f64..0.6,
        ) {
            let config = RetransmissionConfig { max_share: share, ..RetransmissionConfig::default() };
            let mut r = sent(config, 50, 500);
            let (mut now, mut bytes) = (ms(490), 0);
            let begin = now;
            for (first, count, wait) in asks {
                now += TimeDelta::from_millis(wait);
                r.on_nack((0..count).map(|i| 131_060 + (first + i) % 70), |_| false, RATE, now);
                while let Some(size) = r.front_size() {
                    prop_assert!(r.pop(now).is_some());
                    bytes += size;
                }
                prop_assert_eq!((r.waiting_size(), r.waiting.len()), (0, 0));
                let c = r.counters;
                prop_assert_eq!(c.packets + c.unknown + c.repeated + c.refused, c.requested);
                let most = 100_000.0 * share * ((now - begin).as_secs_f64() + 1.0);
                prop_assert!(bytes as f64 <= most + 1.0, "{} of {}", bytes, most);
            }
        }
    }
}
