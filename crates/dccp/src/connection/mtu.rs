//! The path's MTU and the maximum packet size (RFC 4340, section 14; RFC 8899 for what that leaves open).
//!
//! Upward, padded Syncs are sent one at a time: first with the maximum of [`Config::max_mtu`], then by bisection. They
//! must not be fragmented, and the SyncAck shows that one has passed. Downward, a long time without an acknowledgement
//! of any large data packet raises a suspicion, which a Sync of the current size confirms or clears (a black hole that
//! sends no ICMP). A size reported by ICMP is applied at once down to 1,280 bytes, below that only if a Sync of that
//! size does not pass, and it is tested again after a while: forging it gains little.

use super::{Config, Connection, DEFAULT_RTT};
use weir_units::{DataSize, Seq48, TimeDelta, Timestamp};

/// Bytes that headers and options of a data packet may take: 24 of a DataAck's header, 16 of a long Timestamp Echo and
/// a Timestamp, 5 of an NDP Count, 6 each of Elapsed Time and Data Checksum, 35 of a short Ack Vector and Slow
/// Receiver.
const HEADER_RESERVE: u64 = 92;
/// Assumed to pass on all paths: the minimum of IPv6 (RFC 8200, section 5).
const BASE: u64 = 1_280;
/// Minimum accepted from ICMP on IPv4: what every host accepts (RFC 1122, section 3.3.2).
const IPV4_FLOOR: u64 = 576;
/// Bytes of IPv4 and UDP headers; more of them are IPv6's.
const IPV4_OVERHEAD: u64 = 28;
/// A size is considered lost after this many Syncs (RFC 8899, section 5.1.2: MAX_PROBES).
const MAX_TRIES: u32 = 3;
/// The search ends at this distance.
const STEP: u64 = 8;
/// Time to the next upward search (RFC 8899, section 5.1.1: PMTU_RAISE_TIMER).
const RAISE: TimeDelta = TimeDelta::from_secs(600);
/// The same after an ICMP message, which may have been forged.
const RAISE_AFTER_ICMP: TimeDelta = TimeDelta::from_secs(10);
/// Large packets without an acknowledgement of any that raise a suspicion, and the minimum time.
const SUSPECT_PACKETS: u32 = 8;
const SUSPECT_TIME: TimeDelta = TimeDelta::from_secs(1);
/// Own numbers whose size is remembered.
const REMEMBERED: u64 = 1_024;

/// Purpose of a Sync.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// Whether this larger length passes.
    Raise,
    /// Whether the current size still passes; if it does not, fall back to this one.
    Confirm { fallback: u64 },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing until this time.
    Idle(Option<Timestamp>),
    /// A Sync of this size is to be sent.
    Due { size: u64, tries: u32, purpose: Purpose },
    /// Its reply is awaited.
    Waiting { size: u64, tries: u32, purpose: Purpose, sequence: Seq48, until: Timestamp },
}

/// State of the path. Sizes are of IP packets in bytes.
#[derive(Clone, Debug)]
pub(super) struct PathMtu {
    overhead: u64,
    initial: u64,
    /// Maximum to search.
    ceiling: u64,
    /// The size known to pass.
    current: u64,
    /// Maximum that may pass, by the Syncs so far.
    high: u64,
    phase: Phase,
    probing: bool,
    rtt: TimeDelta,
    /// Large packets since one was acknowledged, and since when.
    unconfirmed: (u32, Timestamp),
    /// Set of the newest numbers that were of large packets.
    large: [u64; (REMEMBERED / 64) as usize],
}

impl PathMtu {
    pub(super) fn new(config: &Config) -> Self {
        let (initial, ceiling) = (config.initial_mtu.as_bytes(), config.max_mtu.as_bytes());
        Self {
            overhead: config.header_overhead.as_bytes(),
            initial,
            ceiling,
            current: initial,
            high: ceiling,
            phase: Phase::Idle(None),
            probing: ceiling > initial,
            rtt: DEFAULT_RTT,
            unconfirmed: (0, Timestamp::ZERO),
            large: [0; (REMEMBERED / 64) as usize],
        }
    }
    fn base(&self) -> u64 {
        BASE.min(self.initial)
    }
    fn floor(&self) -> u64 {
        if self.overhead <= IPV4_OVERHEAD { IPV4_FLOOR.min(self.initial) } else { self.base() }
    }
    /// Bytes of an IP packet that pass.
    pub(super) fn current(&self) -> DataSize {
        DataSize::from_bytes(self.current)
    }
    pub(super) fn max_packet_size(&self) -> DataSize {
        DataSize::from_bytes(self.current.saturating_sub(self.overhead + HEADER_RESERVE))
    }
    /// Maximum UDP payload in bytes.
    pub(super) fn max_datagram(&self) -> u64 {
        self.current.saturating_sub(self.overhead)
    }
    pub(super) fn set_rtt(&mut self, rtt: TimeDelta) {
        self.rtt = rtt;
    }
    /// The connection is open.
    pub(super) fn start(&mut self, now: Timestamp) {
        if self.probing {
            self.search(now);
        }
    }

