use super::Tfrc;
use crate::cue::{PacketResult, SentPacket, TransportFeedback};
use crate::testing::{self, Kbps};
use crate::{Controller, Cue};
use std::collections::VecDeque;
use weir_units::{DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

const SIZE: DataSize = DataSize::from_bytes(1_000);
const FEEDBACK: TimeDelta = TimeDelta::from_millis(20);

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Arrives,
    Lost,
    Marked,
}

/// A codec that sends at the media rate over a path, initially of 50 ms each way, with feedback every 20 ms.
struct Pipe {
    sender: Tfrc,
    now: Timestamp,
    next_send: Timestamp,
    next_feedback: Timestamp,
    sequence: u64,
    flying: VecDeque<(u64, Timestamp, Fate)>,
    one_way: TimeDelta,
    /// Additional delay on the way back.
    late: TimeDelta,
    deaf: bool,
    idle: bool,
}

impl Pipe {
    fn new(ceiling: u64, params: &[(&str, f64)]) -> Self {
        Self {
            sender: Kbps { floor: 1, start: 300, ceiling }.sender(params),
            now: Timestamp::ZERO,
            next_send: Timestamp::ZERO,
            next_feedback: Timestamp::ZERO + FEEDBACK,
            sequence: 0,
            flying: VecDeque::new(),
            one_way: TimeDelta::from_millis(50),
            late: TimeDelta::ZERO,
            deaf: false,
            idle: false,
        }
    }

    /// Runs for `ms`; `fate` gives each packet's fate by its number.
    fn run(&mut self, ms: i64, fate: impl Fn(u64) -> Fate) {
        let end = self.now + TimeDelta::from_millis(ms);
        loop {
            let timeout = self.sender.poll_timeout().map_or(Timestamp::MAX, |t| t.0);
            let send = if self.idle { Timestamp::MAX } else { self.next_send.max(self.now) };
            let at = timeout.min(send).min(self.next_feedback);
            if at > end {
                break self.now = end;
            }
            self.now = at;
            if at == timeout {
                self.sender.on_timeout(at);
            } else if at == send {
                self.send(fate(self.sequence));
            } else {
                self.next_feedback += FEEDBACK;
                self.feedback();
            }
        }
    }

    fn send(&mut self, fate: Fate) {
        self.sender.on_packet_sent(&SentPacket::media(self.now, self.sequence, SIZE));
        self.flying.push_back((self.sequence, self.now, fate));
        self.sequence += 1;
        self.next_send = self.now + self.sender.target().media_rate.time_for(SIZE).expect("a rate");
    }

    fn feedback(&mut self) {
        let reported = self.now - self.one_way * 2 - self.late;
        let mut packets = Vec::new();
        while let Some(&(sequence, departure, fate)) = self.flying.front().filter(|f| f.1 <= reported) {
            self.flying.pop_front();
            let at = RemoteTimestamp::ZERO + (departure - Timestamp::ZERO) + self.one_way;
            packets.push(PacketResult {
                sequence,
                departure,
                arrival: (fate != Fate::Lost).then_some(at),
                size: SIZE,
                ecn: if fate == Fate::Marked { Ecn::Ce } else { Ecn::Ect0 },
                probe: 0,
                was_lost: false,
            });
        }
        if self.deaf {
            return;
        }
        let rtt = packets.iter().any(|p| p.arrival.is_some()).then_some(self.one_way * 2 + self.late);
        let feedback = TransportFeedback { now: self.now, packets: &packets, bytes_in_flight: DataSize::ZERO, rtt };
        self.sender.on_cue(&Cue::TransportFeedback(feedback));
    }

    fn kbps(&self) -> f64 {
        self.sender.target().media_rate.as_kbps_f64()
    }
    fn metric(&self, wanted: &str) -> f64 {
        testing::metric(&self.sender, wanted)
    }
}

#[track_caller]
fn within(value: f64, range: core::ops::RangeInclusive<f64>) {
    assert!(range.contains(&value), "{value} is not in {range:?}");
}

fn clean(_: u64) -> Fate {
    Fate::Arrives
}

#[test]
fn the_first_round_trip_time_sets_the_initial_rate() {
    let mut p = Pipe::new(50_000, &[]);
    p.run(99, clean);
    assert_eq!(p.kbps(), 300.0);
    p.run(2, clean);
    // min(4 * 1,200, max(2 * 1,200, 4,380)) = 4,380 bytes in 100 ms.
    within(p.kbps(), 350.3..=350.5);
    let mut large = Pipe::new(50_000, &[("mss", 2_500.0)]);
    large.run(101, clean);
    // max(2 * 2,500, 4,380).
    within(large.kbps(), 399.9..=400.1);
    let mut small = Pipe::new(50_000, &[("mss", 500.0)]);
    small.run(101, clean);
    // The packets sent are larger: 4 * 1,000.
    within(small.kbps(), 319.9..=320.1);
}

