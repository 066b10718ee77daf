//! str0m's send-side bandwidth estimator behind Weir's `exec:` protocol.
//!
//! The estimator is a private module of the crate. `estimators/build` adds a public module to the unchanged crate, `probes.rs` or
//! `padding.rs` by its version, which calls the estimator, the register of sent packets, the parser of RTCP and the pacer's rates as
//! str0m's `Session` does. Time is an argument of all of them.
//!
//! Left out: `Session` itself with SRTP, and str0m's pacer. Weir sends at the rates that this pacer would have, and makes the probes.

#[path = "../../exec.rs"]
#[allow(dead_code, reason = "each adapter needs a part of it")]
mod exec;

use exec::{Answer, Call, Estimator, Probe, Sent};
use std::time::{Duration, Instant};

/// A fixed header with the transport-wide sequence number. The library counts payload alone.
const HEADER: usize = 20;
/// Times that never come are a hundred years away.
const NEVER: Duration = Duration::from_secs(24 * 3600);

struct Adapter {
    inner: str0m::weir::Estimator,
    zero: Instant,
    ceiling_bps: u64,
}

impl Adapter {
    fn new(call: Call) -> Self {
        let zero = Instant::now() - Duration::from_nanos(call.now_ns as u64);
        let mut adapter = Self {
            inner: str0m::weir::Estimator::new(call.start_bps, call.ceiling_bps),
            zero,
            ceiling_bps: call.ceiling_bps,
        };
        adapter.timer(call.now_ns);
        adapter
    }

    fn at(&self, now_ns: i64) -> Instant {
        self.zero + Duration::from_nanos(now_ns as u64)
    }
}

impl Estimator for Adapter {
    const RTCP: bool = true;

    fn sent(&mut self, now_ns: i64, p: &Sent) {
        let probe = p.probe.checked_sub(1).map(u64::from);
        self.inner.sent(self.at(now_ns), p.sequence, p.size_bytes.saturating_sub(HEADER), p.is_padding, probe);
    }

    fn rtcp(&mut self, now_ns: i64, datagram: &[u8]) {
        self.inner.rtcp(self.at(now_ns), datagram);
    }

    fn limits(&mut self, _: i64, _: u64, ceiling_bps: u64) {
        self.ceiling_bps = ceiling_bps;
        self.inner.set_ceiling(ceiling_bps);
    }

    fn timer(&mut self, now_ns: i64) {
        self.inner.timeout(self.at(now_ns));
    }

    fn answer(&mut self, now_ns: i64) -> Answer {
        // The application sends no more than it has.
        let media_bps = self.inner.media_bps().min(self.ceiling_bps as f64);
        let rates = self.inner.pacer(media_bps);
        let now = self.at(now_ns);
        let next = self.inner.timeout_at().filter(|t| t.saturating_duration_since(now) < NEVER);
        Answer {
            media_bps,
            pacing_bps: rates.map(|r| r.0),
            padding_bps: rates.map(|r| r.1),
            timer_ns: next.map(|t| t.saturating_duration_since(self.zero).as_nanos() as i64),
            probes: self
                .inner
                .probes()
                .map(|p| Probe {
                    id: p.id as u32 + 1,
                    rate_bps: p.rate_bps,
                    min_packets: p.min_packets as u32,
                    min_bytes: p.min_bytes,
                })
                .collect(),
        }
    }
}

fn main() -> std::io::Result<()> {
    exec::serve(concat!("str0m ", env!("LIBRARY")), Adapter::new)
}
