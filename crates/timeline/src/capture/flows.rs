//! Flows of a capture: which of them are media, and which end the capture was made at.

use super::clocks::Clocks;
use super::extensions::{Behaviour, Elements, elements};
use super::file::Captured;
use super::link::{self, Datagram, Udp};
use super::repairs;
use crate::recording::{Recording, Repair};
use crate::rtcp::{self, fingerprint};
use crate::schema::{CandidatePair, Direction, NetworkType, OtherTraffic, Packet, PairChange, Rtcp, RtcpKind};
use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};
use weir_units::Timestamp;

/// Most addresses, flows and streams that are told apart.
const MOST: usize = 4096;
/// Frames of others that cost as much as a row, so that no file of them alone is read for minutes.
const FRAMES: u64 = 8;
/// Bins of traffic of others, in ns.
const BIN: i64 = 100_000_000;
/// Least packets of a stream, and least share of them that follow the one before closely.
const LEAST_PACKETS: u32 = 4;
const LEAST_ORDER: f64 = 0.5;

/// One direction of a flow.
type FlowKey = (IpAddr, u16, IpAddr, u16);

/// A candidate for an RTP stream.
#[derive(Debug, Default)]
struct Candidate {
    packets: u32,
    followed: u32,
    last: u16,
}

/// Facts about a packet that the timeline's row does not have.
#[derive(Debug)]
struct Beside {
    flow: u16,
    elements: Elements,
    /// Bytes of padding if it is in the clear: its last byte, where it is padded and there to its end, or none.
    padding: Option<u8>,
}

/// Hops left in packets from an address.
#[derive(Debug, Default)]
struct Host {
    packets: u64,
    /// Packets with a number of hops that systems begin with: 64, 128 or 255.
    initial: u64,
    sent: u64,
    received: u64,
}

/// State of reading a capture.
#[derive(Debug, Default)]
pub(super) struct Flows {
    keys: BTreeMap<FlowKey, u16>,
    froms: Vec<(IpAddr, IpAddr)>,
    behaviours: Vec<Behaviour>,
    clocks: Vec<Clocks>,
    streams: BTreeMap<(u16, u32), Candidate>,
    hosts: BTreeMap<IpAddr, Host>,
    beside: Vec<Beside>,
    /// Flow and stream of packets that may be repair packets, as far as they are read.
    repairs: Vec<(u16, u32, Repair)>,
    /// Flow, time, number and length of compounds whose direction is not known yet, with their bytes.
    compounds: Vec<(u16, Timestamp, u32, u32, Vec<u8>)>,
    others: BTreeMap<(i64, IpAddr, IpAddr), u64>,
    /// Addresses and numbers of datagrams whose first fragment came.
    fragmented: BTreeSet<(IpAddr, IpAddr, u32)>,
    /// Frames that are no packets of the call.
    passed: u64,
}

impl Flows {
    /// Adds a captured packet.
    pub(super) fn add(&mut self, out: &mut Recording, captured: &Captured<'_>) {
        let Some(datagram) = link::datagram(captured.link, captured.bytes) else {
            out.room(1);
            return out.fault("frames that are not IP");
        };
        self.host(&datagram);
        if self.is_rest(&datagram) {
            return self.pass(out);
        }
        if let Some(udp) = &datagram.udp {
            match udp.payload {
                // RFC 7983: 128 to 191 is RTP and RTCP; RFC 5761: 192 to 223 in the next byte is RTCP.
                [128..=191, 192..=223, ..] if udp.payload.len() >= 8 => {
                    return self.compound(out, captured.at, &datagram, udp);
                }
                [128..=191, ..] if udp.payload.len() >= 12 => return self.packet(out, captured.at, &datagram, udp),
                // STUN, and DTLS of the call: neither media nor others' traffic.
                [0..=3, ..] if udp.payload.get(4..8) == Some(&[0x21, 0x12, 0xa4, 0x42]) => return self.pass(out),
                [20..=63, 0xfe, 0xfc..=0xff, ..] => return self.pass(out),
                _ => {}
            }
        }
        self.pass(out);
        self.other(out, captured.at, &datagram, datagram.length);
    }

