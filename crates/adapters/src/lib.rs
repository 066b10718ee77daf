//! Weir beside webrtc-rs: any controller of [`weir_cc`] in the interceptor chain of `rtc`, and `rtc`'s own estimator as a
//! controller in Weir's scenarios. For `rtc-interceptor` 0.21; sans-IO like both of them.
//!
//! # A controller in the chain
//!
//! [`CongestionControl`] takes the slot of the same name, below the pacer, and [`Rates`] has what the application reads: the rate
//! for its encoders.
//!
//! ```
//! use rtc_interceptor::{PacerBuilder, Registry, Slot, TwccReceiverBuilder, TwccSenderBuilder};
//! use weir_units::DataRate;
//! use weir_adapters::{CongestionControl, Settings};
//!
//! let weir = CongestionControl::new("nada", &Settings::default())?;
//! let rates = weir.rates();
//! let registry = Registry::new()
//!     .with(Slot::CongestionControl, weir)
//!     .with(Slot::Pacer, PacerBuilder::new().with_target_bitrate(rates.pacing_rate().as_bps_f64()).build())
//!     .with(Slot::TwccSender, TwccSenderBuilder::new().build())
//!     .with(Slot::TwccReceiver, TwccReceiverBuilder::new().build());
//! assert_eq!(rates.media_rate(), DataRate::from_kbps(300));
//! # let _ = registry.build();
//! # Ok::<(), weir_adapters::Refused>(())
//! ```
//!
//! With `rtc`'s `configure_congestion_control(registry, estimator, feedback, &mut media_engine)` an [`Estimator`] goes where
//! its own `Gcc` went. That function's pacer then sends at the media rate.
//!
//! Beside str0m, in RTP mode with its own estimate off: the module `str0m`, behind the feature of that name.
//!
//! # What the chain does not let through
//!
//! - Probes: padding made here would pass neither the pacer nor the numbering, which are closer to the application. A
//!   controller that asks for probe clusters goes without.
//! - Repair planned with the rate (`Target::repair`), and the state of the RTP queue.
//! - Receiver halves: controllers that need one, and those that live on receiver reports alone, are refused by name.
//! - Retransmissions on an SSRC of their own (RFC 4588): `rtc-interceptor` 0.21 does not record them in its history, so no
//!   controller in this slot sees them.

mod core;
mod estimator;
mod interceptor;
mod rates;
pub mod rtc_gcc;
mod sent_numbers;
mod settings;
#[cfg(feature = "str0m")]
pub mod str0m;

pub use estimator::Estimator;
pub use interceptor::CongestionControl;
pub use rates::Rates;
pub use settings::Settings;
pub use weir_cc::flow::Refused;
