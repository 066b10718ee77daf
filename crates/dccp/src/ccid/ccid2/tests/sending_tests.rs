//! The sender, packet by packet, by the text of RFC 4341 and the sections of RFC 4340 that it names.

use super::{ms, setup};
use crate::ack_vector::{AckState, MAX_RUN};
use crate::ccid::ccid2::window::Window;
use crate::ccid::ccid2::{Acked, Config, Reno, Sender};
use crate::ccid::{Acknowledgement, CcidSender, Permission, SentPacket, Setup};
use crate::option::Options;
use crate::packet::PacketType;
use proptest::prelude::*;
use weir_units::{DataRate, DataSize, Ecn, Seq48, TimeDelta, Timestamp};

const SIZE: DataSize = DataSize::from_bytes(1_000);
const RTT: TimeDelta = ms(100);

/// A sender whose acknowledgements are written by hand. Its packets are numbered from 1.
struct Drive {
    s: Sender,
    now: Timestamp,
    sent: u64,
    own: u64,
    /// What the next acknowledgement carries besides a vector.
    data_dropped: Vec<u8>,
    slow_receiver: bool,
    elapsed: Option<TimeDelta>,
    ack_ecn: Ecn,
    ack_type: PacketType,
}

fn with(config: Config) -> Drive {
    Drive {
        s: Sender::new(&setup(), config, Reno::default()),
        now: Timestamp::ZERO,
        sent: 0,
        own: 1_000,
        data_dropped: Vec::new(),
        slow_receiver: false,
        elapsed: None,
        ack_ecn: Ecn::Ect0,
        ack_type: PacketType::Ack,
    }
}

/// Without what depends on time.
fn plain() -> Config {
    Config { max_burst: 0, ..Config::default() }
}

use AckState::{Marked as M, NotReceived as N, Received as R};

impl Drive {
    fn send_packet(&mut self, packet_type: PacketType, queued: u64) {
        self.sent += 1;
        self.s.on_packet_sent(&SentPacket {
            now: self.now,
            sequence: Seq48::new(self.sent),
            packet_type,
            data: if packet_type.is_data() { SIZE } else { DataSize::ZERO },
            header: DataSize::from_bytes(16),
            ecn: Ecn::Ect0,
            queued: DataSize::from_bytes(queued),
        });
    }
    /// All that the window allows; gives how many.
    fn fill(&mut self) -> u32 {
        let before = self.sent;
        while self.s.may_send(self.now, SIZE) == Permission::Now {
            self.send_packet(PacketType::Data, 1_000);
        }
        (self.sent - before) as u32
    }
    /// A vector that begins at `newest` with these runs.
    fn ack_runs(&mut self, newest: u64, runs: &[(AckState, u64)]) {
        let mut vector = Vec::new();
        for &(state, len) in runs {
            let mut left = len;
            while left > 0 {
                let n = left.min(MAX_RUN);
                vector.push((state as u8) << 6 | (n - 1) as u8);
                left -= n;
            }
        }
        self.own += 1;
        self.s.on_acknowledgement(&Acknowledgement {
            now: self.now,
            sequence: Seq48::new(self.own),
            packet_type: self.ack_type,
            ndp_count: None,
            acknowledged: Seq48::new(newest),
            ack_vector: &vector,
            elapsed: self.elapsed,
            echo_rtt: None,
            data_dropped: &self.data_dropped,
            slow_receiver: self.slow_receiver,
            ecn: self.ack_ecn,
            options: Options::new(&[], self.ack_type),
        });
    }
    /// All up to here has come.
    fn ack(&mut self, newest: u64) {
        self.ack_runs(newest, &[(R, newest)]);
    }
    /// Sends a window, and has it acknowledged two packets at a time, a round-trip time later.
    fn round(&mut self) {
        let first = self.sent + 1;
        self.fill();
        let last = self.sent;
        self.now += RTT;
        let mut n = first;
        while n <= last {
            n = (n + 1).min(last);
            self.ack(n);
            n += 1;
        }
    }
    fn metric(&self, name: &str) -> Option<f64> {
        let mut found = None;
        self.s.metrics(&mut |n, v| found = if n == name { Some(v) } else { found });
        found
    }
    fn cwnd(&self) -> u32 {
        self.metric("cwnd").expect("always there") as u32
    }
    fn pipe(&self) -> u32 {
        self.metric("pipe").expect("always there") as u32
    }
    fn ssthresh(&self) -> Option<u32> {
        self.metric("ssthresh").map(|s| s as u32)
    }
    /// Slow start up to so many packets, all acknowledged.
    fn grown_to(mut self, cwnd: u32) -> Self {
        while self.cwnd() < cwnd {
            self.round();
        }
        assert_eq!(self.pipe(), 0);
        self
    }
}