    /// Whether a packet is a fragment behind the first one of a datagram that may be of the call: its bytes are counted with the first, whose header has
    /// the length of all. A first fragment is kept for the others to come.
    fn is_rest(&mut self, datagram: &Datagram<'_>) -> bool {
        let Some(fragment) = datagram.fragment else { return false };
        let key = (datagram.from, datagram.to, fragment.id);
        if !fragment.first {
            let known = self.fragmented.contains(&key);
            if known && !fragment.more {
                self.fragmented.remove(&key);
            }
            return known;
        }
        // RTP and RTCP of RFC 7983, STUN and DTLS.
        if datagram.udp.as_ref().is_some_and(|udp| matches!(udp.payload, [0..=3 | 20..=63 | 128..=191, ..])) {
            if self.fragmented.len() >= MOST {
                self.fragmented.clear();
            }
            self.fragmented.insert(key);
        }
        false
    }

    fn pass(&mut self, out: &mut Recording) {
        self.passed += 1;
        if self.passed.is_multiple_of(FRAMES) {
            out.room(1);
        }
    }

    fn host(&mut self, datagram: &Datagram<'_>) {
        let full = self.hosts.len() >= MOST;
        let mut host = |address: IpAddr, count: &dyn Fn(&mut Host)| {
            if !full || self.hosts.contains_key(&address) {
                count(self.hosts.entry(address).or_default());
            }
        };
        let initial = matches!(datagram.hops, 64 | 128 | 255);
        host(datagram.from, &|h| {
            h.packets += 1;
            h.initial += u64::from(initial);
            h.sent += u64::from(datagram.sent == Some(true));
            h.received += u64::from(datagram.sent == Some(false));
        });
    }

    fn flow(&mut self, datagram: &Datagram<'_>, udp: &Udp<'_>) -> Option<u16> {
        let key = (datagram.from, udp.from, datagram.to, udp.to);
        if let Some(flow) = self.keys.get(&key) {
            return Some(*flow);
        }
        if self.keys.len() >= MOST {
            return None;
        }
        let flow = self.keys.len() as u16;
        self.keys.insert(key, flow);
        self.froms.push((datagram.from, datagram.to));
        self.behaviours.push(Behaviour::default());
        self.clocks.push(Clocks::default());
        Some(flow)
    }

    fn packet(&mut self, out: &mut Recording, at: Timestamp, datagram: &Datagram<'_>, udp: &Udp<'_>) {
        let bytes = udp.payload;
        let Some(flow) = self.flow(datagram, udp) else {
            return out.fault("packets of more flows than are kept");
        };
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (sequence, ssrc) = (u16::from_be_bytes([bytes[2], bytes[3]]), word(8));
        if self.streams.len() >= MOST && !self.streams.contains_key(&(flow, ssrc)) {
            return out.fault("packets of more streams than are kept");
        }
        if !out.room(1) {
            return;
        }
        let stream = self.streams.entry((flow, ssrc)).or_default();
        stream.followed += u32::from((1..=64).contains(&sequence.wrapping_sub(stream.last)));
        stream.packets += 1;
        stream.last = sequence;
        let elements = elements(bytes);
        self.behaviours[usize::from(flow)].add(&elements);
        self.clocks[usize::from(flow)].add(bytes, at, out.record);
        let whole = udp.length as usize == bytes.len();
        let padding = if bytes[0] & 0x20 == 0 { Some(0) } else { bytes.last().copied().filter(|_| whole) };
        self.beside.push(Beside { flow, elements, padding });
        for (protected, coverage) in repairs::protected(bytes, udp.length) {
            if out.room(Repair::cost(&coverage)) {
                let (number, direction, size) = (out.record, Direction::Passing, udp.length);
                let repair = Repair { at, number, direction, size, ssrc: protected, coverage };
                self.repairs.push((flow, ssrc, repair));
            }
        }
        out.packets.push(Packet {
            at,
            number: out.record,
            direction: Direction::Passing,
            ssrc,
            sequence,
            timestamp: word(4),
            payload_type: bytes[1] & 0x7f,
            marker: bytes[1] & 0x80 != 0,
            size: udp.length,
            padding: None,
            transport_sequence: None,
        });
    }

