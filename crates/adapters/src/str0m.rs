//! A controller beside str0m 0.25 in RTP mode, with str0m's own estimate off: it paces what the application writes, and reads
//! transport-wide feedback.
//!
//! str0m shows both as raw packets (`RtcConfig::enable_raw_packets`), each sent packet with its header, copied; their
//! documentation calls them expensive and for tests. What is missing as public interface, in str0m's own terms:
//!
//! - an event for a packet sent (transport-wide number, size, whether padding), and one with the `TwccSendRecord`s of each feedback: today
//!   `Session::handle_rtcp` gives those to `Bwe` alone, which is a private type behind `RtcConfig::enable_bwe`, not a trait;
//! - a rate, or a queue, for the pacer: with the estimate off it is `NullPacer`, which sends at once, and `LeakyBucketPacer` is private. So
//!   [`Beside::poll_write`] paces before str0m; retransmissions, which str0m makes itself, leave unpaced;
//! - padding: `StreamTx` makes it only for the pacer's own probes, so that probes of the controller are left out;
//! - RFC 8888's feedback and ECN, which str0m does not have.

use crate::core::{Core, Report};
use crate::sent_numbers::{Name, SentNumbers};
use crate::{Rates, Refused, Settings};
use std::time::{Duration, Instant};
use str0m::Event;
use str0m::rtp::RawPacket;
use str0m::rtp::rtcp::{Rtcp, Twcc};
use weir_cc::{Pacer, PacerDecision};
use weir_units::DataSize;

/// Far from where numbers of 16 bits wrap, in both directions.
const MIDDLE: u64 = 1 << 32;
/// Bytes of an RTP header with the extension for transport-wide numbers.
const HEADER: usize = 20;

/// A controller by name, for one `Rtc`.
///
/// Give it each [`Event`] of that `Rtc`, call [`Self::poll_write`] before each packet that the application writes, and
/// [`Self::on_timeout`] when [`Self::poll_timeout`] says so.
pub struct Beside {
    rates: Rates,
    pacer: Pacer,
    sent: SentNumbers,
    /// Number of the next packet.
    next: u64,
    /// The first event: the zero of arrivals.
    zero: Option<Instant>,
    reports: Vec<Report>,
}

impl Beside {
    /// A controller by name.
    ///
    /// # Errors
    /// An unknown name or parameter, a value outside its range, or a controller that needs more than per-packet feedback.
    pub fn new(name: &str, settings: &Settings) -> Result<Self, Refused> {
        let rates = Rates::new(Core::new(name, settings)?);
        let pacer = Pacer::new(&rates.core().target(), weir_units::Timestamp::ZERO);
        Ok(Self { rates, pacer, sent: SentNumbers::default(), next: 0, zero: None, reports: Vec::new() })
    }
    /// The rates that the application reads.
    pub fn rates(&self) -> Rates {
        self.rates.clone()
    }

    /// An event of `Rtc::poll_output`; `now` is the time of the input before it.
    pub fn on_event(&mut self, now: Instant, event: &Event) {
        match event.as_raw_packet() {
            Some(RawPacket::RtpTx(header, packet)) => {
                let Some(number) = header.ext_vals.transport_cc else { return };
                self.sent.add(Name::TransportWide(number), self.next);
                self.rates.core().on_sent(self.next, packet.len(), now);
                self.next += 1;
            }
            Some(RawPacket::RtcpRx(Rtcp::Twcc(feedback))) => self.on_feedback(now, feedback.clone()),
            _ => {}
        }
    }

    fn on_feedback(&mut self, now: Instant, feedback: Twcc) {
        let zero = *self.zero.get_or_insert(now);
        // Times of the receiver's clock, which begin again after 2^24 times 64 ms.
        for (number, _, arrival) in feedback.into_iter(zero, MIDDLE.into()) {
            let Some(number) = self.sent.get(Name::TransportWide(*number as u16)) else { continue };
            let at = arrival.map(|at| at.saturating_duration_since(zero));
            self.reports.push(Report::transport_wide(number, at.is_some(), at));
        }
        self.reports.sort_by_key(|r| r.number);
        self.rates.core().on_reports(now, &self.reports, Duration::ZERO);
        self.reports.clear();
    }

    /// Whether a packet with this length of payload may be written now; otherwise from when on. It is then taken as written.
    ///
    /// # Errors
    /// Not yet: the time at which to ask again, as far as it is known.
    pub fn poll_write(&mut self, now: Instant, payload: usize) -> Result<(), Option<Instant>> {
        let mut core = self.rates.core();
        let at = core.time(now);
        self.pacer.set_target(&core.target(), at);
        match self.pacer.poll(at, true) {
            PacerDecision::Wait(until) => Err(core.instant(until)),
            _ => {
                let header = if core.target().paces_payload { 0 } else { HEADER };
                self.pacer.on_sent(at, DataSize::from_bytes((payload + header) as u64), false, 0);
                Ok(())
            }
        }
    }

    /// The time of [`Self::poll_timeout`] may have come.
    pub fn on_timeout(&mut self, now: Instant) {
        self.rates.core().on_timeout(now);
    }
    /// When to call [`Self::on_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.rates.core().poll_timeout()
    }
}
