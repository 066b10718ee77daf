//! The records of an event log, as rows.

use super::batch::Batch;
use super::message::Message;
use crate::recording::Recording;
use crate::rtcp;
use crate::schema::{
    CandidatePair, Detector, Direction, Estimate, EstimateKind, Event, EventKind, Frame, Limited, NetworkType, Packet,
    PairChange, Probe, ProbeStep, Stream, StreamKind,
};
use weir_units::{DataRate, Timestamp};

/// RTCP kept until all of it is in order: its round-trip times need the reports sent before.
type Compound = (Timestamp, Direction, Vec<u8>);

/// State between records.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// UTC less the log's own time at its begin, in ms.
    utc: Option<i64>,
    /// Times before the shift.
    compounds: Vec<Compound>,
}

/// The log's time of a value, in ms.
fn ms(value: Option<u64>) -> Option<Timestamp> {
    // Out of range only in a damaged file: 10,000 years.
    let ms = value? as i64;
    (ms.abs() < 1 << 48).then(|| Timestamp::from_millis(ms))
}

fn kbps(value: u64) -> DataRate {
    DataRate::from_bps(value.saturating_mul(1000))
}

impl Reader {
    /// UTC less the log's time, in ms, where the log has its begin.
    pub(super) fn utc_offset(&self) -> Option<i64> {
        self.utc
    }

    /// Reads the RTCP packets, in order of time; the recording's tables have been shifted to UTC.
    pub(super) fn rtcp(mut self, out: &mut Recording) {
        let offset = weir_units::TimeDelta::from_millis(self.utc.unwrap_or(0));
        self.compounds.sort_by_key(|c| c.0);
        let mut reader = rtcp::Reader::default();
        for (at, direction, bytes) in &self.compounds {
            reader.read(out, *at + offset, *direction, bytes);
        }
    }

    /// Adds the rows of a record.
    pub(super) fn record(&mut self, out: &mut Recording, field: u64, body: &[u8]) -> Result<(), &'static str> {
        let m = Message::parse(body)?;
        let at = || ms(m.number(1)).ok_or("no time");
        let event = |out: &mut Recording, at, kind| out.room(1).then(|| out.events.push(Event { at, kind }));
        match field {
            2 => return packets(out, &m, Direction::Received),
            3 => return packets(out, &m, Direction::Sent),
            4 => return self.compounds(out, &m, Direction::Received),
            5 => return self.compounds(out, &m, Direction::Sent),
            7 => return frames(out, &m),
            18 => return loss_based(out, &m),
            19 => return delay_based(out, &m),
            33 => return remote(out, &m),
            16 => {
                let begin = at()?;
                if let Some(utc) = m.number(3).and_then(|u| ms(Some(u))) {
                    self.utc.get_or_insert(utc.as_millis() - begin.as_millis());
                }
                event(out, begin, EventKind::Begin);
            }
            17 => {
                event(out, at()?, EventKind::End);
            }
            21 => {
                let step = ProbeStep::Made { packets: m.small(4).unwrap_or(0), bytes: m.small(5).unwrap_or(0) };
                probe(out, at()?, &m, step);
            }
            22 => probe(out, at()?, &m, ProbeStep::Succeeded),
            23 => {
                let reason = match m.number(3) {
                    Some(1) => "interval",
                    Some(2) => "ratio",
                    Some(3) => "timeout",
                    _ => "unknown",
                };
                let at = at()?;
                let id = m.small(2).unwrap_or(0);
                if out.room(1) {
                    out.probes.push(Probe { at, id, rate: None, step: ProbeStep::Failed(reason) });
                }
            }
            24 => {
                let at = at()?;
                if out.room(1) {
                    out.limited.push(Limited { at, begins: m.number(2) == Some(1) });
                }
            }
            25 => pair(out, at()?, &m),
            27 => {
                event(out, at()?, EventKind::Dtls(m.small(2).unwrap_or(0)));
            }
            32 => {
                let kind = EventKind::Route { connected: m.number(2) == Some(1), overhead: m.small(3).unwrap_or(0) };
                event(out, at()?, kind);
            }
            101 => stream(out, at()?, Direction::Received, StreamKind::Audio, m.small(2), None),
            102 => stream(out, at()?, Direction::Sent, StreamKind::Audio, m.small(2), None),
            103 => stream(out, at()?, Direction::Received, StreamKind::Video, m.small(2), m.small(4)),
            104 => stream(out, at()?, Direction::Sent, StreamKind::Video, m.small(2), m.small(3)),
            _ => {}
        }
        Ok(())
    }

    fn compounds(&mut self, out: &mut Recording, m: &Message<'_>, direction: Direction) -> Result<(), &'static str> {
        let mut batch = Batch::new(m, 3)?;
        if !out.room(batch.rows() as u64) {
            return Ok(());
        }
        let (times, blobs) = (batch.column(1), batch.blobs(2));
        for (time, blob) in times.into_iter().zip(blobs) {
            match ms(time) {
                Some(at) if !blob.is_empty() => {
                    if !out.room((blob.len() / 64) as u64) {
                        return Ok(());
                    }
                    self.compounds.push((at, direction, blob.to_vec()));
                }
                _ => out.fault("RTCP packets without a time or content"),
            }
        }
        faults(out, &batch);
        Ok(())
    }
}

fn faults(out: &mut Recording, batch: &Batch<'_, '_>) {
    batch.faults.iter().for_each(|why| out.fault(why));
}

