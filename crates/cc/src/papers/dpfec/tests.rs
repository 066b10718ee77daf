use super::*;
use crate::cue::PacketResult;
use crate::testing::{self, Kbps};
use weir_units::{DataSize, Ecn, RemoteTimestamp};

const KBPS: Kbps = Kbps { floor: 100, start: 30_000, ceiling: 40_000 };

/// 2,500 packets per second with feedback every 10 ms.
struct Stream {
    sender: DpFec,
    now_ms: i64,
    sequence: u64,
}

impl Stream {
    fn new(params: &[(&str, f64)]) -> Self {
        Self { sender: KBPS.sender(params), now_ms: 0, sequence: 0 }
    }

    /// Runs for `syn_times`; `lost` gives, for each of them counted from here, how many of its first packets are lost.
    fn run(&mut self, syn_times: i64, lost: impl Fn(i64) -> usize) {
        for n in 0..syn_times {
            let mut packets = Vec::new();
            for k in 0..25 {
                let now = Timestamp::from_millis(self.now_ms) + TimeDelta::from_micros(400) * k as i64;
                self.sender.on_packet_sent(&SentPacket::media(now, self.sequence, DataSize::from_bytes(1_500)));
                let arrival = RemoteTimestamp::from_nanos(now.as_nanos());
                packets.push(PacketResult {
                    sequence: self.sequence,
                    departure: now,
                    arrival: (k >= lost(n)).then_some(arrival),
                    size: DataSize::from_bytes(1_500),
                    ecn: Ecn::Ect0,
                    probe: 0,
                    was_lost: false,
                });
                self.sequence += 1;
            }
            self.now_ms += 10;
            let now = Timestamp::from_millis(self.now_ms);
            let feedback = TransportFeedback { now, packets: &packets, bytes_in_flight: DataSize::ZERO, rtt: None };
            self.sender.on_cue(&Cue::TransportFeedback(feedback));
            if self.sender.poll_timeout().is_some_and(|(at, _)| at <= now) {
                self.sender.on_timeout(now);
            }
        }
    }

    fn window(&self) -> u8 {
        match self.sender.target().repair {
            RepairPlan::ReedSolomon { block: 127, repair } => repair,
            other => panic!("{other:?}"),
        }
    }
    fn metric(&self, wanted: &str) -> f64 {
        testing::metric(&self.sender, wanted)
    }
}

#[test]
fn without_loss_the_window_grows_by_one_a_res_time_up_to_its_bound() {
    let mut s = Stream::new(&[]);
    assert_eq!(s.window(), 0);
    s.run(15, |_| 0);
    assert_eq!(s.window(), 0);
    s.run(1, |_| 0);
    assert_eq!(s.window(), 1);
    s.run(16 * 61, |_| 0);
    assert_eq!(s.window(), 62);
    s.run(16 * 10, |_| 0);
    assert_eq!(s.window(), 63);
    assert!(s.metric("loss_interval_ms").is_nan());
    assert!((s.metric("packets_per_s") - 2_500.0).abs() < 1e-6);
}

#[test]
fn the_media_rate_stands_and_the_pacer_has_room_for_both() {
    let mut s = Stream::new(&[]);
    s.run(16 * 70, |_| 0);
    let t = s.sender.target();
    assert_eq!(t.media_rate, DataRate::from_mbps(30));
    // 2.5 * 30 * 127 / 64.
    assert!((t.pacing_rate.as_kbps_f64() - 148_828.1).abs() < 1.0, "{}", t.pacing_rate);
    s.sender.on_limits(Limits { floor: DataRate::ZERO, ceiling: DataRate::from_mbps(20) }, Timestamp::ZERO);
    assert_eq!(s.sender.target().media_rate, DataRate::from_mbps(20));
}

