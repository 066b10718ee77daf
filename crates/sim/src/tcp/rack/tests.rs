//! RFC 8985's examples, segment by segment: P1 is number 0.

use super::*;
use proptest::prelude::*;

const MSS: u64 = 1_000;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// A sender's side: what was sent, and acknowledgements with a round-trip time of 100 ms, smoothed and minimum.
struct Side {
    rack: Rack,
    board: Scoreboard,
    una: u64,
    high: u64,
    in_recovery: bool,
}

impl Side {
    fn new() -> Self {
        let mut rack = Rack::default();
        rack.on_rtt(at(0), TimeDelta::from_millis(100));
        Self { rack, board: Scoreboard::default(), una: 0, high: 0, in_recovery: false }
    }
    fn send(&mut self, ms: i64, segment: u64) {
        let end = (segment + 1) * MSS;
        self.rack.on_sent(at(ms), segment * MSS, end);
        self.high = self.high.max(end);
        self.rack.segments.check();
    }
    /// Everything below `una` and the segments of `sacked` are received. Returns the segments lost by now, and the
    /// deadline of the others in ms.
    fn ack(&mut self, ms: i64, una: u64, sacked: &[u64]) -> (Vec<u64>, Option<i64>) {
        let blocks: Vec<_> = sacked.iter().map(|k| SackBlock { start: k * MSS, end: (k + 1) * MSS }).collect();
        let ack = Ack {
            now: at(ms),
            una: una * MSS,
            high: self.high,
            blocks: &blocks,
            echo: None,
            has_dsack: false,
            ends_recovery: false,
        };
        self.rack.on_ack(&ack, &self.board);
        for b in blocks {
            self.board.add(b, una * MSS, self.high);
        }
        self.una = una * MSS;
        self.board.advance(self.una);
        self.detect(ms)
    }
    fn detect(&mut self, ms: i64) -> (Vec<u64>, Option<i64>) {
        let deadline = self.rack.detect(at(ms), Some(TimeDelta::from_millis(100)), self.in_recovery);
        self.rack.segments.check();
        self.in_recovery |= !self.rack.newly_lost().is_empty();
        (self.rack.newly_lost().iter().map(|l| l.start / MSS).collect(), deadline.map(|t| t.as_millis()))
    }
}

const NOTHING: (Vec<u64>, Option<i64>) = (vec![], None);

/// Section 9.1, example 1: of three segments the first and the last are lost; each is sent 30 ms after the previous one,
/// and the reordering window is 25 ms.
#[test]
fn drops_at_the_end_of_a_flight_are_found_by_a_retransmission() {
    let mut s = Side::new();
    (0..3).for_each(|k| s.send(30 * k, k as u64));
    assert_eq!(s.ack(130, 0, &[1]), (vec![0], None));
    assert_eq!(s.rack.first_lost(), Some((0, MSS)));
    s.send(130, 0);
    assert_eq!((s.rack.first_lost(), s.rack.in_flight()), (None, 2 * MSS));
    assert_eq!(s.ack(230, 2, &[]), (vec![2], None));
}

/// Section 9.1, example 2: the first two of three are lost, and the retransmission of the first is lost too.
#[test]
fn a_lost_retransmission_is_found() {
    let mut s = Side::new();
    (0..3).for_each(|k| s.send(30 * k, k as u64));
    assert_eq!(s.ack(160, 0, &[2]), (vec![0, 1], None));
    s.send(160, 0);
    s.send(160, 1);
    assert_eq!(s.ack(260, 0, &[1, 2]), (vec![0], None));
    let lost = s.rack.newly_lost()[0];
    assert!(lost.is_retransmission && lost.sent == at(160));
}

/// Section 9.1, example 3: the third of three is received first.
#[test]
fn reordering_within_the_window_is_no_loss() {
    let mut s = Side::new();
    (0..3).for_each(|k| s.send(0, k));
    // The reordering timer waits for the first two.
    assert_eq!(s.ack(100, 0, &[2]), (vec![], Some(125)));
    assert_eq!(s.ack(110, 1, &[2]), (vec![], Some(125 + 10)), "the latest round-trip time is 110 ms");
    assert!(s.rack.window.is_seen);
    assert_eq!(s.ack(124, 3, &[]), NOTHING);
    // The same again, with later segments: the timer expires.
    (3..6).for_each(|k| s.send(200, k));
    assert_eq!(s.ack(300, 3, &[5]), (vec![], Some(325)));
    assert_eq!(s.detect(324), (vec![], Some(325)));
    assert_eq!(s.detect(325), (vec![3, 4], None));
}

