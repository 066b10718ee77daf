//! The same media through two ends, over plain datagrams or DCCP, with reused buffers.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::type_complexity)]

use std::collections::VecDeque;
use weir_cc::{Limits, Registry, Setup};
use weir_dccp::connection::{self, Connection};
use weir_media::PerfectCodec;
use weir_session::allocation::{Demand, MediaKind};
use weir_session::dccp::{DccpConfig, DccpEnd, video_connection};
use weir_session::{
    Datagram, EndConfig, EndPlan, Endpoint, IncomingConfig, OutgoingConfig, ReceivingPath, SendingPath, StreamIdentity,
};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

const DELAY: TimeDelta = TimeDelta::from_millis(20);

enum End {
    Plain(Box<Endpoint>),
    Dccp(Box<DccpEnd>),
}

impl End {
    fn endpoint(&self) -> &Endpoint {
        match self {
            Self::Plain(e) => e,
            Self::Dccp(e) => e.endpoint(),
        }
    }
    fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<(u32, Ecn)> {
        match self {
            Self::Plain(e) => e.poll_transmit(now, out).map(|t| (t.payload, t.ecn)),
            Self::Dccp(e) => e.poll_transmit(now, out).map(|t| (t.transmit.payload, t.transmit.ecn)),
        }
    }
    fn poll_timeout(&mut self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Plain(e) => e.poll_timeout(now),
            Self::Dccp(e) => e.poll_timeout(now),
        }
    }
    fn handle_timeout(&mut self, now: Timestamp) {
        match self {
            Self::Plain(e) => e.handle_timeout(now),
            Self::Dccp(e) => e.handle_timeout(now),
        }
    }
    fn handle_datagram(&mut self, now: Timestamp, bytes: &[u8], payload: u32, ecn: Ecn) {
        match self {
            Self::Plain(e) => _ = e.handle_datagram(now, &Datagram { payload, ..Datagram::new(bytes, ecn) }),
            Self::Dccp(e) => _ = e.handle_datagram(now, &connection::Datagram { bytes, payload, ecn }),
        }
    }
}

/// Two ends and the datagrams between them.
pub struct Call {
    ends: [End; 2],
    under_way: [VecDeque<(Timestamp, Vec<u8>, u32, Ecn)>; 2],
    spare: Vec<Vec<u8>>,
    now: Timestamp,
}

impl Call {
    /// 2 Mbit/s in packets of 1,000 bytes, over plain datagrams or an open connection with this congestion control.
    pub fn new(ccid: Option<u8>) -> Self {
        let rate = DataRate::from_mbps(2);
        let limits = Limits { floor: rate, ceiling: rate };
        let now = Timestamp::ZERO;
        let setup = Setup { limits, start_rate: rate, now, seed: 1, params: vec![] };
        let pair = Registry::builtin().make("fixed", &setup).unwrap();
        let config = EndConfig::default();
        let source = PerfectCodec::packets(DataSize::from_bytes(1_000), now);
        let other = EndConfig { ssrc: 2, remote_ssrc: 1, seed: 2, ..config.clone() };
        let outgoing = OutgoingConfig::new(StreamIdentity::of(1), source.into(), Demand::default());
        let a = EndPlan::new(config).sends(outgoing).on(SendingPath::new(pair.sender)).make(now).unwrap();
        let b = EndPlan::new(other)
            .receives(IncomingConfig::new(StreamIdentity::of(1), MediaKind::default()))
            .on(ReceivingPath::default())
            .make(now)
            .unwrap();
        let call = |ends| Self { ends, under_way: [const { VecDeque::new() }; 2], spare: Vec::new(), now };
        let Some(ccid) = ccid else { return call([End::Plain(Box::new(a)), End::Plain(Box::new(b))]) };
        let mut connection = Connection::connect(video_connection(ccid), now).unwrap();
        let mut request = Vec::new();
        connection.poll_transmit(now, &mut request).unwrap();
        let request = connection::Datagram { bytes: &request, payload: 0, ecn: Ecn::NotEct };
        let accepted = Connection::accept(video_connection(ccid), now, &request, None).unwrap();
        let end = |e, c| End::Dccp(Box::new(DccpEnd::new(e, c, DccpConfig::default(), now)));
        call([end(a, connection), end(b, accepted)])
    }

    /// Runs until `count` more RTP packets have been received; returns their number.
    pub fn deliver(&mut self, count: u64) -> u64 {
        let received = |s: &Self| s.ends[1].endpoint().stats().receive_counters().packets;
        let upto = received(self) + count;
        while received(self) < upto {
            for (from, end) in self.ends.iter_mut().enumerate() {
                let mut bytes = self.spare.pop().unwrap_or_default();
                while let Some((payload, ecn)) = end.poll_transmit(self.now, &mut bytes) {
                    self.under_way[from].push_back((self.now + DELAY, bytes, payload, ecn));
                    bytes = self.spare.pop().unwrap_or_default();
                }
                self.spare.push(bytes);
            }
            let timers = self.ends.iter_mut().filter_map(|e| e.poll_timeout(self.now)).min();
            let arrivals = self.under_way.iter().filter_map(|q| q.front().map(|p| p.0)).min();
            self.now = timers.into_iter().chain(arrivals).min().unwrap_or(self.now).max(self.now);
            for (from, queue) in self.under_way.iter_mut().enumerate() {
                while queue.front().is_some_and(|p| p.0 <= self.now)
                    && let Some((_, bytes, payload, ecn)) = queue.pop_front()
                {
                    self.ends[1 - from].handle_datagram(self.now, &bytes, payload, ecn);
                    self.spare.push(bytes);
                }
            }
            self.ends.iter_mut().for_each(|e| e.handle_timeout(self.now));
        }
        received(self)
    }
}