#[test]
fn the_initial_window_is_rfc_3390s() {
    for (size, want) in [(100, 4), (1_095, 4), (1_096, 3), (1_460, 3), (2_189, 2), (2_190, 2), (9_000, 2), (0, 4)] {
        let setup = Setup { max_packet_size: DataSize::from_bytes(size), ..setup() };
        let s = Sender::new(&setup, plain(), Reno::default());
        assert_eq!(Drive { s, ..with(plain()) }.cwnd(), want, "{size}");
    }
}

#[test]
fn the_window_keeps_its_bound() {
    let mut d = with(Config { max_window: 50, ..plain() });
    (0..20).for_each(|_| d.round());
    assert_eq!(d.cwnd(), 50);
}

#[test]
fn data_leave_while_pipe_is_below_the_window() {
    let mut d = with(plain());
    assert_eq!((d.fill(), d.pipe()), (4, 4));
    assert_eq!(d.s.may_send(d.now, SIZE), Permission::Blocked);
    // Acknowledgements are neither held back nor counted.
    d.send_packet(PacketType::Ack, 0);
    assert_eq!(d.pipe(), 4);
    // The same acknowledgement twice is one.
    d.ack(2);
    d.ack(2);
    assert_eq!((d.pipe(), d.cwnd()), (2, 5));
}

#[test]
fn slow_start_grows_by_one_for_two() {
    let mut d = with(plain());
    let mut seen = Vec::new();
    for _ in 0..7 {
        d.round();
        seen.push(d.cwnd());
    }
    // Half of each window, the odd packet kept for the next: 4 + 2, 6 + 3, 9 + 4, 13 + (13 + 1) / 2, ...
    assert_eq!(seen, [6, 9, 13, 20, 30, 45, 67]);
}

#[test]
fn slow_start_grows_by_half_the_ack_ratio_at_most_an_acknowledgement() {
    let mut d = with(plain()).grown_to(20);
    d.fill();
    let before = d.cwnd();
    d.ack(d.sent);
    assert_eq!(d.cwnd(), before + 1, "Ack Ratio 2");
    let mut w = Window::new(&plain(), &setup(), Reno::default());
    for (packets, ack_ratio, want) in [(20, 8, 4), (5, 8, 2), (1, 8, 1), (1, 8, 0), (6, 5, 2), (1, 1, 0), (9, 1, 1)] {
        let before = w.get();
        w.grow(&Acked { now: Timestamp::ZERO, packets, srtt: RTT }, ack_ratio);
        assert_eq!(w.get() - before, want, "{packets} with Ack Ratio {ack_ratio}");
    }
}

#[test]
fn congestion_avoidance_grows_by_one_a_window() {
    let mut d = with(plain()).grown_to(20);
    d.fill();
    let n = d.sent;
    d.ack_runs(n, &[(R, 3), (N, 1), (R, n - 4)]);
    assert_eq!((d.cwnd(), d.ssthresh()), (10, Some(10)));
    for want in 11..40 {
        d.round();
        assert_eq!(d.cwnd(), want);
    }
}

#[test]
fn three_later_packets_make_a_loss_and_a_window_is_halved_once() {
    let mut d = with(plain()).grown_to(20);
    d.fill();
    let first = d.sent - 19;
    // First and sixth are lost. Two later ones are not enough.
    d.ack_runs(first + 2, &[(R, 2), (N, 1)]);
    assert_eq!((d.cwnd(), d.pipe()), (21, 18));
    d.ack_runs(first + 3, &[(R, 3), (N, 1)]);
    assert_eq!((d.cwnd(), d.ssthresh(), d.pipe(), d.metric("losses")), (10, Some(10), 16, Some(1.0)));
    // The sixth was sent before: the same event. Only its pipe goes.
    d.ack_runs(first + 8, &[(R, 3), (N, 1), (R, 4), (N, 1)]);
    assert_eq!((d.cwnd(), d.pipe(), d.metric("losses")), (10, 11, Some(2.0)));
    // Lost ones that come late change nothing.
    d.ack_runs(first + 8, &[(R, 9)]);
    assert_eq!((d.cwnd(), d.pipe()), (10, 11));
    // One that is sent now is another event.
    d.ack(first + 13);
    let sent = d.sent;
    assert!(d.fill() > 0);
    let n = d.sent + 3;
    while d.sent < n {
        d.send_packet(PacketType::Data, 0);
    }
    let before = d.cwnd();
    d.ack_runs(n, &[(R, n - sent - 1), (N, 1), (R, 19)]);
    assert_eq!(d.cwnd(), before / 2);
}