fn packets(out: &mut Recording, m: &Message<'_>, direction: Direction) -> Result<(), &'static str> {
    let mut batch = Batch::new(m, 11)?;
    if !out.room(batch.rows() as u64) {
        return Ok(());
    }
    let [time, marker, kind, sequence, timestamp, ssrc, payload, header, padding, transport] =
        [1, 2, 3, 4, 5, 6, 8, 9, 10, 15].map(|field| batch.column(field));
    for i in 0..batch.rows() {
        let Some(at) = ms(time[i]) else {
            out.fault("RTP packets without a time");
            continue;
        };
        let small = |column: &[Option<u64>]| column[i].unwrap_or(0) as u32;
        let padded = small(&padding);
        out.packets.push(Packet {
            at,
            number: 0,
            direction,
            ssrc: small(&ssrc),
            sequence: small(&sequence) as u16,
            timestamp: small(&timestamp),
            payload_type: small(&kind) as u8,
            marker: marker[i] == Some(1),
            size: small(&payload).saturating_add(small(&header)).saturating_add(padded),
            padding: padding[i].map(|p| p as u16),
            transport_sequence: transport[i].map(|t| t as u16),
        });
    }
    faults(out, &batch);
    Ok(())
}

fn frames(out: &mut Recording, m: &Message<'_>) -> Result<(), &'static str> {
    let mut batch = Batch::new(m, 15)?;
    if !out.room(batch.rows() as u64) {
        return Ok(());
    }
    let [time, ssrc, width, height, qp] = [1, 2, 4, 5, 7].map(|field| batch.column(field));
    for i in 0..batch.rows() {
        let Some(at) = ms(time[i]) else { continue };
        let small = |column: &[Option<u64>]| column[i].unwrap_or(0) as u32;
        let (width, height) = (small(&width), small(&height));
        out.frames.push(Frame { at, ssrc: small(&ssrc), width, height, qp: qp[i].map(|q| q as u32) });
    }
    faults(out, &batch);
    Ok(())
}

fn loss_based(out: &mut Recording, m: &Message<'_>) -> Result<(), &'static str> {
    let mut batch = Batch::new(m, 5)?;
    if !out.room(batch.rows() as u64) {
        return Ok(());
    }
    let [time, rate, loss] = [1, 2, 3].map(|field| batch.column(field));
    for i in 0..batch.rows() {
        let (Some(at), Some(bps)) = (ms(time[i]), rate[i]) else { continue };
        out.estimates.push(Estimate {
            at,
            kind: EstimateKind::Loss,
            rate: DataRate::from_bps(bps),
            loss: loss[i].map(|l| f64::from(l as u8) / 256.0),
            detector: None,
        });
    }
    faults(out, &batch);
    Ok(())
}

fn delay_based(out: &mut Recording, m: &Message<'_>) -> Result<(), &'static str> {
    let mut batch = Batch::new(m, 4)?;
    if !out.room(batch.rows() as u64) {
        return Ok(());
    }
    let [time, rate, state] = [1, 2, 3].map(|field| batch.column(field));
    for i in 0..batch.rows() {
        let (Some(at), Some(bps)) = (ms(time[i]), rate[i]) else { continue };
        let detector = match state[i] {
            Some(1) => Some(Detector::Normal),
            Some(2) => Some(Detector::Underuse),
            Some(3) => Some(Detector::Overuse),
            _ => None,
        };
        let rate = DataRate::from_bps(bps);
        out.estimates.push(Estimate { at, kind: EstimateKind::Delay, rate, loss: None, detector });
    }
    faults(out, &batch);
    Ok(())
}

fn remote(out: &mut Recording, m: &Message<'_>) -> Result<(), &'static str> {
    let mut batch = Batch::new(m, 4)?;
    if !out.room(2 * batch.rows() as u64) {
        return Ok(());
    }
    let [time, lower, upper] = [1, 2, 3].map(|field| batch.column(field));
    for i in 0..batch.rows() {
        let Some(at) = ms(time[i]) else { continue };
        for (kind, value) in [(EstimateKind::RemoteLower, lower[i]), (EstimateKind::RemoteUpper, upper[i])] {
            if let Some(value) = value {
                out.estimates.push(Estimate { at, kind, rate: kbps(value), loss: None, detector: None });
            }
        }
    }
    faults(out, &batch);
    Ok(())
}

fn probe(out: &mut Recording, at: Timestamp, m: &Message<'_>, step: ProbeStep) {
    if out.room(1) {
        let (id, rate) = (m.small(2).unwrap_or(0), m.number(3).map(DataRate::from_bps));
        out.probes.push(Probe { at, id, rate, step });
    }
}

fn pair(out: &mut Recording, at: Timestamp, m: &Message<'_>) {
    let change = match m.number(2) {
        Some(1) => PairChange::Added,
        Some(2) => PairChange::Updated,
        Some(3) => PairChange::Destroyed,
        Some(4) => PairChange::Selected,
        _ => return out.fault("candidate pairs with an unknown change"),
    };
    let network = match m.number(6) {
        Some(1) => NetworkType::Ethernet,
        Some(2) => NetworkType::Wifi,
        Some(3) => NetworkType::Cellular,
        Some(4) => NetworkType::Vpn,
        Some(5) => NetworkType::Loopback,
        _ => NetworkType::Unknown,
    };
    if out.room(1) {
        out.pairs.push(CandidatePair { at, pair: m.number(3).unwrap_or(0).to_string(), change, network });
    }
}

fn stream(
    out: &mut Recording,
    at: Timestamp,
    direction: Direction,
    kind: StreamKind,
    ssrc: Option<u32>,
    rtx: Option<u32>,
) {
    match ssrc {
        Some(ssrc) if out.room(1) => out.streams.push(Stream { at, direction, kind, ssrc, rtx }),
        Some(_) => {}
        None => out.fault("streams without an SSRC"),
    }
}
