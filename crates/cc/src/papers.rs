//! Controllers that exist to reproduce one paper's results.

pub(crate) mod cnadu;
pub(crate) mod copa;
pub(crate) mod dpfec;
pub(crate) mod fbra;
pub(crate) mod foreseen;
pub(crate) mod gcc_remb;
pub(crate) mod gcc_scream2;
pub(crate) mod linphone;
pub(crate) mod ndtc;
pub(crate) mod pudica;
pub(crate) mod rrtcc;
pub(crate) mod rtcp_aimd;
pub(crate) mod rtcp_thresholds;
pub(crate) mod sqp;
pub(crate) mod tfrc_rtcp;
pub(crate) mod tmmbr;
pub(crate) mod vidaptive;
pub(crate) mod vivace;

pub use cnadu::{Cnadu, CnaduReceiver, Config as CnaduConfig};
pub use copa::{Config as CopaConfig, Copa};
pub use dpfec::{Config as DpFecConfig, DpFec, impact, max_interval_loss};
pub use fbra::{Config as FbraConfig, Fbra};
pub use foreseen::{Config as ForeseenConfig, LateScheduling, Omniscient, RateSwitching, SwitchingReceiver};
pub use gcc_remb::{Config as GccRembConfig, GccRemb, GccRembReceiver};
pub use gcc_scream2::GccScream2;
pub use linphone::{Config as LinphoneConfig, Linphone, Over};
pub use ndtc::{Config as NdtcConfig, Ndtc};
pub use pudica::{Config as PudicaConfig, Pudica};
pub use rrtcc::{Config as RrtccConfig, Rrtcc, RrtccReceiver};
pub use rtcp_aimd::{Config as RtcpAimdConfig, RtcpAimd};
pub use rtcp_thresholds::{Config as RtcpThresholdsConfig, RtcpThresholds};
pub use sqp::{Config as SqpConfig, Sqp};
pub use tfrc_rtcp::{Config as TfrcRtcpConfig, TfrcRtcp};
pub use tmmbr::{AssistedConfig, AssistedReceiver, Config as TmmbrConfig, Tmmbr, TmmbrA, TmmbrB, TmmbrReceiver};
pub use vidaptive::{Config as VidaptiveConfig, Filled, Vidaptive};
pub use vivace::{Config as VivaceConfig, Vivace};