#[test]
fn packets_without_data_behind_a_hole_count() {
    let mut d = with(plain());
    d.fill();
    (0..3).for_each(|_| d.send_packet(PacketType::Ack, 0));
    d.ack_runs(6, &[(R, 2), (N, 1), (R, 3)]);
    assert_eq!((d.cwnd(), d.pipe()), (5, 1));
    d.ack_runs(7, &[(R, 3), (N, 1), (R, 3)]);
    assert_eq!((d.cwnd(), d.pipe(), d.metric("losses")), (2, 0, Some(1.0)));
}

#[test]
fn the_window_is_halved_down_to_one() {
    let mut d = with(plain());
    for (want, ssthresh) in [(2, 2), (1, 2), (1, 2)] {
        d.fill();
        let n = d.sent;
        d.ack_runs(n, &[(M, 1)]);
        assert_eq!((d.cwnd(), d.ssthresh()), (want, Some(ssthresh)));
        // All that is out before the next.
        d.ack_runs(n, &[(R, n)]);
    }
}

#[test]
fn a_mark_is_a_loss_that_came() {
    let mut d = with(plain()).grown_to(20);
    d.fill();
    let n = d.sent;
    d.ack_runs(n - 10, &[(R, 3), (M, 2), (R, 5)]);
    assert_eq!((d.cwnd(), d.pipe(), d.metric("marks"), d.metric("losses")), (10, 10, Some(2.0), Some(0.0)));
    // The same window.
    d.ack_runs(n, &[(M, 10), (R, 3)]);
    assert_eq!((d.cwnd(), d.pipe()), (10, 0));
    // Marked packets do not count for growth.
    d.fill();
    let n = d.sent;
    d.ack_runs(n - 1, &[(R, 9)]);
    assert_eq!(d.cwnd(), 10);
    d.ack_runs(n, &[(M, 1)]);
    assert_eq!(d.cwnd(), 5);
}

#[test]
fn a_timeout_leaves_one_packet() {
    let mut d = with(plain()).grown_to(20);
    let start = d.now;
    d.fill();
    let n = d.sent;
    // SRTT 100 ms with little deviation: the minimum of 200 ms.
    assert_eq!(d.s.poll_timeout(), Some(start + ms(200)));
    d.now = start + ms(199);
    d.s.on_timeout(d.now);
    assert_eq!(d.cwnd(), 20, "not yet");
    for (k, ssthresh) in [(1, 10), (2, 2), (4, 2)] {
        d.now = d.s.poll_timeout().expect("data are out");
        d.s.on_timeout(d.now);
        assert_eq!((d.cwnd(), d.ssthresh(), d.pipe()), (1, Some(ssthresh), 0));
        assert_eq!(d.s.poll_timeout(), None);
        assert_eq!(d.fill(), 1);
        assert_eq!(d.s.poll_timeout(), Some(d.now + ms(400 * k)), "doubled");
    }
    assert_eq!(d.metric("losses"), Some(22.0));
    // What was taken for lost comes after all, and counts for nothing.
    d.ack_runs(n, &[(R, 20)]);
    assert_eq!((d.cwnd(), d.pipe()), (1, 1));
    // A round-trip time ends the back-off, and slow start leads to the threshold of 2.
    d.now += RTT;
    d.ack(d.sent);
    d.round();
    assert_eq!(d.cwnd(), 2);
    d.fill();
    assert!(d.s.poll_timeout().is_some_and(|t| t - d.now <= ms(400)));
}

