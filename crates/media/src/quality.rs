//! Quality metrics of pictures: PSNR, SSIM, spatial and temporal information, and the quality of a whole call.
//!
//! A [`Comparer`] compares a picture with its reference, a [`QualityMeter`] measures a call, an [`Activity`] a sequence
//! by itself.
//!
//! ```
//! use weir_media::clip::{Character, Clip, ClipSpec};
//! use weir_media::quality::{MeterConfig, QualityMeter};
//! use weir_media::{Decoded, FrameRate, Picture, PictureSource};
//! let mut clip = Clip::new(ClipSpec::new(Character::TalkingHead, 176, 144, FrameRate::new(30, 1)?))?;
//! let mut meter = QualityMeter::new(MeterConfig::default());
//! let mut picture = Picture::new(176, 144)?;
//! for i in 0..10 {
//!     clip.next_picture(&mut picture)?;
//!     meter.on_reference(i * 3_000, &picture);
//!     // Every second picture arrives, unharmed.
//!     if i % 2 == 0 {
//!         meter.on_received(i * 3_000, Decoded::Intact, &picture);
//!     }
//! }
//! meter.finish();
//! let report = meter.report();
//! assert_eq!((report.shown, report.missing), (5, 5));
//! assert_eq!(report.psnr_y.max(), Some(100.0));
//! assert!(report.psnr_y.min() < Some(45.0));
//! # Ok::<(), weir_media::MediaError>(())
//! ```

mod activity;
mod compare;
mod distribution;
mod gaussian;
mod meter;
mod psnr;
mod ssim;

pub use activity::{Activity, LumaRange, SiTi};
pub use compare::{Comparer, Comparison, Measures, Ssim};
pub use distribution::Distribution;
pub use meter::{FrameScore, MeterConfig, Outcome, PairTap, QualityMeter, QualityReport};
pub use psnr::{PSNR_CAP, PlaneErrors, Psnr};
