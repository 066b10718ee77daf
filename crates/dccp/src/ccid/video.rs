//! An experimental CCID for video that takes chunks into account (RFC 4340, section 19.5). It is used only if a
//! configuration requests its number, 248, on both ends.
//!
//! S. Jero, 2013, section 5.2, proposes a rate-based CCID to which an application announces that it sends a group of
//! packets now and nothing for the next x ms. It keeps an even rate and may raise it linearly over a round trip or a
//! chunk while it stays below the TCP-friendly rate, where TFRC limits it to twice the rate received before: a key
//! frame after small frames then need not wait. The thesis specifies no more; the rest is our own.
//!
//! Packets, feedback, loss intervals, X and the nofeedback timer are those of [CCID 3](super::ccid3), as is the
//! receiver; only send times differ. For a chunk with data waiting:
//!
//! 1. *Ceiling.* A busy period begins with a chunk submitted while nothing waits, at t_0. Within it the rate is bounded
//!    by X_v(t) = X + max(X_Bps - X, 0) min(1, (t - t_0) / T), where X is CCID 3's, limited by twice X_recv, X_Bps is
//!    that of the throughput equation, both damped (RFC 5348, section 4.5), and T is the shorter of R and the chunk's
//!    interval, times `ramp`. So X_v never exceeds X_Bps unless X does, and reaches it within a chunk on a path of any
//!    length.
//! 2. Without X_Bps - before the first loss event - and after the nofeedback timer has expired until feedback is
//!    received again, X_v is X: nothing is known that would permit more.
//! 3. *Allowance.* Packets are sent at X_v, with CCID 3's credit of one round trip for unused send times; this also
//!    decides whether an interval was data-limited.
//! 4. *Evenness.* Packets are also sent no faster than at the rate that empties the queue by a deadline: the chunk's
//!    time plus its interval times `spread`. A chunk of more than twice the mean (over about 32) may take longer, in
//!    proportion to its size over twice the mean, up to `most_intervals`. Of chunks that wait together the latest
//!    deadline counts. So what CCID 3 sends at once out of its credit is spread, a small frame over most of its
//!    interval, a key frame over about 100 ms.
//!
//! Without chunks it behaves as CCID 3. The reported rate is X_Bps if rule 1 may lead to it, otherwise X; the smoothed
//! one is a low-pass of it.

mod sender;

pub use super::ccid3::Receiver;
pub use sender::Sender;

use super::{Setup, Spec, ccid3};
use std::sync::Arc;
use weir_cc::tunable::SetupError;

/// Its number.
pub const NUMBER: u8 = 248;
const NAME: &str = "CCID 248";

weir_cc::tunables! {
    /// Parameters in addition to those of CCID 3.
    pub struct Config {
        /// Share of a chunk's interval over which its packets are spread (own choice); the rest covers timers and early
        /// chunks.
        spread: f64 = 0.8, 0.0 => 1.0;
        /// Maximum intervals of a chunk much larger than the mean, times `spread` (own choice: a receiver plays a key
        /// frame about 100 ms late, and data beyond the path's capacity is lost).
        most_intervals: f64 = 3.0, 1.0 => 30.0;
        /// T over the shorter of the round-trip time and the chunk's interval (S. Jero, 2013, section 5.2: either).
        ramp: f64 = 1.0, 0.1 => 10.0;
    }
}

fn configs(params: &[(String, f64)]) -> Result<(ccid3::Config, Config), SetupError> {
    let (mut base, mut own) = (ccid3::Config::default(), Config::default());
    let set_base = &mut |p: &[_]| ccid3::Config::selected(NAME, p).map(|config| base = config);
    let set_own = &mut |p: &[_]| own.set_all(NAME, p);
    ccid3::set_both(params, &Config::params(), set_own, set_base)?;
    Ok((base, own))
}

fn sender(setup: &Setup) -> Result<Sender, SetupError> {
    let (base, own) = configs(&setup.params)?;
    Ok(Sender::new(base, own, setup))
}

/// Its entry in the registry.
pub fn spec() -> Spec {
    Spec {
        number: NUMBER,
        name: "TFRC video",
        summary: "TFRC that spreads the chunks of video and lets key frames reach the rate of the equation",
        source: "S. Jero, 2013, section 5.2",
        requirements: ccid3::REQUIREMENTS,
        params: [ccid3::Config::params(), Config::params()].concat(),
        sender: Arc::new(|setup| Ok(super::Sender::Video(Box::new(sender(setup)?)))),
        receiver: Arc::new(|setup| {
            let (base, _) = configs(&setup.params)?;
            Ok(super::Receiver::Video(Box::new(Receiver::with(base, None))))
        }),
    }
}

#[cfg(test)]
mod tests;