#[test]
fn the_timeout_counts_from_the_last_news() {
    let mut d = with(plain()).grown_to(20);
    let start = d.now;
    d.fill();
    d.now = start + ms(150);
    d.ack(d.sent - 5);
    let first = d.s.poll_timeout().expect("data are out");
    assert!(first >= d.now + ms(200), "{first:?}");
    // An acknowledgement of nothing new does not count.
    d.now = start + ms(180);
    d.ack(d.sent - 5);
    assert_eq!(d.s.poll_timeout(), Some(first));
    d.ack(d.sent);
    assert_eq!(d.s.poll_timeout(), None);
}

#[test]
fn round_trip_times_are_taken_once_a_window_less_the_time_held() {
    let mut d = with(plain());
    d.fill();
    d.now += ms(150);
    d.elapsed = Some(ms(50));
    d.ack(2);
    assert_eq!(d.s.rtt(), Some(ms(100)));
    // The rest of the window says nothing new; the next window does: 7/8 * 100 + 1/8 * 180.
    d.now += ms(500);
    d.ack(4);
    assert_eq!(d.s.rtt(), Some(ms(100)));
    d.fill();
    d.now += ms(180);
    d.elapsed = None;
    d.ack(d.sent);
    assert_eq!(d.s.rtt(), Some(ms(110)));
    assert_eq!(d.s.rate(), Some(DataRate::from_bps(u64::from(d.cwnd()) * 8_000 * 1_000 / 110)));
}

#[test]
fn an_idle_sender_loses_half_for_every_timeout() {
    let mut d = with(plain()).grown_to(40);
    let before = d.cwnd();
    let timeout = ms(200);
    d.now += timeout * 2 + ms(1) - RTT;
    d.send_packet(PacketType::Data, 0);
    // Packets left RTT before the last acknowledgement, so twice the timeout has passed.
    assert_eq!((d.cwnd(), d.ssthresh()), (before / 4, None));
    d.ack(d.sent);
    d.now += TimeDelta::from_secs(100);
    d.send_packet(PacketType::Data, 0);
    assert_eq!(d.cwnd(), 4, "not below the initial window");
    let mut d = with(Config { window_validation: false, ..plain() }).grown_to(40);
    d.now += TimeDelta::from_secs(100);
    d.send_packet(PacketType::Data, 0);
    assert!(d.cwnd() >= 40);
}

#[test]
fn a_window_that_is_not_used_does_not_grow_and_shrinks() {
    let mut d = with(plain()).grown_to(40);
    let before = d.cwnd();
    let mut seen = vec![before];
    // Ten packets a round trip.
    while d.cwnd() > 10 {
        (0..10).for_each(|i| d.send_packet(PacketType::Data, 9 - i));
        d.now += RTT;
        d.ack(d.sent);
        if *seen.last().expect("one") != d.cwnd() {
            seen.push(d.cwnd());
        }
    }
    // RFC 2861: half way to the ten used, each timeout of 200 ms.
    let want: Vec<u32> = std::iter::successors(Some(before), |&w| Some((w + 10) / 2)).take(seen.len()).collect();
    assert_eq!(seen, want);
    assert_eq!(d.now - Timestamp::ZERO < TimeDelta::from_secs(4), d.ssthresh().is_none());
}

#[test]
fn data_dropped_in_the_receive_buffer_take_one_each() {
    let mut d = with(plain()).grown_to(20);
    d.fill();
    let n = d.sent;
    // The RFC's example of section 11.7: 0, 160, 3, 162: the second and three more of code 2.
    d.data_dropped = vec![0, 160, 3, 162];
    d.ack_runs(n, &[(R, 20)]);
    assert_eq!((d.cwnd(), d.ssthresh()), (20 + 1 - 4, Some(17)), "and slow start ends");
    // The same news again.
    d.ack_runs(n, &[(R, 20)]);
    assert_eq!(d.cwnd(), 17);
    // With a mark both are taken (section 11.7.1).
    d.fill();
    d.data_dropped = vec![0xa1];
    d.ack_runs(d.sent, &[(R, 5), (M, 1), (R, 11)]);
    assert_eq!(d.cwnd(), 17 / 2 - 2);
    for _ in 0..3 {
        d.fill();
        d.data_dropped = vec![0xaf];
        d.ack_runs(d.sent, &[(R, 10)]);
    }
    assert_eq!(d.cwnd(), 1, "not below one");
}

#[test]
fn other_drop_codes() {
    for (code, want) in [(0, 21), (1, 10), (3, 10), (4, 10), (7, 10)] {
        let mut d = with(plain()).grown_to(20);
        d.fill();
        d.data_dropped = vec![1, 0x80 | code << 4];
        d.ack_runs(d.sent, &[(R, 20)]);
        assert_eq!(d.cwnd(), want, "Drop Code {code}");
        assert!(d.ssthresh().is_some(), "slow start has ended");
    }
}