/// Section 6.2, step 4: without reordering seen, three segments received later make a loss, as in RFC 6675; with it, time
/// does.
#[test]
fn three_segments_make_a_loss_unless_there_was_reordering() {
    for is_seen in [false, true] {
        let mut s = Side::new();
        s.rack.window.is_seen = is_seen;
        (0..5).for_each(|k| s.send(0, k));
        assert_eq!(s.ack(100, 0, &[1, 2]), (vec![], Some(125)));
        assert_eq!(s.ack(100, 0, &[3]), if is_seen { (vec![], Some(125)) } else { (vec![0], None) }, "{is_seen}");
        assert_eq!(s.rack.sacked(), 3);
    }
}

/// Section 6.2, step 2: the acknowledgement of an original that crosses its retransmission is not taken for the
/// retransmission's.
#[test]
fn an_ambiguous_acknowledgement_detects_nothing() {
    let mut s = Side::new();
    s.send(0, 0);
    s.send(1, 1);
    s.send(50, 0);
    // 60 ms after the retransmission is below the minimum of 100 ms.
    assert_eq!(s.ack(110, 1, &[]), NOTHING);
    assert_eq!((s.rack.latest, s.rack.rtt), (None, TimeDelta::ZERO));
    // With timestamps, what is echoed decides: here the original's.
    let mut s = Side::new();
    s.send(0, 0);
    s.send(20, 0);
    let ack = Ack {
        now: at(150),
        una: MSS,
        high: MSS,
        blocks: &[],
        echo: Some(at(0)),
        has_dsack: false,
        ends_recovery: false,
    };
    s.rack.on_ack(&ack, &s.board);
    assert_eq!(s.rack.latest, None);
}

/// Section 3.5: on a timeout only the first segment is lost, and those sent a round-trip time and the window ago.
#[test]
fn a_timeout_spares_what_was_sent_lately() {
    let mut s = Side::new();
    s.send(0, 0);
    assert_eq!(s.ack(100, 1, &[]), NOTHING);
    s.send(100, 1);
    s.send(950, 2);
    s.send(1_060, 3);
    s.rack.on_timeout(at(1_100), Some(TimeDelta::from_millis(100)), false);
    let lost: Vec<_> = s.rack.newly_lost().iter().map(|l| l.start / MSS).collect();
    assert_eq!(lost, [1, 2]);
    assert_eq!(s.rack.in_flight(), MSS);
}

#[test]
fn a_receiver_that_reneges_gets_everything_again() {
    let mut s = Side::new();
    (0..4).for_each(|k| s.send(0, k));
    assert_eq!(s.ack(100, 0, &[1, 2]), (vec![], Some(125)));
    s.rack.renege();
    s.rack.segments.check();
    assert_eq!((s.rack.first_lost(), s.rack.sacked()), (Some((MSS, MSS)), 0));
    // A first segment that was reported and not acknowledged is found by the timeout.
    let mut s = Side::new();
    (0..3).for_each(|k| s.send(0, k));
    s.ack(100, 0, &[1]);
    s.ack(101, 1, &[]);
    s.rack.on_timeout(at(2_000), None, false);
    assert_eq!((s.rack.first_lost(), s.rack.in_flight()), (Some((MSS, MSS)), 0));
}

proptest! {
    /// Any order of transmissions and acknowledgements, valid or not, keeps the counts and the list in order, and what is
    /// lost is neither acknowledged nor younger than the latest delivered segment.
    #[test]
    fn the_books_balance(steps in prop::collection::vec((0u8..6, 0u64..40, 0u64..40, 0i64..60), 1..120)) {
        let mut s = Side::new();
        let mut ms = 0;
        for (what, a, b, wait) in steps {
            ms += wait;
            let (first, end) = (s.una / MSS, s.high / MSS);
            match what {
                0 | 1 => (0..=a % 4).for_each(|k| s.send(ms, end + k)),
                2 if end > first => s.send(ms, first + a % (end - first)),
                3 => {
                    let una = first + a % (end - first + 1);
                    s.ack(ms, una, &[]);
                }
                4 => {
                    s.ack(ms, first, &[first + a, first + b, first + a + 1]);
                }
                5 => s.rack.on_timeout(at(ms), Some(TimeDelta::from_millis(100)), false),
                _ => {}
            }
            s.rack.segments.check();
            for l in s.rack.newly_lost() {
                prop_assert!(l.start >= s.una && l.end <= s.high && l.sent <= at(ms));
            }
            let lost = s.rack.first_lost();
            prop_assert_eq!(lost.is_some(), s.rack.has_lost());
            prop_assert!(s.rack.in_flight() + s.rack.sacked() as u64 * MSS <= s.high - s.una);
        }
    }
}