    fn compound(&mut self, out: &mut Recording, at: Timestamp, datagram: &Datagram<'_>, udp: &Udp<'_>) {
        let Some(flow) = self.flow(datagram, udp) else {
            return out.fault("packets of more flows than are kept");
        };
        if out.room(1 + (udp.payload.len() / 64) as u64) {
            self.compounds.push((flow, at, out.record, udp.length, udp.payload.to_vec()));
        }
    }

    fn other(&mut self, out: &mut Recording, at: Timestamp, datagram: &Datagram<'_>, bytes: u32) {
        let key = (at.as_nanos().div_euclid(BIN) * BIN, datagram.from, datagram.to);
        if self.others.contains_key(&key) || out.room(1) {
            *self.others.entry(key).or_default() += u64::from(bytes);
        }
    }

    /// The way of packets from one address to another, as the captured host sees it.
    fn direction(&self, from: IpAddr, to: IpAddr) -> Direction {
        let local = |address: &IpAddr| self.hosts.get(address).filter(|h| h.packets > 0);
        let Some(host) = local(&from) else { return Direction::Passing };
        if host.sent + host.received > 0 {
            return if host.sent >= host.received { Direction::Sent } else { Direction::Received };
        }
        // No router has touched packets of the captured host; those of the other end have passed at least one.
        let near = |h: &Host| h.initial * 2 > h.packets;
        match (near(host), local(&to).map(near)) {
            (true, Some(false)) => Direction::Sent,
            (false, Some(true)) => Direction::Received,
            _ => Direction::Passing,
        }
    }

    /// Settles directions, extensions and which streams are RTP.
    pub(super) fn finish(self, out: &mut Recording) {
        let directions: Vec<Direction> = self.froms.iter().map(|(from, to)| self.direction(*from, *to)).collect();
        let transports: Vec<Option<u8>> = self.behaviours.iter().map(Behaviour::transport).collect();
        let is_stream =
            |s: &Candidate| s.packets >= LEAST_PACKETS && f64::from(s.followed) >= LEAST_ORDER * f64::from(s.packets);
        // A stream that moves to other addresses may have a few packets between each.
        let mut moved: BTreeMap<u32, Candidate> = BTreeMap::new();
        for ((_, ssrc), stream) in &self.streams {
            let all = moved.entry(*ssrc).or_default();
            all.packets += stream.packets;
            all.followed += stream.followed;
        }
        let of_flows = self.streams.iter().map(|((_, ssrc), s)| (ssrc, s));
        let found = of_flows.chain(&moved).filter(|(_, s)| is_stream(s));
        let known: BTreeSet<u32> = found.map(|(ssrc, _)| *ssrc).collect();
        let is_rtp = |flow: u16, ssrc: u32| self.streams.contains_key(&(flow, ssrc)) && known.contains(&ssrc);
        let (mut media_flows, mut row) = (vec![false; self.froms.len()], 0);
        let (mut kept, mut padding) = (Vec::new(), Vec::new());
        out.packets.retain_mut(|packet| {
            let beside = &self.beside[row];
            row += 1;
            let flow = usize::from(beside.flow);
            packet.direction = directions[flow];
            let number = |id: u8| beside.elements.iter().find(|e| e.0 == id).map(|e| e.1);
            packet.transport_sequence = transports[flow].and_then(number);
            let keep = is_rtp(beside.flow, packet.ssrc);
            media_flows[flow] |= keep;
            if keep {
                kept.push(beside.flow);
                padding.push(beside.padding);
            }
            keep
        });
        let dropped = row - out.packets.len();
        (0..dropped).for_each(|_| out.fault("packets that look like RTP, of no stream"));
        let mut ids: Vec<u8> =
            transports.iter().zip(&media_flows).filter(|(_, m)| **m).filter_map(|(t, _)| *t).collect();
        ids.sort_unstable();
        ids.dedup();
        out.guessed.extend(ids.iter().map(|id| format!("header extension {id} is the transport-wide number")));
        // Send times of received packets wander with the path.
        let sends = |flow: &usize| media_flows[*flow] && directions[*flow] == Direction::Sent;
        out.send_clocks = (0..directions.len()).filter(sends).filter_map(|flow| self.clocks[flow].found()).collect();
        let mut ids: Vec<u8> = out.send_clocks.iter().map(|c| c.id).collect();
        ids.sort_unstable();
        ids.dedup();
        out.guessed.extend(ids.iter().map(|id| format!("header extension {id} is the absolute send time")));
        self.routes(out, &kept);
        self.compounds(out, &directions, &media_flows);
        // Media is as clear as its RTCP: of encrypted packets the last byte is no length.
        if !out.rtcp.is_empty() && out.rtcp.iter().all(|r| !matches!(r.kind, RtcpKind::Unread(_))) {
            for (packet, length) in out.packets.iter_mut().zip(padding) {
                packet.padding = length.map(u16::from).filter(|length| u32::from(*length) + 12 <= packet.size);
            }
            let protects = |r: &&(u16, u32, Repair)| is_rtp(r.0, r.1) && known.contains(&r.2.ssrc);
            let found = self.repairs.iter().filter(protects);
            out.repairs =
                found.map(|(flow, _, r)| Repair { direction: directions[usize::from(*flow)], ..*r }).collect();
        }
        for ((at, from, to), bytes) in &self.others {
            let direction = self.direction(*from, *to);
            out.other.push(OtherTraffic { at: Timestamp::from_nanos(*at), direction, bytes: *bytes });
        }
    }

