//! A controller with the packets it waits for: events in the caller's numbers become cues.

use crate::failure::{Failure, Status};
use crate::names::SentNumbers;
use crate::reader::Reader;
use crate::runs::Runs;
use crate::types::{
    PacketReport, SentPacket as CSent, Setup as CSetup, Statistics, WEIR_SENT_HAS_RTP, WEIR_SENT_HAS_TRANSPORT_NUMBER,
    WEIR_SENT_PADDING, WEIR_SENT_REPAIR, WEIR_SENT_RETRANSMISSION,
};
use weir_cc::cue::{PacketResult, QueueState, SentPacket};
use weir_cc::tunable::hint;
use weir_cc::{Limits, ReportedPacket, Setup};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

/// Latest time accepted, in ns, either way from zero: 146 years, so that sums of times stay in range.
const MAX_TIME: i64 = i64::MAX / 2;
/// Largest UDP payload, in bytes.
const MAX_BYTES: u32 = 65_535;

/// A time of the caller's clock.
pub(crate) fn time(field: &str, ns: i64) -> Result<Timestamp, Failure> {
    if (0..=MAX_TIME).contains(&ns) {
        return Ok(Timestamp::from_nanos(ns));
    }
    Err(Failure::value(field, ns, "0 to 4611686018427387903 ns of a clock that begins at or above 0"))
}
/// A span that may be unknown, which negative numbers mean.
pub(crate) fn span(field: &str, ns: i64) -> Result<Option<TimeDelta>, Failure> {
    if ns > MAX_TIME {
        return Err(Failure::value(field, ns, "at most 4611686018427387903 ns"));
    }
    Ok((ns >= 0).then(|| TimeDelta::from_nanos(ns)))
}
pub(crate) fn limits(floor_bps: u64, ceiling_bps: u64) -> Result<Limits, Failure> {
    if floor_bps > ceiling_bps {
        return Err(Failure::value("floor_bps", floor_bps, &format!("at most ceiling_bps, {ceiling_bps}")));
    }
    Ok(Limits { floor: DataRate::from_bps(floor_bps), ceiling: DataRate::from_bps(ceiling_bps) })
}

/// The object behind a controller handle.
pub(crate) struct Flow {
    pub inner: weir_cc::Flow,
    pub names: SentNumbers,
    pub reader: Reader,
    /// If the controller wants run lengths.
    pub runs: Option<Box<Runs>>,
    pub malformed: u64,
    /// Reused between reports.
    reported: Vec<ReportedPacket>,
}

impl Flow {
    pub(crate) fn new(name: &str, params: &str, setup: &CSetup) -> Result<Self, Failure> {
        let setup_of = Setup {
            limits: limits(setup.floor_bps, setup.ceiling_bps)?,
            start_rate: DataRate::from_bps(setup.start_bps),
            now: time("now_ns", setup.now_ns)?,
            seed: setup.seed,
            params: crate::params::parse(params)?,
        };
        let registry = crate::policies::registry();
        let refused = |e| crate::params::refused(&e, &registry);
        let spec = registry.find(name).map_err(refused)?;
        let wants_runs = spec.reports.is_some_and(|r| r.extended);
        let pair = registry.make(name, &setup_of).map_err(refused)?;
        Ok(Self {
            inner: weir_cc::Flow::new(pair.sender, setup_of.now),
            names: SentNumbers::default(),
            reader: Reader::new(setup.ntp_zero, setup.rtp_clock_hz),
            runs: wants_runs.then(Box::default),
            malformed: 0,
            reported: Vec::new(),
        })
    }

    /// The controller's time, which does not go back: an earlier time counts as that of the last event.
    pub(crate) fn advance(&mut self, now_ns: i64) -> Result<Timestamp, Failure> {
        Ok(self.inner.advance(time("now_ns", now_ns)?))
    }

    /// A packet has been sent. Returns its number.
    pub(crate) fn sent(&mut self, p: &CSent) -> Result<u64, Failure> {
        const KNOWN: u32 = WEIR_SENT_PADDING
            | WEIR_SENT_REPAIR
            | WEIR_SENT_RETRANSMISSION
            | WEIR_SENT_HAS_TRANSPORT_NUMBER
            | WEIR_SENT_HAS_RTP;
        if p.flags & !KNOWN != 0 {
            return Err(Failure::value("flags", format_args!("{:#x}", p.flags), "an or of WEIR_SENT_ flags"));
        }
        if !(1..=MAX_BYTES).contains(&p.bytes) {
            return Err(Failure::value("bytes", p.bytes, "1 to 65535"));
        }
        let now = self.advance(p.now_ns)?;
        let has = |flag| p.flags & flag != 0;
        let number = self.inner.next();
        if has(WEIR_SENT_HAS_RTP) {
            self.names.add_rtp(p.ssrc, p.rtp_sequence, number)?;
        }
        if has(WEIR_SENT_HAS_TRANSPORT_NUMBER) {
            self.names.add_transport(p.transport_number, number);
        }
        let packet = SentPacket {
            is_padding: has(WEIR_SENT_PADDING),
            is_repair: has(WEIR_SENT_REPAIR),
            is_retransmission: has(WEIR_SENT_RETRANSMISSION),
            probe: p.probe,
            queued: DataSize::from_bytes(p.queued_bytes),
            ..SentPacket::media(now, number, DataSize::from_bytes(p.bytes.into()))
        };
        if let Some(runs) = &mut self.runs {
            runs.on_sent(&packet);
        }
        self.inner.on_sent(packet);
        Ok(number)
    }

