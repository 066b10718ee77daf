//! Wi-Fi: stations contend for one medium (IEEE 802.11-2020, clause 10.3, the distributed coordination function, and 10.23.2,
//! EDCA), send aggregates (clause 10.12, A-MPDU) that are acknowledged by block acknowledgements (clause 10.25), and retry what
//! was not received.

mod contention;
mod ppdu;

pub(crate) use contention::Medium;

use super::{NOMINAL_BYTES, check_count, check_time};
use crate::checks::check_share;
use crate::error::ConfigError;
use ppdu::Ppdu;
use weir_units::{DataRate, DataSize, TimeDelta};

/// The lowest rate of 802.11 (clause 15).
pub(super) const LEAST_RATE: DataRate = DataRate::from_mbps(1);
/// Most stations beside those of the scenario's flows.
const MAX_CONTENDERS: u32 = 100;

/// Other stations on the medium.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Others {
    /// This many, each with full queues.
    Saturated(u32),
    /// One that uses this share of the air time, 0 to 1, at random times, if the contention lets it.
    Load(f64),
}

/// A Wi-Fi medium. The link's capacity is the rate of data on it (the PHY rate).
///
/// The defaults are those of 802.11n in the 5 GHz band with one spatial stream (HT-mixed format) and of EDCA's best effort.
#[derive(Clone, PartialEq, Debug)]
pub struct Wifi {
    /// Length of a backoff slot: 9 us (802.11-2020, table 17-21).
    pub slot: TimeDelta,
    /// Short interframe space: 16 us (802.11-2020, table 17-21).
    pub sifs: TimeDelta,
    /// Slots beside SIFS for which the medium is idle before the backoff: AIFSN 3 (802.11-2020, table 9-155, AC_BE); 2 is
    /// the distributed function's DIFS (clause 10.3.2.3.3).
    pub aifsn: u32,
    /// Least and greatest contention window: 15 and 1,023 slots (802.11-2020, tables 9-155, AC_BE, and 17-21).
    pub cw_min: u32,
    /// See [`Self::cw_min`].
    pub cw_max: u32,
    /// Time before the data of a transmission: 36 us, the HT-mixed preamble with one stream (802.11-2020, clause 19.3.2: 8 + 8 +
    /// 4 legacy, 8 HT-SIG, 4 HT-STF, 4 HT-LTF).
    pub preamble: TimeDelta,
    /// Time of an acknowledgement, without the space before it: 32 us, a compressed block acknowledgement of 32 bytes at 24
    /// Mbit/s (802.11-2020, clauses 9.3.1.8 and 17.4.3).
    pub ack: TimeDelta,
    /// Most packets of an aggregate, 1 for none: 64, a block acknowledgement's window (802.11-2020, clause 9.3.1.8).
    pub max_packets: u32,
    /// Greatest size of an aggregate: 65,535 bytes (802.11-2020, clause 9.4.2.55.3, for HT).
    pub max_size: DataSize,
    /// Greatest air time of a transmission: 5.484 ms (802.11-2020, table 21-28, aPPDUMaxTime). A packet is sent alone even if
    /// it takes longer.
    pub max_air_time: TimeDelta,
    /// Share of packets not received, apart from collisions.
    pub error_rate: f64,
    /// Most retries of a packet, which is then lost: 7 (802.11-2020, annex C, dot11ShortRetryLimit).
    pub retry_limit: u32,
    /// Other stations.
    pub others: Others,
    /// Air time of a transmission by another station; that of a full aggregate of packets of 1,040 bytes if absent.
    pub others_air_time: Option<TimeDelta>,
    /// Whether each station contends for itself, beside the access point, and has queues of its own in both directions;
    /// otherwise all flows are one station's.
    pub separate: bool,
}

impl Default for Wifi {
    fn default() -> Self {
        Self {
            slot: TimeDelta::from_micros(9),
            sifs: TimeDelta::from_micros(16),
            aifsn: 3,
            cw_min: 15,
            cw_max: 1_023,
            preamble: TimeDelta::from_micros(36),
            ack: TimeDelta::from_micros(32),
            max_packets: 64,
            max_size: DataSize::from_bytes(65_535),
            max_air_time: TimeDelta::from_micros(5_484),
            error_rate: 0.0,
            retry_limit: 7,
            others: Others::Saturated(0),
            others_air_time: None,
            separate: false,
        }
    }
}