#[test]
fn slow_start_doubles_the_rate_and_then_what_arrives() {
    let mut p = Pipe::new(50_000, &[]);
    p.run(101, clean);
    p.run(400, clean);
    // Doubled at 200 and 300 ms; then twice the receive rate, which is the sending rate of two round trips ago.
    within(p.kbps(), 5.0 * 350.0..=8.1 * 350.0);
    let before = p.kbps();
    p.run(400, clean);
    within(p.kbps() / before, 2.5..=4.1);
    p.run(1_500, clean);
    assert_eq!(p.kbps(), 50_000.0);
}

#[test]
fn the_receive_rate_bounds_a_sender_with_little_to_send() {
    let mut p = Pipe::new(300, &[]);
    p.run(10_000, clean);
    assert_eq!((p.kbps(), p.metric("data_limited")), (300.0, 1.0));
    within(p.metric("x_recv_bps"), 230e3..=345e3);
    within(p.metric("x_bps"), 600e3..=660e3);
}

#[test]
fn one_loss_in_a_hundred_gives_the_rate_of_the_equation() {
    for fate in [Fate::Lost, Fate::Marked] {
        let mut p = Pipe::new(50_000, &[]);
        p.run(60_000, |s| if s % 100 == 99 { fate } else { Fate::Arrives });
        within(p.metric("loss_event_rate"), 0.0095..=0.01);
        // p = 0.01: 898.66 kbit/s. A little more while the open interval is longer.
        within(p.kbps(), 897.0..=925.0);
        within(p.metric("segment_bytes"), 999.9..=1_000.1);
        assert_eq!(p.metric("data_limited"), 0.0);
    }
}

#[test]
fn feedback_rarer_than_round_trips_will_do() {
    let mut p = Pipe::new(300_000, &[]);
    p.one_way = TimeDelta::from_micros(500);
    p.run(4_000, |s| if s % 100 == 99 { Fate::Lost } else { Fate::Arrives });
    // A hundredth of the round-trip time above, and so a hundred times the rate: 89.87 Mbit/s.
    within(p.kbps(), 87_000.0..=92_500.0);
    within(p.metric("x_recv_bps") / p.metric("x_bps"), 0.9..=1.1);
}

#[test]
fn losses_within_a_round_trip_are_one_event() {
    let run = |in_a_row: u64| {
        let mut p = Pipe::new(50_000, &[]);
        p.run(60_000, |s| if s % 100 < in_a_row { Fate::Lost } else { Fate::Arrives });
        p.kbps()
    };
    within(run(8) / run(1), 0.97..=1.03);
}

#[test]
fn the_first_loss_halves_what_slow_start_has_reached() {
    let mut p = Pipe::new(50_000, &[]);
    p.run(501, clean);
    let reached = p.metric("x_bps");
    let lost = p.sequence;
    p.run(190, |s| if s == lost { Fate::Lost } else { Fate::Arrives });
    // X_target is the greatest receive rate, that of the packets around the lost one, sent at the rate reached by then.
    within(p.metric("x_bps"), 0.5 * reached..=1.1 * reached);
    within(p.metric("loss_event_rate"), 1e-5..=0.01);
}

#[test]
fn silence_halves_the_rate_each_time() {
    let mut p = Pipe::new(50_000, &[]);
    p.run(60_000, |s| if s % 100 == 99 { Fate::Lost } else { Fate::Arrives });
    let before = p.kbps();
    p.deaf = true;
    // Four round-trip times after the last feedback, up to 20 ms ago; then after four more.
    p.run(375, clean);
    assert_eq!(p.kbps(), before);
    p.run(50, clean);
    within(p.kbps() / before, 0.47..=0.52);
    p.run(400, clean);
    within(p.kbps() / before, 0.23..=0.26);
    p.run(200_000, clean);
    within(p.kbps(), 1.0..=1.0);
    // And recovery.
    p.deaf = false;
    p.run(60_000, |s| if s % 100 == 99 { Fate::Lost } else { Fate::Arrives });
    within(p.kbps(), 850.0..=950.0);
}

#[test]
fn idleness_does_not_go_below_the_rate_to_recover_from() {
    let mut p = Pipe::new(50_000, &[]);
    p.run(500, clean);
    within(p.metric("x_bps"), 2_000e3..=6_000e3);
    p.idle = true;
    p.run(30_000, clean);
    // Not halved once it is below twice the initial rate.
    within(p.metric("x_bps"), 350e3..=701e3);
    assert_eq!(p.sender.poll_timeout(), None);
}

#[test]
fn a_longer_round_trip_damps_the_rate() {
    let run = |damping| {
        let mut p = Pipe::new(50_000, &[("damping", damping)]);
        p.run(60_000, |s| if s % 100 == 99 { Fate::Lost } else { Fate::Arrives });
        p.late = TimeDelta::from_millis(300);
        // The first report of a round trip of 400 ms.
        p.run(430, clean);
        p.metric("x_inst_bps") / p.metric("x_bps")
    };
    // sqrt(0.1) over sqrt(0.4), with a tenth of the latter in the mean: (0.9 + 0.1 * 2) / 2.
    within(run(1.0), 0.54..=0.66);
    assert_eq!(run(0.0), 1.0);
}