    /// Per-packet feedback in the caller's structs. `held` is how long the newest packet waited for the report.
    pub(crate) fn feedback(
        &mut self,
        now_ns: i64,
        packets: impl Iterator<Item = PacketReport>,
        held: Option<TimeDelta>,
    ) -> Result<(), Failure> {
        let now = time("now_ns", now_ns)?;
        let mut reported = self.take_reported();
        for (i, p) in packets.enumerate() {
            let arrival = match p.received {
                0 => None,
                1 if (-MAX_TIME..=MAX_TIME).contains(&p.arrival_ns) => Some(RemoteTimestamp::from_nanos(p.arrival_ns)),
                1 => return Err(at(i, Failure::value("arrival_ns", p.arrival_ns, "within 146 years of 0"))),
                other => return Err(at(i, Failure::value("received", other, "0 or 1"))),
            };
            if p.ecn > 3 {
                return Err(at(i, Failure::value("ecn", p.ecn, "0 to 3")));
            }
            reported.push(ReportedPacket { sequence: p.number, arrival, ecn: Ecn::from_bits(p.ecn) });
        }
        let now = self.advance(now.as_nanos())?;
        self.report(now, &reported, |_| held.unwrap_or(TimeDelta::ZERO));
        self.give_back(reported);
        Ok(())
    }

    /// Matches reports to the packets sent and passes them to the controller. `held` gives the time between the newest
    /// packet's arrival and the report.
    pub(crate) fn report(
        &mut self,
        now: Timestamp,
        reported: &[ReportedPacket],
        held: impl Fn(&PacketResult) -> TimeDelta,
    ) {
        self.inner.on_reports(now, reported, held);
    }

    /// The list for reports, empty.
    pub(crate) fn take_reported(&mut self) -> Vec<ReportedPacket> {
        let mut reported = std::mem::take(&mut self.reported);
        reported.clear();
        reported
    }
    pub(crate) fn give_back(&mut self, reported: Vec<ReportedPacket>) {
        self.reported = reported;
    }

    pub(crate) fn set_limits(&mut self, floor_bps: u64, ceiling_bps: u64, now_ns: i64) -> Result<(), Failure> {
        let limits = limits(floor_bps, ceiling_bps)?;
        let now = self.advance(now_ns)?;
        self.inner.on_limits(limits, now);
        Ok(())
    }

    pub(crate) fn on_queue(&mut self, now_ns: i64, added: u64, queued: u64, oldest_age: i64) -> Result<(), Failure> {
        let oldest_age = span("oldest_age_ns", oldest_age)?.unwrap_or(TimeDelta::ZERO);
        let now = self.advance(now_ns)?;
        let (added, queued) = (DataSize::from_bytes(added), DataSize::from_bytes(queued));
        self.inner.on_queue(&QueueState { now, added, queued, oldest_age });
        Ok(())
    }

    /// Runs the timeouts that are due.
    pub(crate) fn on_timeout(&mut self, now_ns: i64) -> Result<(), Failure> {
        let now = self.advance(now_ns)?;
        self.inner.on_timeout(now);
        Ok(())
    }

    pub(crate) fn statistics(&self, size: u32) -> Statistics {
        let counters = self.inner.counters();
        Statistics {
            size,
            reserved: 0,
            rtt_ns: self.inner.rtt().map_or(-1, TimeDelta::as_nanos),
            bytes_in_flight: self.inner.bytes_in_flight().as_bytes(),
            sent: self.inner.next(),
            unknown: counters.unknown,
            late: counters.late,
            duplicate: counters.duplicate,
            unreported: counters.unreported,
            malformed: self.malformed,
        }
    }

    /// An internal value by name.
    pub(crate) fn metric(&self, name: &str) -> Result<f64, Failure> {
        let (mut found, mut names) = (None, Vec::new());
        self.inner.metrics(&mut |known, value| {
            names.push(known);
            if known == name {
                found = Some(value);
            }
        });
        found.ok_or_else(|| {
            let hint =
                if names.is_empty() { "; this controller has none".into() } else { hint(name, names.into_iter()) };
            Failure::new(Status::UnknownName, format!("no metric is named `{name}`{hint}"))
        })
    }
}

fn at(index: usize, failure: Failure) -> Failure {
    Failure { text: format!("packet {index}: {}", failure.text), ..failure }
}
