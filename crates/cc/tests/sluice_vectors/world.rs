//! A call over a modelled link, written as a vector: frames at the media rate, a pacer, a receiver that reports.

use super::cases::{Act, Case};
use super::link::{Link, at};
use super::player::{self, controller, outputs};
use core::fmt::Write;
use std::collections::VecDeque;
use weir_cc::cue::{CapacityNotice, EstimateKind, PacketResult, ReceiverEstimate, SentPacket, TransportFeedback};
use weir_cc::{Controller, Coupled, Cue, Limits, ReportedPacket, Sender, SentHistory, Setup};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

const TICK: i64 = 1_000;
/// Frames each 33 ms.
const FRAME: i64 = 33_333;
/// Begin of calls, in µs: clocks begin anywhere.
pub(super) const START: i64 = 7_000_000;
/// Offset of the receiver's clock, in µs.
const OFFSET: i64 = 1_234_567_891;
const RETURN: i64 = 25_019;
const GIVE_UP: TimeDelta = TimeDelta::from_secs(3);
/// Outputs of each file; cases add others.
const OUTPUTS: [&str; 11] = [
    "media_bps",
    "pacing_bps",
    "timeout_ns",
    "mode",
    "capacity_bps",
    "queue_ms",
    "queue_expected_ms",
    "queue_wanted_ms",
    "busy_share",
    "use_share",
    "rounds",
];

/// A packet at the receiver or on its way there.
struct Flying {
    sequence: u64,
    arrival: Option<i64>,
    is_ce: bool,
    is_reported_lost: bool,
}

/// A message on its way back.
struct Report {
    at: i64,
    packets: Vec<ReportedPacket>,
    /// Time for which the newest packet received had been held.
    held: i64,
}

struct World<'a> {
    case: &'a Case,
    link: Link,
    sluice: Sender,
    names: Vec<String>,
    history: SentHistory,
    flying: VecDeque<Flying>,
    reports: VecDeque<Report>,
    results: Vec<PacketResult>,
    sequence: u64,
    now: i64,
    /// Bits that frames have for packets, packets in the pacer, and when the last one left.
    credit: f64,
    waiting: u32,
    /// Bytes in the pacer at the frame before.
    waited: u64,
    left_at: i64,
    frame_at: i64,
    report_at: i64,
    acts: VecDeque<(f64, Act)>,
    /// The file's events, and those packets sent that it does not have yet.
    text: String,
    sent: Vec<i64>,
}

fn time(us: i64) -> Timestamp {
    Timestamp::from_micros(START + us)
}

/// The file of a case.
pub(super) fn text(case: &Case) -> String {
    let setup = Setup {
        limits: Limits { floor: DataRate::from_bps(case.floor), ceiling: DataRate::from_bps(case.ceiling) },
        start_rate: DataRate::from_bps(case.start),
        now: time(0),
        seed: 1,
        params: case.params.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
    };
    let sluice = controller(&setup).expect("sound");
    let names: Vec<String> = OUTPUTS.iter().chain(case.outputs).map(|n| (*n).to_owned()).collect();
    let begin = written(&outputs(&sluice, &names));
    let mut world = World {
        case,
        link: Link::new(&case.path),
        sluice,
        names,
        history: SentHistory::new(),
        flying: VecDeque::new(),
        reports: VecDeque::new(),
        results: Vec::new(),
        sequence: 0,
        now: 0,
        credit: 0.0,
        waiting: 0,
        waited: 0,
        left_at: 0,
        frame_at: 4_000,
        report_at: case.feedback,
        acts: case.acts.clone().into(),
        text: String::new(),
        sent: Vec::new(),
    };
    while world.step() {}
    world.flush();
    let list = |of: &[&str]| of.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(", ");
    let params: Vec<String> = case.params.iter().map(|(name, value)| format!("{name:?}: {value:?}")).collect();
    let outputs: Vec<&str> = world.names.iter().map(String::as_str).collect();
    format!(
        "{{\n\"name\": {:?},\n\"description\": {:?},\n\"sections\": [{}],\n\"requires\": [{}],\n\"tick_ns\": {TICK},\n\
         \"clock_offset\": {OFFSET},\n\"size\": {},\n\
         \"config\": {{\"start\": {START}, \"floor_bps\": {}, \"ceiling_bps\": {}, \"start_bps\": {}, \"params\": {{{}}}}},\n\
         \"outputs\": [{}],\n\"begin\": {begin},\n\"events\": [\n{}\n]\n}}\n",
        case.name,
        case.description,
        list(case.sections),
        list(case.requires),
        case.size,
        case.floor,
        case.ceiling,
        case.start,
        params.join(", "),
        list(&outputs),
        world.text.trim_end_matches(",\n"),
    )
}

