//! A [`Flow`] on a link of 1 Mbit/s, with and without each of three duties that a stack easily leaves out.
//!
//! ```text
//! cargo run --release -p weir-cc --example left_out
//! ```
//!
//! `docs/embed.md` has its table. The link takes 50 ms each way and holds 300 ms, for the first row 20 ms; the receiver
//! reports every 50 ms. `examples/embed.rs` shows how a stack is joined to a flow; this program shows why.

use std::collections::VecDeque;
use std::error::Error;
use weir_cc::cue::{QueueState, SentPacket};
use weir_cc::units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};
use weir_cc::{Flow, Limits, Pacer, PacerDecision, Registry, ReportedPacket, Setup};

/// The duties of a stack.
#[derive(Clone, Copy)]
struct Duties {
    /// Lost packets are in the reports, with no arrival.
    losses: bool,
    /// Probe clusters, and padding where the controller wants more sent than there is media, are sent.
    probes: bool,
    /// The controller is informed of the queue before the pacer.
    queue: bool,
}

const ALL: Duties = Duties { losses: true, probes: true, queue: true };
const LINK: DataRate = DataRate::from_kbps(1_000);
const ONE_WAY: TimeDelta = TimeDelta::from_millis(50);
const PACKET: DataSize = DataSize::from_bytes(1_000);
const PADDING: DataSize = DataSize::from_bytes(250);
const SECONDS: i64 = 20;

/// Result of a call: its last target, the rate that arrived in the last second, both in kbit/s, and the packets lost.
struct Outcome {
    target: f64,
    arrived: f64,
    lost: u64,
}

fn call(controller: &str, longest_queue: TimeDelta, duties: Duties) -> Result<Outcome, Box<dyn Error>> {
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(3) };
    let start_rate = DataRate::from_kbps(300);
    let setup = Setup { limits, start_rate, now: Timestamp::ZERO, seed: 1, params: vec![] };
    let mut flow = Flow::by_name(&Registry::builtin(), controller, &setup)?;
    let mut pacer = Pacer::new(&flow.target(), Timestamp::ZERO);
    // Packets before the pacer, bytes of frames that do not fill one yet, and packets and reports under way.
    let (mut waiting, mut rest) = (0u64, DataSize::ZERO);
    let mut wire: VecDeque<(u64, DataSize, Option<Timestamp>)> = VecDeque::new();
    let mut reports: VecDeque<(Timestamp, Vec<ReportedPacket>)> = VecDeque::new();
    let mut free_at = Timestamp::ZERO;
    let (mut arrived, mut lost) = (DataSize::ZERO, 0);

    for ms in 0..SECONDS * 1_000 {
        let now = Timestamp::from_millis(ms);
        if flow.poll_timeout().is_some_and(|(at, _)| at <= now) {
            flow.on_timeout(now);
        }
        // The encoder: a frame each 33 ms.
        if ms % 33 == 0 {
            rest += flow.target().media_rate.size_in(TimeDelta::from_millis(33));
            let packets = rest.as_bytes() / PACKET.as_bytes();
            rest = DataSize::from_bytes(rest.as_bytes() % PACKET.as_bytes());
            waiting += packets;
            if duties.queue {
                let [added, queued] = [packets, waiting].map(|n| DataSize::from_bytes(n * PACKET.as_bytes()));
                flow.on_queue(&QueueState { now, added, queued, oldest_age: TimeDelta::ZERO });
            }
        }
        pacer.set_target(&flow.target(), now);
        while let Some(cluster) = flow.poll_probe(now).filter(|_| duties.probes) {
            pacer.add_probe(cluster, now);
        }
        loop {
            if waiting > 0 && !flow.has_room_for(PACKET) {
                break;
            }
            let (size, is_padding, probe) = match pacer.poll(now, waiting > 0) {
                PacerDecision::Media { probe } if waiting > 0 => (PACKET, false, probe),
                PacerDecision::Padding { probe } if duties.probes => (PADDING, true, probe),
                _ => break,
            };
            waiting -= u64::from(!is_padding);
            let queued = DataSize::from_bytes(if duties.queue { waiting * PACKET.as_bytes() } else { 0 });
            let sequence = flow.next();
            pacer.on_sent(now, size, is_padding, probe);
            flow.on_sent(SentPacket { is_padding, probe, queued, ..SentPacket::media(now, sequence, size) });
            let arrival = (free_at.saturating_since(now) <= longest_queue).then(|| {
                free_at = free_at.max(now) + LINK.time_for(size).unwrap_or(TimeDelta::ZERO);
                free_at + ONE_WAY
            });
            lost += u64::from(arrival.is_none());
            wire.push_back((sequence, size, arrival));
        }
        // The receiver.
        if ms % 50 == 49 {
            let mut report = Vec::new();
            while wire.front().is_some_and(|p| p.2.is_none_or(|at| at <= now))
                && let Some((sequence, size, at)) = wire.pop_front()
            {
                if at.is_some() && ms >= (SECONDS - 1) * 1_000 {
                    arrived += size;
                }
                if at.is_some() || duties.losses {
                    let arrival = at.map(|at| RemoteTimestamp::from_micros(at.as_micros()));
                    report.push(ReportedPacket { sequence, arrival, ecn: Ecn::NotEct });
                }
            }
            reports.push_back((now + ONE_WAY, report));
        }
        while reports.front().is_some_and(|r| r.0 <= now)
            && let Some((_, report)) = reports.pop_front()
        {
            flow.on_reports(now, &report, |_| TimeDelta::ZERO);
        }
    }
    let arrived = arrived.as_bytes() as f64 * 8.0 / 1e3;
    Ok(Outcome { target: flow.target().media_rate.as_kbps_f64(), arrived, lost })
}

fn main() -> Result<(), Box<dyn Error>> {
    let (long, short) = (TimeDelta::from_millis(300), TimeDelta::from_millis(20));
    let cases = [
        ("losses in reports", "sluice", short, Duties { losses: false, ..ALL }),
        ("probes and padding", "gcc", long, Duties { probes: false, ..ALL }),
        ("probes and padding", "bbr-rtc", long, Duties { probes: false, ..ALL }),
        ("the queue", "ndtc", long, Duties { queue: false, ..ALL }),
    ];
    println!("After {SECONDS} s, target and arrived in kbit/s, and packets lost in all, without and with:");
    for (duty, controller, queue, without) in cases {
        let [a, b] = [call(controller, queue, without)?, call(controller, queue, ALL)?];
        println!(
            "{duty:24} {controller:8} {:6.0} {:6.0} {:6} | {:6.0} {:6.0} {:6}",
            a.target, a.arrived, a.lost, b.target, b.arrived, b.lost
        );
    }
    Ok(())
}
