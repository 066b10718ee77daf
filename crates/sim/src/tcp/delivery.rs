//! Delivery-rate samples (draft-ietf-ccwg-bbr, section "Delivery Rate Samples"), for algorithms that model the path.

use crate::tcp_segment::SackBlock;
use std::collections::VecDeque;
use weir_units::{TimeDelta, Timestamp};

/// Fate of a segment in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    InFlight,
    /// Detected as lost and not sent again.
    Lost,
    /// Retransmitted: without RACK, a second loss is found by the retransmission timer alone.
    Again,
    Delivered,
}

/// A segment as it was last sent, and the connection's counters at that time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sent {
    start: u64,
    end: u64,
    at: Timestamp,
    first_sent: Timestamp,
    delivered: u64,
    delivered_at: Timestamp,
    /// Bytes in flight, this segment included.
    in_flight: u64,
    lost: u64,
    is_app_limited: bool,
    state: State,
}

impl Sent {
    /// Marks it as lost. `lost` counts the bytes lost so far, `lost_end` is the end of the segment lost before it.
    fn lose(&mut self, lost: &mut u64, lost_end: &mut u64) -> LostSegment {
        self.state = State::Lost;
        let size = self.end - self.start;
        *lost += size;
        let begins_range = self.start != *lost_end;
        *lost_end = self.end;
        LostSegment {
            size,
            in_flight: self.in_flight,
            lost: *lost - self.lost,
            is_app_limited: self.is_app_limited,
            begins_range,
        }
    }
}

/// A segment that was detected as lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostSegment {
    /// Its bytes.
    pub size: u64,
    /// Bytes in flight when it was sent, itself included.
    pub in_flight: u64,
    /// Bytes lost since it was sent, itself included.
    pub lost: u64,
    /// Whether it was sent while the application limited the rate.
    pub is_app_limited: bool,
    /// Whether the segment before it was not lost with it.
    pub begins_range: bool,
}

/// A rate sample, made by one acknowledgement.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RateSample {
    /// Delivered bytes over the longer of the times in which they were sent and acknowledged, in bytes a second; `None`
    /// if nothing was delivered or the time is below the minimum round-trip time.
    pub rate: Option<f64>,
    /// Bytes delivered in that time.
    pub delivered: u64,
    /// Bytes delivered in all when the newest delivered segment was sent; `None` if nothing was delivered.
    pub prior_delivered: Option<u64>,
    /// Bytes delivered by this acknowledgement.
    pub newly_acked: u64,
    /// Bytes detected as lost by this acknowledgement.
    pub newly_lost: u64,
    /// Bytes lost since the newest delivered segment was sent.
    pub lost: u64,
    /// Bytes in flight when the newest delivered segment was sent, itself included.
    pub in_flight: u64,
    /// Whether that segment was sent while the application limited the rate.
    pub is_app_limited: bool,
    /// Round-trip time of the newest delivered segment that was sent once.
    pub rtt: Option<TimeDelta>,
}

/// The segments in flight and the connection's counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Delivery {
    /// In order of their bytes, without gaps.
    sent: VecDeque<Sent>,
    /// Bytes delivered.
    delivered: u64,
    delivered_at: Timestamp,
    first_sent: Timestamp,
    /// Bytes detected as lost.
    lost: u64,
    /// The rate is limited by the application until this much was delivered; 0 if it is not.
    app_limited: u64,
    min_rtt: Option<TimeDelta>,
    /// Losses were looked for below this.
    examined: u64,
    /// End of the last segment detected as lost.
    lost_end: u64,
}

