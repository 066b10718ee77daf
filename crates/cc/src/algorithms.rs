//! The controllers for general use. Each has its parameters in a configuration, and a constructor from that and a
//! [`Start`](crate::Start); a [`Registry`](crate::Registry) makes them by name.

pub(crate) mod bbr_rtc;
pub(crate) mod fixed;
pub(crate) mod gcc;
pub(crate) mod nada;
pub(crate) mod scream;
pub(crate) mod sluice;
pub(crate) mod tfrc;

pub use bbr_rtc::{BbrRtc, Config as BbrRtcConfig};
pub use fixed::{Config as FixedConfig, Fixed};
pub use gcc::{Config as GccConfig, Gcc};
pub use nada::{Config as NadaConfig, Nada, NadaReceiver};
pub use scream::v1::{Config as ScreamConfig, Scream};
pub use scream::v2::{Config as Scream2Config, Scream as Scream2};
pub use sluice::{
    AnswerConfig as SluiceAnswerConfig, CompeteConfig as SluiceCompeteConfig, Config as SluiceConfig,
    CorrectionConfig as SluiceCorrectionConfig, DrainConfig as SluiceDrainConfig, GrowthConfig as SluiceGrowthConfig,
    MarkConfig as SluiceMarkConfig, NoiseConfig as SluiceNoiseConfig, PacingConfig as SluicePacingConfig,
    QueueConfig as SluiceQueueConfig, ServiceConfig as SluiceServiceConfig, Sluice,
};
pub use tfrc::{Config as TfrcConfig, Tfrc};