/// Outputs as JSON: integers whole, other values with seven digits.
fn written(values: &[Option<f64>]) -> String {
    let one = |v: &Option<f64>| match v {
        None => "null".to_owned(),
        Some(v) if libm::floor(*v) == *v => format!("{v:.0}"),
        Some(v) => {
            let digits = format!("{v:.6e}").parse::<f64>().expect("a number");
            format!("{digits}")
        }
    };
    format!("[{}]", values.iter().map(one).collect::<Vec<_>>().join(","))
}

impl World<'_> {
    fn now_rate(&self) -> f64 {
        self.sluice.target().media_rate.as_bps_f64()
    }

    fn bits(&self) -> f64 {
        8.0 * self.case.size as f64
    }

    /// When the next packet leaves the pacer.
    fn release_at(&self) -> Option<i64> {
        let pacing = self.sluice.target().pacing_rate.as_bps_f64();
        (self.waiting > 0).then(|| (self.left_at + (self.bits() * 1e6 / pacing) as i64).max(self.frame_at - FRAME))
    }

    /// The next thing that happens; `false` at the end.
    fn step(&mut self) -> bool {
        let due = self.sluice.poll_timeout().map(|(at, _)| (at - time(0)).as_nanos().saturating_add(999) / 1_000);
        let act = self.acts.front().map(|(s, _)| (s * 1e6) as i64);
        let report = self.reports.front().map(|r| r.at);
        let release = self.release_at();
        let all = [due, act, report, release, Some(self.frame_at), Some(self.report_at)];
        let now = all.iter().flatten().copied().min().unwrap_or(i64::MAX).max(self.now);
        if now > (self.case.seconds * 1e6) as i64 {
            return false;
        }
        self.now = now;
        let is = |when: Option<i64>| when.is_some_and(|when| when <= now);
        if is(due) {
            self.sluice.on_timeout(time(now));
            self.record(&format!("\"t\",{}", START + now));
        } else if is(act) {
            self.act(now);
        } else if is(report) {
            self.feedback(now);
        } else if is(release) {
            self.send(now);
        } else if is(Some(self.frame_at)) {
            self.frame(now);
        } else {
            self.report(now);
        }
        true
    }

    fn frame(&mut self, now: i64) {
        self.frame_at += FRAME;
        let waiting = u64::from(self.waiting) * self.case.size;
        if self.case.has_queue && waiting != self.waited {
            self.waited = waiting;
            self.sluice.on_queue(&player::waiting(time(now), DataSize::from_bytes(waiting)));
            self.record(&format!("\"q\",{},{waiting}", START + now));
        }
        let even = at(&self.case.source, now) * self.now_rate() * FRAME as f64 * 1e-6;
        // Large and small frames in turn, by groups of eight.
        let factor = if self.case.is_bursty && (now / FRAME / 8) % 2 == 0 { 1.7 } else { 1.0 };
        let factor = if self.case.is_bursty && factor == 1.0 { 0.3 } else { factor };
        self.credit += even * factor;
        while self.credit >= self.bits() {
            self.credit -= self.bits();
            self.waiting += 1;
        }
    }

    fn send(&mut self, now: i64) {
        (self.waiting, self.left_at) = (self.waiting - 1, now);
        let passed = self.link.send(now, self.bits());
        let sequence = self.sequence;
        self.sequence += 1;
        let (arrival, is_ce) = (passed.arrival, passed.is_ce);
        self.flying.push_back(Flying { sequence, arrival, is_ce, is_reported_lost: false });
        let packet = SentPacket::media(time(now), sequence, DataSize::from_bytes(self.case.size));
        self.history.on_sent(&packet);
        self.sluice.on_packet_sent(&packet);
        self.sent.push(now);
    }

    /// The receiver makes a message: packets up to the newest that has arrived, and those that come after their loss was reported.
    fn report(&mut self, now: i64) {
        self.report_at += self.case.feedback;
        let has_come = |f: &Flying| f.arrival.is_some_and(|at| at <= now);
        let Some(newest) = self.flying.iter().filter(|f| has_come(f) && !f.is_reported_lost).map(|f| f.sequence).max()
        else {
            return;
        };
        let (mut packets, mut last) = (vec![], 0);
        for f in &mut self.flying {
            let come = has_come(f);
            let is_new = if f.is_reported_lost { come } else { f.sequence <= newest };
            if !is_new {
                continue;
            }
            let clock = &self.case.clock;
            let by_clock = |when: i64| RemoteTimestamp::from_micros(START + when + OFFSET + at(clock, when) as i64);
            let arrival = f.arrival.filter(|_| come);
            last = arrival.unwrap_or(last);
            let ecn = if f.is_ce && come { Ecn::Ce } else { Ecn::Ect1 };
            packets.push(ReportedPacket { sequence: f.sequence, arrival: arrival.map(by_clock), ecn });
            f.is_reported_lost = !come;
        }
        self.flying.retain(|f| f.arrival.is_some_and(|at| at > now) || (f.arrival.is_none() && f.sequence > newest));
        if self.link.random() < at(&self.case.mute, now) {
            return;
        }
        let slow = (at(&self.case.slow_return, now) * 1e3) as i64;
        self.reports.push_back(Report { at: now + RETURN + slow, packets, held: now - last });
    }

    fn feedback(&mut self, now: i64) {
        let report = self.reports.pop_front().expect("there is one");
        self.history.give_up_before(time(now) - GIVE_UP);
        self.history.resolve(report.packets.iter().copied(), &mut self.results);
        let newest = self.results.iter().rfind(|r| r.arrival.is_some());
        let rtt = newest.map(|r| time(now).saturating_since(r.departure) - TimeDelta::from_micros(report.held));
        let bytes_in_flight = self.history.bytes_in_flight();
        let packets = &self.results[..];
        self.sluice.on_cue(&Cue::TransportFeedback(TransportFeedback {
            now: time(now),
            packets,
            bytes_in_flight,
            rtt,
        }));
        let items = items(packets);
        let first = packets.first().map_or(0, |p| p.sequence);
        let rtt = rtt.map_or("null".to_owned(), |rtt| rtt.as_micros().to_string());
        self.record(&format!("\"f\",{},{rtt},{},{first},[{items}]", START + now, bytes_in_flight.as_bytes()));
    }

    fn act(&mut self, now: i64) {
        let Some((_, act)) = self.acts.pop_front() else { return };
        if matches!(act, Act::Empty | Act::Lost) {
            let newest = ReportedPacket { sequence: self.sequence.saturating_sub(1), arrival: None, ecn: Ecn::NotEct };
            let packets = if matches!(act, Act::Lost) && self.sequence > 0 { vec![newest] } else { vec![] };
            for f in &mut self.flying {
                f.is_reported_lost |= packets.iter().any(|p| p.sequence == f.sequence);
            }
            self.reports.push_front(Report { at: now, packets, held: 0 });
            return self.feedback(now);
        }
        let (at, tick) = (time(now), START + now);
        let kind = EstimateKind::Remb;
        let words = match act {
            Act::Limits(floor, ceiling) => {
                let limits = Limits { floor: DataRate::from_bps(floor), ceiling: DataRate::from_bps(ceiling) };
                self.sluice.on_limits(limits, at);
                format!("\"l\",{tick},{floor},{ceiling}")
            }
            Act::Request(Some(bps)) => {
                let rate = DataRate::from_bps(bps);
                self.sluice.on_cue(&Cue::ReceiverEstimate(ReceiverEstimate { now: at, rate, kind }));
                format!("\"r\",{tick},{bps}")
            }
            Act::Request(None) => {
                self.sluice.on_cue(&Cue::ReceiverEstimate(ReceiverEstimate::withdrawn(at, kind)));
                format!("\"r\",{tick},null")
            }
            Act::Notice(bps) => {
                self.sluice.on_cue(&Cue::CapacityNotice(CapacityNotice { now: at, rate: DataRate::from_bps(bps) }));
                format!("\"n\",{tick},{bps}")
            }
            Act::Empty | Act::Lost => unreachable!("they are messages"),
            Act::Coupled(increase) => {
                self.sluice.on_coupled(&Coupled { rate: None, increase }, at);
                format!("\"c\",{tick},{increase}")
            }
        };
        self.record(&words);
    }

    fn record(&mut self, words: &str) {
        self.flush();
        let outputs = written(&outputs(&self.sluice, &self.names));
        writeln!(self.text, "[{words},{outputs}],").expect("a string");
    }

    /// Writes the packets sent since the last event.
    fn flush(&mut self) {
        let Some(&first) = self.sent.first() else { return };
        let number = self.sequence - self.sent.len() as u64;
        let gaps: Vec<String> = self.sent.windows(2).map(|w| (w[1] - w[0]).to_string()).collect();
        writeln!(self.text, "[\"s\",{},{number},[{}]],", START + first, gaps.join(",")).expect("a string");
        self.sent.clear();
    }
}

/// Packets of a message as the file has them.
fn items(packets: &[PacketResult]) -> String {
    let mut next = packets.first().map_or(0, |p| p.sequence);
    let one = |p: &PacketResult| {
        let delay = p.arrival.map(|at| (at.as_nanos() - p.departure.as_nanos()) / TICK - OFFSET);
        let delay = delay.map_or("null".to_owned(), |d| d.to_string());
        let flags = u8::from(p.ecn == Ecn::Ce) | u8::from(p.was_lost) << 1;
        let is_plain = p.sequence == next && flags == 0;
        next = p.sequence + 1;
        if is_plain { delay } else { format!("[{},{delay},{flags}]", p.sequence) }
    };
    packets.iter().map(one).collect::<Vec<_>>().join(",")
}