impl Wifi {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let (us, ms) = (TimeDelta::from_micros, TimeDelta::from_millis);
        check_time("wifi.slot", self.slot, us(1), us(100))?;
        check_time("wifi.sifs", self.sifs, us(1), us(100))?;
        check_count("wifi.aifsn", self.aifsn, 1, 15)?;
        check_count("wifi.cw_min", self.cw_min, 0, 32_767)?;
        check_count("wifi.cw_max", self.cw_max, self.cw_min, 32_767)?;
        check_time("wifi.preamble", self.preamble, us(1), ms(1))?;
        check_time("wifi.ack", self.ack, TimeDelta::ZERO, ms(1))?;
        check_count("wifi.max_packets", self.max_packets, 1, 64)?;
        if self.max_size.is_zero() {
            return Err(ConfigError::new("wifi.max_size", self.max_size, "a size above zero"));
        }
        check_time("wifi.max_air_time", self.max_air_time, us(1), ms(100))?;
        check_share("wifi.error_rate", self.error_rate)?;
        check_count("wifi.retry_limit", self.retry_limit, 0, 255)?;
        match self.others {
            Others::Saturated(n) => check_count("wifi.contenders", n, 0, MAX_CONTENDERS)?,
            Others::Load(share) if (0.0..=0.95).contains(&share) => {}
            Others::Load(share) => {
                return Err(ConfigError::new("wifi.busy", share, "a share of the air time between 0 and 0.95"));
            }
        }
        match self.others_air_time {
            Some(time) => check_time("wifi.others_air_time", time, us(1), ms(100)),
            None => Ok(()),
        }
    }

    /// The idle time before the backoff.
    fn aifs(&self) -> TimeDelta {
        self.sifs + self.slot * i64::from(self.aifsn)
    }

    /// Time after the data of a transmission until the medium is idle.
    fn closing(&self) -> TimeDelta {
        self.sifs + self.ack
    }

    /// An aggregate with as many packets of the nominal size as fit.
    fn full(&self, rate: DataRate) -> Ppdu {
        let mut ppdu = Ppdu::default();
        while ppdu.fits(self, rate, NOMINAL_BYTES) {
            ppdu.add(NOMINAL_BYTES);
        }
        ppdu
    }

    /// Air time of a transmission by another station.
    fn others_time(&self, rate: DataRate) -> TimeDelta {
        self.others_air_time.unwrap_or_else(|| self.full(rate).air_time(self, rate))
    }

    /// Rate of one station with full queues, without collisions: an aggregate in each cycle of contention, in its turn
    /// with the others.
    pub(super) fn sustained(&self, rate: DataRate) -> DataRate {
        let turns = match self.others {
            Others::Saturated(n) if !self.separate => f64::from(n),
            _ => 0.0,
        };
        self.in_turn(rate, turns, if self.separate { 1.0 } else { self.idle_share() })
    }

    /// The rate that so many stations with full queues get together beside the others.
    pub(super) fn shared(&self, rate: DataRate, stations: usize) -> DataRate {
        let turns = match self.others {
            Others::Saturated(n) => f64::from(n) / stations as f64,
            Others::Load(_) => 0.0,
        };
        self.in_turn(rate, turns, self.idle_share())
    }

    /// Share of the time that a load by others leaves.
    fn idle_share(&self) -> f64 {
        match self.others {
            Others::Saturated(_) => 1.0,
            Others::Load(share) => 1.0 - share,
        }
    }

    /// An aggregate in each cycle of contention, in which others have so many `turns`, in a share of the time.
    fn in_turn(&self, rate: DataRate, turns: f64, share: f64) -> DataRate {
        if rate == DataRate::ZERO {
            return rate;
        }
        let full = self.full(rate);
        let contention = (self.aifs() + self.closing()).as_secs_f64();
        let backoff = self.slot.as_secs_f64() * f64::from(self.cw_min) / 2.0;
        let own = contention + full.air_time(self, rate).as_secs_f64();
        let bits = f64::from(full.packets()) * f64::from(NOMINAL_BYTES) * 8.0 * (1.0 - self.error_rate);
        let other = contention + self.others_time(rate).as_secs_f64();
        // With more stations the least of their backoffs is shorter.
        let cycle = own + turns * other + backoff * 2.0;
        let cycle = if turns > 0.0 { cycle } else { own + backoff };
        DataRate::from_bps_f64(bits / cycle * share)
    }
}

#[cfg(test)]
mod tests;