#[test]
fn steady_loss_is_no_congestion_and_more_of_it_is() {
    let mut s = Stream::new(&[]);
    // A loss event every 100 ms, of one or of many packets.
    s.run(16 * 20, |n| if n % 10 == 0 { 1 + n as usize % 7 } else { 0 });
    assert_eq!((s.window(), s.metric("loss_interval_ms"), s.metric("impact")), (20, 100.0, 0.0));
    // Then every 20 ms: after one more of 100 ms 7 samples take LI to 20 + 80 * 0.9^7 = 58.26 ms.
    s.run(16, |n| if n % 2 == 0 { 1 } else { 0 });
    let interval = s.metric("loss_interval_ms");
    assert!((58.2..58.3).contains(&interval), "{interval}");
    assert!(s.metric("impact") > 0.1);
    assert_eq!(s.window(), 16);
}

#[test]
fn a_threshold_of_three_tenths_bears_more() {
    let run = |threshold| {
        let mut s = Stream::new(&[("threshold", threshold)]);
        s.run(16 * 20, |n| if n % 10 == 0 { 1 } else { 0 });
        // Two samples of 20 ms: LI falls by 80 * 0.19 = 15.2 ms. At 84.8 ms the most acceptable is 8.3 ms at 0.1, 25 ms
        // at 0.3.
        s.run(16, |n| if n <= 4 && n % 2 == 0 { 1 } else { 0 });
        s.window()
    };
    assert_eq!((run(0.1), run(0.3)), (16, 21));
}

#[test]
fn a_loss_interval_below_its_least_is_congestion_at_once() {
    let mut s = Stream::new(&[("threshold", 1_000.0)]);
    s.run(16 * 20, |n| if n % 4 == 0 { 1 } else { 0 });
    assert_eq!((s.window(), s.metric("loss_interval_ms")), (20, 40.0));
    // 40 to 38, 36.2, 34.58: the third is below 35 ms.
    s.run(5, |n| if n % 2 == 0 { 1 } else { 0 });
    assert_eq!(s.window(), 20, "the loss of 40 ms ago and two of 20");
    s.run(2, |n| if n == 1 { 1 } else { 0 });
    assert_eq!(s.window(), 16);
    // Each further loss event: 12.8, 10.4, 8 and 6.4, rounded; the end of the ResTime adds nothing.
    s.run(9, |n| if n % 2 == 1 { 1 } else { 0 });
    assert_eq!(s.window(), 6);
}

#[test]
fn the_window_rounds_to_the_nearest_so_that_two_packets_remain() {
    // 0.8 x 3 = 2.4 and 0.8 x 2 = 1.6; 0.8 x 1 stays 1.
    for (before, after) in [(3, 2), (2, 2), (1, 1)] {
        let mut s = Stream::new(&[]);
        s.run(16 * before, |_| 0);
        assert_eq!(i64::from(s.window()), before);
        s.run(40, |_| 1);
        assert_eq!(s.window(), after);
    }
    // A beta of 0.2 reaches zero.
    let mut s = Stream::new(&[("beta", 0.2)]);
    s.run(16 * 2, |_| 0);
    s.run(40, |_| 1);
    assert_eq!(s.sender.target().repair, RepairPlan::ReedSolomon { block: 127, repair: 0 });
}

#[test]
fn silence_does_not_open_the_window() {
    let mut s = Stream::new(&[]);
    s.run(16 * 5, |_| 0);
    for n in 1..20 {
        s.sender.on_timeout(Timestamp::from_millis(800 + 160 * n));
    }
    assert_eq!(s.window(), 5);
}

#[test]
fn the_window_stays_below_the_block() {
    let mut s: DpFec = KBPS.sender(&[("block", 2.0), ("max_window", 200.0)]);
    assert_eq!(s.max_window(), 1);
    for n in 1..10 {
        s.heard = true;
        s.on_timeout(Timestamp::from_millis(160 * n));
    }
    assert_eq!(s.target().repair, RepairPlan::ReedSolomon { block: 2, repair: 1 });
}
