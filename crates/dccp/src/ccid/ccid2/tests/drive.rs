//! A sender with hand-written acknowledgements.

use super::{ms, setup};
use crate::ack_vector::{AckState, MAX_RUN};
use crate::ccid::ccid2::{Config, Reno, Sender};
use crate::ccid::{Acknowledgement, CcidSender, Permission, SentPacket};
use crate::option::Options;
use crate::packet::PacketType;
use weir_units::{DataSize, Ecn, Seq48, TimeDelta, Timestamp};

pub(super) const SIZE: DataSize = DataSize::from_bytes(1_000);
pub(super) const RTT: TimeDelta = ms(100);

/// A sender with hand-written acknowledgements. Its packets are numbered from 1.
pub(super) struct Drive {
    pub(super) s: Sender,
    pub(super) now: Timestamp,
    pub(super) sent: u64,
    pub(super) own: u64,
    /// Options of the next acknowledgement besides a vector.
    pub(super) data_dropped: Vec<u8>,
    pub(super) slow_receiver: bool,
    pub(super) elapsed: Option<TimeDelta>,
    pub(super) ack_ecn: Ecn,
    pub(super) ack_type: PacketType,
}

pub(super) fn with(config: Config) -> Drive {
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

/// Without time-dependent features.
pub(super) fn plain() -> Config {
    Config { max_burst: 0, ..Config::default() }
}

use AckState::Received as R;

impl Drive {
    pub(super) fn send_packet(&mut self, packet_type: PacketType, queued: u64) {
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
    /// Sends everything that the window allows; returns the number of packets.
    pub(super) fn fill(&mut self) -> u32 {
        let before = self.sent;
        while self.s.may_send(self.now, SIZE) == Permission::Now {
            self.send_packet(PacketType::Data, 1_000);
        }
        (self.sent - before) as u32
    }
    /// A vector that begins at `newest` with these runs.
    pub(super) fn ack_runs(&mut self, newest: u64, runs: &[(AckState, u64)]) {
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
    /// All packets up to this one were received.
    pub(super) fn ack(&mut self, newest: u64) {
        self.ack_runs(newest, &[(R, newest)]);
    }
    /// Sends a window and acknowledges it two packets at a time, one round-trip time later.
    pub(super) fn round(&mut self) {
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
    pub(super) fn metric(&self, name: &str) -> Option<f64> {
        let mut found = None;
        self.s.metrics(&mut |n, v| found = if n == name { Some(v) } else { found });
        found
    }
    pub(super) fn cwnd(&self) -> u32 {
        self.metric("cwnd").expect("always there") as u32
    }
    pub(super) fn pipe(&self) -> u32 {
        self.metric("pipe").expect("always there") as u32
    }
    pub(super) fn ssthresh(&self) -> Option<u32> {
        self.metric("ssthresh").map(|s| s as u32)
    }
    /// Slow start up to this many packets, all acknowledged.
    pub(super) fn grown_to(mut self, cwnd: u32) -> Self {
        while self.cwnd() < cwnd {
            self.round();
        }
        assert_eq!(self.pipe(), 0);
        self
    }
}
