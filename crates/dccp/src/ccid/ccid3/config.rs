//! The constants of RFC 5348 and RFC 4342.

use weir_cc::tunable::SetupError;
use weir_units::TimeDelta;

weir_cc::tunables! {
    /// Configuration of CCID 3 and its relatives. Names are those of the RFCs where these have one.
    pub struct Config {
        /// q: weight of the previous round-trip time against a new sample (RFC 5348, section 4.3: 0.9).
        q: f64 = 0.9, 0.0 => 0.999;
        /// q2: the same for the square root of samples (RFC 5348, section 4.5: 0.9).
        q2: f64 = 0.9, 0.0 => 0.999;
        /// Whether the rate decreases with a rising round-trip time (RFC 5348, section 4.5: recommended; optional in
        /// RFC 3448).
        damping: bool = 1, 0 => 1;
        /// Whether old loss intervals are discounted during a long one without loss (RFC 5348, section 5.5: optional).
        discounting: bool = 1, 0 => 1;
        /// Round trips of unused send times that may be used in a burst (RFC 5348, section 4.6: at most 1).
        credit: f64 = 1.0, 0.0 => 1.0;
        /// t_gran: granularity of the send timers; a packet may be sent early by at most half of it (RFC 5348,
        /// section 8.3). Zero suits exact timers.
        t_gran: TimeDelta = 0.0, 0.0 => 20.0;
        /// t_mbi: the longest time between packets (RFC 5348, section 4.3: 64 s).
        t_mbi: TimeDelta = 64_000.0, 100.0 => 1_000_000.0;
        /// Nofeedback timer before the first round-trip time (RFC 5348, section 4.2: 2 s).
        initial_nofeedback: TimeDelta = 2_000.0, 100.0 => 60_000.0;
        /// Minimum nofeedback timer after it (RFC 5348, section 4.3, has none: 4 R or two packet intervals; Linux had
        /// 100 ms). On short paths it keeps scheduling delay from being mistaken for a lost acknowledgement.
        min_nofeedback: TimeDelta = 20.0, 0.0 => 60_000.0;
        /// b: packets that one acknowledgement of the TCP flow covers (RFC 5348, section 3.1: 1).
        packets_per_ack: f64 = 1.0, 1.0 => 2.0;
        /// Minimum t_RTO of the TCP flow (RFC 5348, section 3.1: 4 R, with an optional minimum of 1 s).
        min_rto: TimeDelta = 0.0, 0.0 => 10_000.0;
        /// Whether the receiver also reports its own loss event rate (RFC 4342, section 8.4: it may unasked).
        loss_event_rate: bool = 1, 0 => 1;
        /// Time constant with which the smoothed rate rises: applications follow in steps of a second (S. Jero, 2013,
        /// section 3.2.2: four samples per second apart).
        smooth_rise: TimeDelta = 2_000.0, 0.0 => 60_000.0;
        /// Time constant with which it falls: data sent beyond the rate waits or is lost, so this one is shorter.
        smooth_fall: TimeDelta = 500.0, 0.0 => 60_000.0;
        /// Whether to be as Linux 3.x's CCID 3 instead of RFC 5348: X is limited to twice the X_recv of the last report,
        /// which is measured since the report before; other defaults are those of [`Config::linux`].
        linux: bool = 0, 0 => 1;
    }
}

impl Config {
    /// The defaults of Linux 3.x (`net/dccp/ccids/ccid3.c`), where experiments before 2014 ran: no damping, no history
    /// discounting, timers of 4 ms (HZ = 250), a nofeedback timer of at least 200 ms. What is unused of send times is
    /// limited to one round trip here; Linux had no limit.
    pub fn linux() -> Self {
        Self {
            damping: false,
            discounting: false,
            t_gran: TimeDelta::from_millis(4),
            min_nofeedback: TimeDelta::from_millis(200),
            linux: true,
            ..Self::default()
        }
    }

    /// The defaults that the parameters select, with these parameters. Errors: as [`Self::set_all`].
    pub(in crate::ccid) fn selected(name: &str, params: &[(String, f64)]) -> Result<Self, SetupError> {
        let linux = params.iter().any(|(n, v)| n == "linux" && *v != 0.0);
        let mut config = if linux { Self::linux() } else { Self::default() };
        config.set_all(name, params)?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_changes_defaults_and_keeps_what_is_set() {
        let set = |params: &[(&str, f64)]| {
            let params: Vec<_> = params.iter().map(|&(n, v)| (n.to_owned(), v)).collect();
            Config::selected("CCID 3", &params).expect("valid")
        };
        assert_eq!(set(&[]), Config::default());
        assert_eq!(set(&[("linux", 0.0)]), Config::default());
        assert_eq!(set(&[("linux", 1.0)]), Config::linux());
        let own = set(&[("discounting", 1.0), ("linux", 1.0)]);
        assert_eq!((own.discounting, own.damping, own.linux), (true, false, true));
    }
}
