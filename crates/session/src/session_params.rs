//! Session parameters that can be changed during the session.

use crate::receiver_model::ReceiverModel;
use weir_cc::ReportPlan;
use weir_media::ParamError;
use weir_units::TimeDelta;

const KIND: &str = "session parameter";

/// The RTP profile, which determines the timing and kinds of RTCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Profile {
    /// RFC 3551: reports by RFC 3550's timer with its reduced minimum (section 6.2), and no feedback messages: neither
    /// per-packet feedback nor REMB, TMMBR and so on.
    Avp,
    /// RFC 4585: feedback messages, also between regular reports.
    #[default]
    Avpf,
}

/// Blocks of extended reports, and the one-way delay that accompanies them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct XrBlocks {
    /// Receiver reference time (RFC 3611, section 4.4), from which a receiver measures the round-trip time.
    pub reference_time: bool,
    /// Loss run lengths (RFC 3611, section 4.1).
    pub loss_rle: bool,
    /// Discard run lengths (RFC 7097).
    pub discard_rle: bool,
    /// Run lengths of loss after repair (RFC 5725), if there is repair.
    pub post_repair_loss_rle: bool,
    /// One-way delay, in an APP packet.
    pub one_way_delay: bool,
}

impl XrBlocks {
    /// All of them.
    pub const ALL: Self = Self {
        reference_time: true,
        loss_rle: true,
        discard_rle: true,
        post_repair_loss_rle: true,
        one_way_delay: true,
    };

    /// The blocks required by a controller's plan.
    pub(crate) fn of_plan(plan: Option<&ReportPlan>) -> Self {
        match plan {
            Some(p) if p.extended => Self::ALL,
            _ => Self { reference_time: plan.is_some(), ..Self::default() },
        }
    }
    /// Whether packets must be tracked individually.
    pub(crate) const fn has_traces(&self) -> bool {
        self.loss_rle || self.discard_rle || self.post_repair_loss_rle
    }
}

/// Rapid synchronisation (RFC 6051): NTP timestamps in RTP header extensions, and a request for a sender report until
/// one is received. The value is the extension's identifier, 1 to 14.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RapidSynchronisation {
    /// Off: sender reports only.
    #[default]
    Off,
    /// 64-bit timestamps (section 3.3, variant A).
    Ntp64(u8),
    /// 56-bit timestamps (section 3.3, variant B).
    Ntp56(u8),
}

impl RapidSynchronisation {
    /// Size of the element with its one-byte header.
    pub(crate) const fn element_size(&self) -> u32 {
        match self {
            Self::Off => 0,
            Self::Ntp64(_) => 9,
            Self::Ntp56(_) => 8,
        }
    }
}

/// Parameters of a session.
///
/// ```
/// use weir_session::{Profile, SessionParams};
/// let mut params = SessionParams::default();
/// params.set("profile", "avp")?;
/// params.set("rtcp_interval_ms", "250")?;
/// assert_eq!(params.profile, Profile::Avp);
/// assert!(params.set("colour", "red").is_err());
/// # Ok::<(), weir_media::ParamError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SessionParams {
    /// The profile.
    pub profile: Profile,
    /// Least interval of regular reports; `None` leaves it to the configuration and the controller's plan. RTCP's
    /// bandwidth share remains an upper bound of their rate.
    pub rtcp_interval: Option<TimeDelta>,
    /// Blocks of extended reports; `None` leaves them to the controller's plan.
    pub xr: Option<XrBlocks>,
    /// Rapid synchronisation.
    pub rapid_synchronisation: RapidSynchronisation,
    /// The program whose receiving end this end behaves as: when it reports packets, and requests lost ones and key frames.
    pub receiver: ReceiverModel,
}

impl SessionParams {
    /// The names accepted by [`Self::set`].
    pub const NAMES: [&'static str; 5] = ["profile", "rtcp_interval_ms", "xr", "rapid_synchronisation", "receiver"];

    /// Sets a parameter by name:
    ///
    /// | name | value |
    /// |---|---|
    /// | `profile` | `avp` or `avpf` |
    /// | `rtcp_interval_ms` | milliseconds up to 60,000, or `default` |
    /// | `xr` | some of `reference_time`, `loss_rle`, `discard_rle`, `post_repair_loss_rle`, `one_way_delay` with commas between, `none`, or `default` |
    /// | `rapid_synchronisation` | `off`, `ntp-64` or `ntp-56`, with extension identifiers 4 and 5 |
    /// | `receiver` | `weir` or `chromium`: [`ReceiverModel`] |
    ///
    /// # Errors
    /// An unknown name, or an unsupported value. Nothing changes then.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ParamError> {
        let wrong = |expected: &str| Err(ParamError::value(KIND, name, value, expected));
        match name {
            "profile" => {
                self.profile = match value {
                    "avp" => Profile::Avp,
                    "avpf" => Profile::Avpf,
                    _ => return wrong("avp or avpf"),
                }
            }
            "rtcp_interval_ms" => {
                self.rtcp_interval = match value.parse() {
                    Ok(ms @ 0..=60_000) => Some(TimeDelta::from_millis(ms)),
                    _ if value == "default" => None,
                    _ => return wrong("whole milliseconds up to 60000, or default"),
                }
            }
            "xr" => {
                let mut xr = XrBlocks::default();
                for block in value.split(',').map(str::trim) {
                    match block {
                        "reference_time" => xr.reference_time = true,
                        "loss_rle" => xr.loss_rle = true,
                        "discard_rle" => xr.discard_rle = true,
                        "post_repair_loss_rle" => xr.post_repair_loss_rle = true,
                        "one_way_delay" => xr.one_way_delay = true,
                        "none" | "default" if block == value => {}
                        _ => {
                            return wrong(
                                "reference_time, loss_rle, discard_rle, post_repair_loss_rle, one_way_delay, or none or \
                                 default alone",
                            );
                        }
                    }
                }
                self.xr = (value != "default").then_some(xr);
            }
            "rapid_synchronisation" => {
                self.rapid_synchronisation = match value {
                    "off" => RapidSynchronisation::Off,
                    "ntp-64" => RapidSynchronisation::Ntp64(4),
                    "ntp-56" => RapidSynchronisation::Ntp56(5),
                    _ => return wrong("off, ntp-64 or ntp-56"),
                }
            }
            "receiver" => match ReceiverModel::named(value) {
                Some(model) => self.receiver = model,
                None => return wrong("weir or chromium"),
            },
            _ => return Err(ParamError::unknown(KIND, name, &Self::NAMES)),
        }
        Ok(())
    }

    /// Checks the fields. Errors: the first invalid one.
    pub fn check(&self) -> Result<(), ParamError> {
        if let RapidSynchronisation::Ntp64(id) | RapidSynchronisation::Ntp56(id) = self.rapid_synchronisation
            && !(1..=14).contains(&id)
        {
            return Err(ParamError::value(KIND, "rapid_synchronisation", id, "an extension identifier from 1 to 14"));
        }
        match self.rtcp_interval.filter(|t| t.is_negative() || *t > TimeDelta::from_secs(60)) {
            Some(t) => Err(ParamError::value(KIND, "rtcp_interval", t, "zero to 60 s")),
            None => Ok(()),
        }
    }
}