    /// The next size to try, or a pause.
    fn search(&mut self, now: Timestamp) {
        let left = self.high.saturating_sub(self.current);
        self.phase = if left >= STEP {
            // The maximum first: it passes on most paths.
            let size = if self.high == self.ceiling { self.high } else { self.current + left.div_ceil(2) };
            Phase::Due { size, tries: 0, purpose: Purpose::Raise }
        } else {
            Phase::Idle((self.current < self.ceiling).then(|| now + RAISE))
        };
    }
    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Idle(until) => until,
            Phase::Due { .. } => None,
            Phase::Waiting { until, .. } => Some(until),
        }
    }
    pub(super) fn on_timeout(&mut self, now: Timestamp) {
        match self.phase {
            Phase::Idle(Some(until)) if until <= now => {
                self.high = self.ceiling;
                if self.probing {
                    self.search(now);
                } else {
                    // Nothing may be probed: the initial value applies again, as in RFC 1191, section 6.3.
                    (self.current, self.phase) = (self.initial, Phase::Idle(None));
                }
            }
            Phase::Waiting { size, tries, purpose, until, .. } if until <= now => {
                if tries < MAX_TRIES {
                    self.phase = Phase::Due { size, tries, purpose };
                    return;
                }
                self.high = size - 1;
                if let Purpose::Confirm { fallback } = purpose {
                    self.lower(fallback);
                }
                self.search(now);
            }
            _ => {}
        }
    }
    fn lower(&mut self, size: u64) {
        self.current = self.current.min(size);
        self.unconfirmed.0 = 0;
    }

    /// UDP payload in bytes of the Sync to be sent.
    pub(super) fn probe_due(&self) -> Option<u64> {
        match self.phase {
            Phase::Due { size, .. } => Some(size - self.overhead),
            _ => None,
        }
    }
    /// It was sent.
    pub(super) fn on_probe_sent(&mut self, now: Timestamp, sequence: Seq48) {
        if let Phase::Due { size, tries, purpose } = self.phase {
            let until = now + (self.rtt * 3).max(TimeDelta::from_millis(100));
            self.phase = Phase::Waiting { size, tries: tries + 1, purpose, sequence, until };
        }
    }
    /// A SyncAck acknowledges this.
    pub(super) fn on_sync_ack(&mut self, now: Timestamp, ack: Seq48) {
        match self.phase {
            Phase::Waiting { size, purpose, sequence, .. } if sequence == ack => {
                if purpose == Purpose::Raise {
                    self.current = self.current.max(size);
                }
                self.unconfirmed.0 = 0;
                self.search(now);
            }
            _ => {}
        }
    }

    /// A packet with this many bytes of UDP payload was sent.
    pub(super) fn on_sent(&mut self, now: Timestamp, sequence: Seq48, size: u64) {
        let large = size + self.overhead > self.base();
        let place = sequence.get() % REMEMBERED;
        let (word, bit) = (&mut self.large[(place / 64) as usize], 1 << (place % 64));
        *word = if large { *word | bit } else { *word & !bit };
        if !large || !self.probing {
            return;
        }
        if self.unconfirmed.0 == 0 {
            self.unconfirmed.1 = now;
        }
        self.unconfirmed.0 += 1;
        let long = now.saturating_since(self.unconfirmed.1) > (self.rtt * 8).max(SUSPECT_TIME);
        let searching =
            matches!(self.phase, Phase::Waiting { purpose: Purpose::Confirm { .. }, .. } | Phase::Due { .. });
        if self.unconfirmed.0 >= SUSPECT_PACKETS && long && !searching {
            let purpose = Purpose::Confirm { fallback: self.base() };
            self.phase = Phase::Due { size: self.current, tries: 0, purpose };
        }
    }
    /// A packet of this end is acknowledged; `newest` is the newest sent.
    pub(super) fn on_acknowledged(&mut self, ack: Seq48, newest: Seq48) {
        let place = ack.get() % REMEMBERED;
        let remembered = (0..REMEMBERED as i64).contains(&newest.since(ack));
        if remembered && self.large[(place / 64) as usize] & 1 << (place % 64) != 0 {
            self.unconfirmed.0 = 0;
        }
    }
    /// ICMP reports that longer packets do not pass.
    fn on_icmp(&mut self, now: Timestamp, mtu: u64) {
        if mtu >= self.current {
            return;
        }
        self.high = self.high.min(mtu.max(self.floor()));
        self.lower(mtu.max(self.base()));
        self.phase = if mtu < self.base() && self.floor() < self.base() {
            let purpose = Purpose::Confirm { fallback: mtu.max(self.floor()) };
            Phase::Due { size: self.current, tries: 0, purpose }
        } else {
            Phase::Idle(Some(now + if self.probing { RAISE_AFTER_ICMP } else { RAISE }))
        };
    }
}