#[test]
fn a_slow_receiver_stops_growth_for_a_round_trip() {
    let mut d = with(plain()).grown_to(20);
    d.fill();
    d.now += RTT;
    d.slow_receiver = true;
    d.ack(d.sent - 10);
    let cwnd = 20;
    assert_eq!((d.cwnd(), d.ssthresh()), (cwnd, Some(cwnd)), "slow start ends");
    d.slow_receiver = false;
    d.fill();
    d.now += RTT - ms(1);
    (0..5).for_each(|i| d.ack(d.sent - 4 + i));
    assert_eq!(d.cwnd(), cwnd);
    d.now += ms(2);
    d.round();
    assert_eq!(d.cwnd(), cwnd + 1);
}

#[test]
fn virtual_recovery_waits_for_packets_of_after_the_loss() {
    let run = |virtual_recovery| {
        let mut d = with(Config { virtual_recovery, ..plain() }).grown_to(45);
        d.fill();
        let n = d.sent;
        d.ack_runs(n - 40, &[(R, 3), (N, 1)]);
        assert_eq!(d.cwnd(), 22);
        // The 40 packets that were out are acknowledged.
        (n - 39..=n).for_each(|m| d.ack_runs(m, &[(R, 1)]));
        d.cwnd()
    };
    assert_eq!((run(false), run(true)), (23, 22));
}

#[test]
fn lost_and_marked_acknowledgements_raise_ack_ratio() {
    let mut d = with(plain()).grown_to(45);
    assert_eq!(d.s.ack_ratio(), Some(2));
    // An acknowledgement of the next window is lost.
    d.round();
    d.own += 1;
    d.round();
    d.round();
    assert_eq!(d.s.ack_ratio(), Some(4));
    // A mark on a packet without data counts, one with data does not.
    (d.ack_ecn, d.ack_type) = (Ecn::Ce, PacketType::DataAck);
    d.round();
    d.round();
    assert!(d.s.ack_ratio() <= Some(4));
    d.ack_type = PacketType::Ack;
    d.round();
    d.round();
    assert!(d.s.ack_ratio() >= Some(6));
    // A loss of data bounds it by the window's half.
    d.now += TimeDelta::from_secs(1);
    d.fill();
    d.now = d.s.poll_timeout().expect("data are out");
    d.s.on_timeout(d.now);
    assert_eq!(d.s.ack_ratio(), Some(1));
    let mut d = with(Config { ack_ratio_control: false, ..plain() });
    d.round();
    assert_eq!(d.s.ack_ratio(), None);
}

#[test]
fn data_of_the_other_end_are_no_lost_acknowledgements() {
    let run = |told: bool| {
        let mut d = with(plain()).grown_to(45);
        for _ in 0..6 {
            // Before each window's acknowledgements a DCCP-Data takes a number.
            d.own += 1;
            if told {
                d.s.on_unacknowledging_packet(d.now, Seq48::new(d.own), None);
            }
            d.round();
        }
        d.s.ack_ratio()
    };
    assert_eq!(run(true), Some(2));
    assert!(run(false) > Some(2));
}

#[test]
fn acknowledges_acknowledgements_once_a_window() {
    let mut d = with(plain());
    let mut wanted = 0;
    for _ in 0..400 {
        let first = d.sent + 1;
        while d.s.may_send(d.now, SIZE) == Permission::Now && d.sent < first + 40 {
            let wants = d.s.wants_ack_of_ack(d.now);
            wanted += u64::from(wants);
            d.send_packet(if wants { PacketType::DataAck } else { PacketType::Data }, 1_000);
        }
        d.now += RTT;
        (first..=d.sent).step_by(2).for_each(|n| d.ack((n + 1).min(d.sent)));
    }
    // Once for each window's worth of packets, none before there is anything to acknowledge.
    let windows = d.sent / u64::from(d.cwnd());
    assert!((windows..=windows * 3).contains(&wanted), "{wanted} in {windows}");
    let mut quiet = with(plain());
    (0..100).for_each(|_| quiet.send_packet(PacketType::Data, 0));
    assert!(!quiet.s.wants_ack_of_ack(quiet.now));
}

