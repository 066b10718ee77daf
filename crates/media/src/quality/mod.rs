//! How much a picture has suffered on its way.

mod psnr;

pub use psnr::{PSNR_CAP, PlaneErrors, Psnr};