impl Delivery {
    /// Forgets the segments in flight, keeping the counters.
    pub(super) fn restart(&mut self) {
        self.sent.clear();
        self.app_limited = 0;
    }
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }
    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// The application has nothing more to send (MarkConnectionAppLimited).
    pub(super) fn limit_by_application(&mut self, in_flight: u64) {
        self.app_limited = (self.delivered + in_flight).max(1);
    }

    /// The bytes from `start` to `end` were sent; `in_flight` includes them (OnPacketSent).
    pub(super) fn on_sent(&mut self, now: Timestamp, start: u64, end: u64, in_flight: u64) {
        if in_flight <= end - start {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let record = Sent {
            start,
            end,
            at: now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            in_flight,
            lost: self.lost,
            is_app_limited: self.app_limited > 0,
            state: State::InFlight,
        };
        if self.sent.back().is_none_or(|last| last.end <= start) {
            self.sent.push_back(record);
            return;
        }
        let first = self.sent.partition_point(|s| s.end <= start);
        for s in self.sent.iter_mut().skip(first).take_while(|s| s.start < end) {
            if s.state != State::Delivered {
                *s = Sent { start: s.start, end: s.end, state: State::Again, ..record };
            }
        }
    }

    /// Bytes up to `una` were acknowledged, and those of `blocks` selectively, of which `news` bytes for the first time.
    pub(super) fn on_ack(&mut self, now: Timestamp, una: u64, blocks: &[SackBlock], mut news: u64) -> RateSample {
        let mut newest: Option<Sent> = None;
        let mut rs = RateSample::default();
        let before = self.delivered;
        while let Some(&s) = self.sent.front().filter(|s| s.end <= una) {
            self.deliver(now, s, &mut newest, &mut rs);
            self.sent.pop_front();
        }
        // A block grows at its end, so what is new is found first.
        for block in blocks.iter().filter(|b| b.end > una) {
            let mut k = self.sent.partition_point(|s| s.end <= block.end);
            while news > 0 && k > 0 && self.sent[k - 1].start >= block.start {
                k -= 1;
                let s = self.sent[k];
                if s.state != State::Delivered {
                    self.deliver(now, s, &mut newest, &mut rs);
                    self.sent[k].state = State::Delivered;
                    news = news.saturating_sub(s.end - s.start);
                }
            }
        }
        rs.newly_acked = self.delivered - before;
        self.min_rtt = self.min_rtt.into_iter().chain(rs.rtt).min();
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        if let Some(s) = newest {
            rs.prior_delivered = Some(s.delivered);
            rs.delivered = self.delivered - s.delivered;
            rs.in_flight = s.in_flight;
            rs.lost = self.lost - s.lost;
            rs.is_app_limited = s.is_app_limited;
            let interval = (s.at.saturating_since(s.first_sent)).max(now.saturating_since(s.delivered_at));
            let reliable = interval > TimeDelta::ZERO && self.min_rtt.is_none_or(|least| interval >= least);
            rs.rate = reliable.then(|| rs.delivered as f64 / interval.as_secs_f64());
        }
        rs
    }

    fn deliver(&mut self, now: Timestamp, s: Sent, newest: &mut Option<Sent>, rs: &mut RateSample) {
        if s.state == State::Delivered {
            return;
        }
        self.delivered += s.end - s.start;
        self.delivered_at = now;
        if newest.is_none_or(|n| (s.at, s.end) > (n.at, n.end)) {
            *newest = Some(s);
            self.first_sent = s.at;
            if s.state == State::InFlight {
                rs.rtt = Some(now.saturating_since(s.at));
            }
        }
    }

    /// Segments that begin below `below` and were sent once are lost; each is passed to `each`. Returns their bytes.
    pub(super) fn lose(&mut self, below: u64, mut each: impl FnMut(LostSegment)) -> u64 {
        let before = self.lost;
        let first = self.sent.partition_point(|s| s.start < self.examined);
        for s in self.sent.iter_mut().skip(first).take_while(|s| s.start < below) {
            if s.state == State::InFlight {
                each(s.lose(&mut self.lost, &mut self.lost_end));
            }
        }
        self.examined = self.examined.max(below);
        self.lost - before
    }

    /// The segments of `start..end` are lost, retransmitted ones too; each is passed to `each`. Returns their bytes.
    pub(super) fn lose_range(&mut self, start: u64, end: u64, mut each: impl FnMut(LostSegment)) -> u64 {
        let before = self.lost;
        let first = self.sent.partition_point(|s| s.end <= start);
        for s in self.sent.iter_mut().skip(first).take_while(|s| s.start < end) {
            if matches!(s.state, State::InFlight | State::Again) {
                each(s.lose(&mut self.lost, &mut self.lost_end));
            }
        }
        self.lost - before
    }

    /// The retransmission timer expired: all that was not delivered is lost.
    pub(super) fn lose_all(&mut self) {
        for s in self.sent.iter_mut().filter(|s| matches!(s.state, State::InFlight | State::Again)) {
            s.state = State::Lost;
            self.lost += s.end - s.start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// A segment each 10 ms, acknowledged 100 ms later.
    #[test]
    fn the_rate_is_what_was_delivered_in_the_longer_time() {
        let mut d = Delivery::default();
        let mut last = RateSample::default();
        for k in 0..30 {
            let n = k as u64;
            if k >= 10 {
                last = d.on_ack(at(10 * k), (n - 9) * MSS, &[], 0);
            }
            d.on_sent(at(10 * k), n * MSS, (n + 1) * MSS, (n + 1).min(10) * MSS);
        }
        assert_eq!(last.rtt, Some(TimeDelta::from_millis(100)));
        assert!((last.rate.unwrap() - 100_000.0).abs() < 1.0, "{last:?}");
        assert_eq!((last.newly_acked, last.in_flight, last.lost), (MSS, 10 * MSS, 0));
    }

    #[test]
    fn segments_reported_by_sack_count_once_and_losses_once() {
        let mut d = Delivery::default();
        for n in 0..10 {
            d.on_sent(at(n as i64), n * MSS, (n + 1) * MSS, (n + 1) * MSS);
        }
        let block = SackBlock { start: 2 * MSS, end: 6 * MSS };
        assert_eq!(d.on_ack(at(100), MSS, &[block], 4 * MSS).newly_acked, 5 * MSS);
        assert_eq!(d.on_ack(at(101), MSS, &[block], 0).newly_acked, 0);
        let mut lost = vec![];
        assert_eq!(d.lose(4 * MSS, |l| lost.push(l)), MSS);
        assert_eq!(
            lost,
            [LostSegment { size: MSS, in_flight: 2 * MSS, lost: MSS, is_app_limited: false, begins_range: true }]
        );
        assert_eq!(d.lose(4 * MSS, |_| unreachable!()), 0);
        // Sent again; its round-trip time is not taken.
        d.on_sent(at(102), MSS, 2 * MSS, 5 * MSS);
        assert_eq!(d.lose(4 * MSS, |_| unreachable!()), 0);
        let rs = d.on_ack(at(200), 6 * MSS, &[], 0);
        assert_eq!((rs.newly_acked, rs.rtt), (MSS, None));
        d.lose_all();
        assert_eq!(d.lost, 5 * MSS);
        assert_eq!(d.on_ack(at(300), 10 * MSS, &[], 0).newly_acked, 4 * MSS);
        assert_eq!(d.delivered(), 10 * MSS);
    }

    #[test]
    fn samples_of_an_idle_application_are_marked() {
        let mut d = Delivery::default();
        d.on_sent(at(0), 0, MSS, MSS);
        d.limit_by_application(MSS);
        d.on_sent(at(1), MSS, 2 * MSS, 2 * MSS);
        d.on_sent(at(2), 2 * MSS, 3 * MSS, 3 * MSS);
        assert!(!d.on_ack(at(50), MSS, &[], 0).is_app_limited);
        assert!(d.on_ack(at(51), 2 * MSS, &[], 0).is_app_limited);
        assert!(!d.is_app_limited());
    }
}