#[test]
fn bursts_are_bounded() {
    let mut d = with(Config::default());
    for _ in 0..40 {
        let first = d.sent + 1;
        let start = d.now;
        let mut at_once = 0;
        loop {
            match d.s.may_send(d.now, SIZE) {
                Permission::Now => {
                    at_once += 1;
                    d.send_packet(PacketType::Data, 1_000);
                }
                Permission::At(at) => {
                    assert!(at > d.now && at_once <= 10, "{at_once}");
                    (d.now, at_once) = (at, 0);
                }
                Permission::Blocked => break,
            }
        }
        // The whole window leaves within half a round trip.
        assert!(d.now - start <= RTT / 2 + ms(10), "{:?}", d.now - start);
        d.now = start + RTT;
        (first..=d.sent).for_each(|n| d.ack(n));
        if d.cwnd() > 100 {
            return;
        }
    }
    panic!("the window has not grown: {}", d.cwnd());
}

#[test]
fn an_end_that_only_acknowledges_keeps_nothing() {
    let mut d = with(plain());
    (0..100_000).for_each(|_| d.send_packet(PacketType::Ack, 0));
    assert_eq!((d.pipe(), d.s.poll_timeout(), d.s.history.len()), (0, None, 0));
    // With one data packet out it keeps them, up to a bound.
    d.send_packet(PacketType::Data, 0);
    (0..1_000_000).for_each(|_| d.send_packet(PacketType::Ack, 0));
    assert!(d.s.history.len() <= 1 << 17);
}

#[derive(Clone, Debug)]
enum Step {
    Send(PacketType),
    Ack(u64, Vec<u8>, Vec<u8>, bool),
    Pass(i64),
    Skip(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let any_type = prop::sample::select(&PacketType::ALL[..]);
    prop_oneof![
        8 => Just(Step::Send(PacketType::Data)),
        2 => any_type.prop_map(Step::Send),
        6 => (
            0u64..60,
            prop::collection::vec(any::<u8>(), 0..12),
            prop::collection::vec(any::<u8>(), 0..3),
            any::<bool>()
        ).prop_map(|(b, v, d, s)| Step::Ack(b, v, d, s)),
        3 => (0i64..900).prop_map(Step::Pass),
        1 => (0u64..3_000).prop_map(Step::Skip),
    ]
}

proptest! {
    /// Whatever is acknowledged, the books agree: pipe is the data packets out, and windows keep their bounds.
    #[test]
    fn nothing_breaks_it(steps in prop::collection::vec(step(), 1..300)) {
        let mut d = with(Config::default());
        for s in steps {
            match s {
                Step::Send(t) if t.is_data() => {
                    if d.s.may_send(d.now, SIZE) == Permission::Now {
                        d.send_packet(t, 0);
                    }
                }
                Step::Send(t) => d.send_packet(t, 0),
                Step::Ack(back, vector, dropped, slow) => {
                    d.own += 1 + back % 3;
                    d.s.on_acknowledgement(&Acknowledgement {
                        now: d.now,
                        sequence: Seq48::new(d.own),
                        packet_type: PacketType::Ack,
                        ndp_count: (back % 2 == 0).then_some(back),
                        acknowledged: Seq48::new((d.sent + 5).saturating_sub(back)),
                        ack_vector: &vector,
                        elapsed: Some(ms(back as i64)),
                        echo_rtt: None,
                        data_dropped: &dropped,
                        slow_receiver: slow,
                        ecn: Ecn::from_bits(back as u8),
                        options: Options::new(&[], PacketType::Ack),
                    });
                }
                Step::Pass(t) => {
                    d.now += ms(t);
                    if d.s.poll_timeout().is_some_and(|at| at <= d.now) {
                        d.s.on_timeout(d.now);
                    }
                }
                Step::Skip(n) => d.sent += n,
            }
            prop_assert!(d.s.poll_timeout().is_none_or(|at| at > d.now));
            prop_assert_eq!(d.s.poll_timeout().is_some(), d.pipe() > 0);
            prop_assert_eq!(d.s.history.count_out(), d.pipe());
            prop_assert!((1..=10_000).contains(&d.cwnd()));
            prop_assert!(d.ssthresh().is_none_or(|s| s >= 2));
            prop_assert!(d.s.ack_ratio().is_some_and(|r| u32::from(r) <= d.cwnd().div_ceil(2).max(2)));
        }
    }
}