    /// Changes of the addresses between which the media goes, as pairs that are selected: `kept` are the flows of all packets. Streams that have
    /// flows of their own from the start change nothing.
    fn routes(&self, out: &mut Recording, kept: &[u16]) {
        let mut bytes: BTreeMap<Direction, u64> = BTreeMap::new();
        out.packets.iter().for_each(|p| *bytes.entry(p.direction).or_default() += u64::from(p.size));
        let Some((heavier, _)) = bytes.into_iter().max_by_key(|b| b.1) else { return };
        let (mut of, mut selected) = (BTreeMap::new(), Vec::new());
        for (packet, flow) in out.packets.iter().zip(kept).filter(|(p, _)| p.direction == heavier) {
            let moved = of.insert(packet.ssrc, *flow).is_some_and(|before| before != *flow);
            let current = selected.last().map(|s: &(Timestamp, u16)| s.1);
            if current.is_none() || (moved && current != Some(*flow)) {
                selected.push((packet.at, *flow));
            }
        }
        if selected.len() < 2 {
            return;
        }
        out.guessed.push("media between other addresses is another candidate pair".into());
        for (at, flow) in selected {
            if !out.room(1) {
                return;
            }
            let (pair, change, network) = (flow.to_string(), PairChange::Selected, NetworkType::Unknown);
            out.pairs.push(CandidatePair { at, pair, change, network });
        }
    }

    fn compounds(&self, out: &mut Recording, directions: &[Direction], media: &[bool]) {
        let mut reader = rtcp::Reader::default();
        for (flow, at, number, length, bytes) in &self.compounds {
            let flow = usize::from(*flow);
            let (from, to) = self.froms[flow];
            let back = self.keys.iter().filter(|(k, _)| (k.0, k.2) == (to, from)).any(|(_, f)| media[usize::from(*f)]);
            if !media[flow] && !back {
                out.fault("packets that look like RTCP, of no call");
                continue;
            }
            let direction = directions[flow];
            let whole = *length as usize == bytes.len();
            out.record = *number;
            if whole && weir_wire::rtcp::raw_packets(bytes).all(|p| p.is_ok()) {
                let first = out.rtcp.len();
                reader.read(out, *at, direction, bytes);
                // Of the compound: a capture at the other end has the same bytes.
                if let Some(row) = out.rtcp.get_mut(first) {
                    row.fingerprint = Some(fingerprint(bytes));
                }
                continue;
            }
            let sender_ssrc = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
            let kind = RtcpKind::Unread(bytes[1]);
            let fingerprint = Some(fingerprint(bytes));
            out.rtcp.push(Rtcp { at: *at, number: *number, direction, sender_ssrc, size: *length, kind, fingerprint });
        }
    }
}