impl Connection {
    /// A router reports by ICMP that longer IP packets do not pass. The caller has verified, as far as possible, that
    /// the message refers to a packet of this connection (section 14.1).
    pub fn on_path_mtu(&mut self, now: Timestamp, mtu: DataSize) {
        self.mtu.on_icmp(now, mtu.as_bytes());
    }
    /// Size in bytes of IP packets that the path carries, as far as is known.
    pub fn path_mtu(&self) -> DataSize {
        self.mtu.current()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mtu(initial: u64, max: u64, overhead: u64) -> PathMtu {
        let size = DataSize::from_bytes;
        PathMtu::new(&Config {
            initial_mtu: size(initial),
            max_mtu: size(max),
            header_overhead: size(overhead),
            ..Config::default()
        })
    }

    /// Runs the search on a path of this MTU until it pauses; returns the Syncs sent and the time taken.
    fn run(m: &mut PathMtu, path: u64, start: Timestamp) -> (u32, Timestamp) {
        let (mut now, mut sent) = (start, 0);
        for _ in 0..1_000 {
            if let Some(size) = m.probe_due() {
                sent += 1;
                let sequence = Seq48::new(u64::from(sent));
                m.on_probe_sent(now, sequence);
                if size + m.overhead <= path {
                    now += TimeDelta::from_millis(50);
                    m.on_sync_ack(now, sequence);
                }
            } else if matches!(m.phase, Phase::Waiting { .. }) {
                now = m.poll_timeout().expect("an answer is waited for");
                m.on_timeout(now);
            } else {
                return (sent, now);
            }
        }
        panic!("the search does not end");
    }

    #[test]
    fn the_search_comes_within_a_step_of_the_path() {
        for path in [1_280, 1_281, 1_400, 1_492, 1_500, 4_352, 8_999, 9_000] {
            let mut m = mtu(1_280, 9_000, 28);
            m.start(Timestamp::ZERO);
            let (sent, now) = run(&mut m, path, Timestamp::ZERO);
            assert!(m.current <= path && path - m.current < STEP, "{} of {path}", m.current);
            // One try if the maximum passes; else three for each size that does not, of at most ten.
            assert!(sent <= if path == 9_000 { 1 } else { 33 }, "{sent}");
            let again = (m.current < 9_000).then(|| now + RAISE);
            assert_eq!(m.poll_timeout(), again);
        }
    }

    #[test]
    fn no_probing_where_none_is_wanted() {
        let mut m = mtu(1_500, 1_500, 28);
        m.start(Timestamp::ZERO);
        (0..1_000).for_each(|i| m.on_sent(Timestamp::from_millis(i * 20), Seq48::new(i as u64), 1_472));
        assert_eq!((m.phase, m.probe_due()), (Phase::Idle(None), None));
        assert_eq!(m.max_packet_size(), DataSize::from_bytes(1_500 - 28 - 92));
        m.on_icmp(Timestamp::ZERO, 1_400);
        assert_eq!(m.current, 1_400);
        m.on_timeout(Timestamp::ZERO + RAISE);
        assert_eq!(m.current, 1_500);
    }

    #[test]
    fn a_black_hole_is_found_and_left() {
        let mut m = mtu(1_280, 1_500, 28);
        m.start(Timestamp::ZERO);
        run(&mut m, 1_500, Timestamp::ZERO);
        assert_eq!(m.current, 1_500);
        // While large packets are acknowledged there is no suspicion.
        let mut now = Timestamp::from_secs(1);
        for i in 100..200 {
            now += TimeDelta::from_millis(50);
            m.on_sent(now, Seq48::new(i), 1_472);
            m.on_acknowledged(Seq48::new(i - i % 10), Seq48::new(i));
        }
        assert_eq!(m.probe_due(), None);
        // Then only small ones are.
        let mut i = 200;
        while m.probe_due().is_none() {
            now += TimeDelta::from_millis(50);
            m.on_sent(now, Seq48::new(i), if i % 2 == 0 { 1_472 } else { 100 });
            m.on_acknowledged(Seq48::new(i | 1).sub(2), Seq48::new(i));
            i += 1;
            assert!(i < 300, "no suspicion");
        }
        assert_eq!(m.probe_due(), Some(1_472));
        run(&mut m, 1_350, now);
        assert!((1_343..=1_350).contains(&m.current), "{}", m.current);
    }

    #[test]
    fn icmp_is_believed_within_reason() {
        let now = Timestamp::from_secs(5);
        let mut m = mtu(1_500, 9_000, 28);
        m.on_icmp(now, 2_000);
        assert_eq!(m.current, 1_500);
        m.on_icmp(now, 1_400);
        assert_eq!((m.current, m.poll_timeout()), (1_400, Some(now + RAISE_AFTER_ICMP)));
        // Below the size that all paths carry, a Sync decides.
        m.on_icmp(now, 68);
        assert_eq!((m.current, m.probe_due()), (1_280, Some(1_252)));
        let mut truthful = m.clone();
        run(&mut m, 1_500, now);
        assert_eq!(m.current, 1_280);
        run(&mut truthful, 600, now);
        assert!((593..=600).contains(&truthful.current), "{}", truthful.current);
        // IPv6 has no links below that.
        let mut six = mtu(1_500, 1_500, 48);
        six.on_icmp(now, 600);
        assert_eq!((six.current, six.probe_due()), (1_280, None));
    }
}
