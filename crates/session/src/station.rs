//! A device on the path that announces its link's capacity to an end (V. Singh's dissertation, section 7.1).

use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};
use weir_wire::rtcp::{
    RateLimit, ReceiverReport, ScaledRate, Sdes, SdesChunk, SdesChunks, SdesItem, SdesItems, SdesType, Tmmbr,
};

/// Contents and interval of a base station's notices.
#[derive(Clone, PartialEq, Debug)]
pub struct StationConfig {
    /// The station's synchronisation source: the end's [`EndConfig::station_ssrc`](crate::EndConfig::station_ssrc).
    pub ssrc: u32,
    /// The media source that notices concern.
    pub media_ssrc: u32,
    /// Canonical name of the station.
    pub cname: String,
    /// The flow's share of the link's capacity, 0 to 1.
    pub share: f64,
    /// Relative change of the rate since the last notice that causes one at once.
    pub threshold: f64,
    /// Interval of notices while the rate changes less.
    pub interval: TimeDelta,
    /// Time in which the flow's part of the queue is to drain, by which the announced rate is reduced. `None` ignores
    /// the queue.
    pub drain: Option<TimeDelta>,
    /// UDP and IP headers per media packet, for the TMMBR entry's overhead.
    pub header_overhead: u16,
}

/// A base station seen by one end: takes the link's state, and makes RTCP compounds with a TMMBR entry.
#[derive(Clone, Debug)]
pub struct Station {
    config: StationConfig,
    rate: Option<DataRate>,
    announced: Option<DataRate>,
    announced_at: Timestamp,
}

impl Station {
    /// A station without knowledge of its link.
    pub fn new(config: StationConfig) -> Self {
        Self { config, rate: None, announced: None, announced_at: Timestamp::ZERO }
    }

    /// Sets the link's current capacity and queue.
    pub fn observe(&mut self, capacity: DataRate, queue: DataSize) {
        let share = capacity.as_bps_f64() * self.config.share;
        let drained = self.config.drain.map_or(0.0, |t| {
            let seconds = t.as_secs_f64().max(1e-3);
            queue.as_bits() as f64 * self.config.share / seconds
        });
        self.rate = Some(DataRate::from_bps_f64((share - drained).max(0.0)));
    }

    /// When a notice is due even without a change.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.rate.is_some().then(|| self.announced_at + self.config.interval)
    }

    /// Writes the notice due at `now` into `out`; returns whether there is one.
    pub fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> bool {
        let Some(rate) = self.rate else { return false };
        let changed = self.announced.is_none_or(|announced| {
            let (now, announced) = (rate.as_bps_f64(), announced.as_bps_f64());
            (now - announced).abs() > self.config.threshold * announced
        });
        if !changed && self.poll_timeout().is_none_or(|at| at > now) {
            return false;
        }
        (self.announced, self.announced_at) = (Some(rate), now);
        let c = &self.config;
        let ssrc = c.ssrc;
        ReceiverReport { ssrc, blocks: Default::default(), extension: &[] }.write_into(out);
        let items = [SdesItem { kind: SdesType::CNAME, value: c.cname.as_bytes() }];
        Sdes { chunks: SdesChunks::Own(&[SdesChunk { ssrc, items: SdesItems::Own(&items) }]) }.write_into(out);
        let entries = [RateLimit { ssrc: c.media_ssrc, max_rate: ScaledRate::new(rate), overhead: c.header_overhead }];
        Tmmbr { sender_ssrc: c.ssrc, media_ssrc: 0, entries: (&entries).into() }.write_into(out);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::rtcp::{Packet, parse_compound};

    fn station(drain: Option<TimeDelta>) -> Station {
        Station::new(StationConfig {
            ssrc: 7,
            media_ssrc: 9,
            cname: "station".into(),
            share: 0.5,
            threshold: 0.1,
            interval: TimeDelta::from_secs(1),
            drain,
            header_overhead: 28,
        })
    }
    /// The rate announced at this time in kbit/s.
    fn announced(s: &mut Station, ms: i64) -> Option<u64> {
        let mut out = Vec::new();
        s.poll_transmit(Timestamp::from_millis(ms), &mut out).then(|| {
            let packets: Vec<_> = parse_compound(&out).map(|p| p.expect("sound")).collect();
            assert!(matches!(packets[0], Packet::ReceiverReport(_)), "a compound begins with a report");
            let Some(Packet::Tmmbr(t)) = packets.last() else { panic!("no TMMBR") };
            assert_eq!(t.sender_ssrc, 7);
            let entry = t.entries.iter().next().expect("an entry");
            assert_eq!((entry.ssrc, entry.overhead), (9, 28));
            entry.max_rate.rate().as_bps() / 1_000
        })
    }

    #[test]
    fn announces_changes_at_once_and_else_once_per_interval() {
        let mut s = station(None);
        assert_eq!((announced(&mut s, 0), s.poll_timeout()), (None, None));
        s.observe(DataRate::from_kbps(400), DataSize::from_bytes(9_000));
        assert_eq!(announced(&mut s, 20), Some(200));
        s.observe(DataRate::from_kbps(430), DataSize::ZERO);
        assert_eq!((announced(&mut s, 40), announced(&mut s, 1_019)), (None, None));
        assert_eq!(announced(&mut s, 1_020), Some(215));
        s.observe(DataRate::ZERO, DataSize::ZERO);
        assert_eq!(announced(&mut s, 1_040), Some(0));
    }

    #[test]
    fn leaves_room_for_the_queue_to_drain() {
        let mut s = station(Some(TimeDelta::from_millis(500)));
        // Half of 12,500 bytes in 500 ms are 100 kbit/s of the flow's 200.
        s.observe(DataRate::from_kbps(400), DataSize::from_bytes(12_500));
        assert_eq!(announced(&mut s, 0), Some(100));
        s.observe(DataRate::from_kbps(400), DataSize::from_bytes(1_000_000));
        assert_eq!(announced(&mut s, 20), Some(0));
    }
}
