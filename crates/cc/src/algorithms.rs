//! The controllers for general use.

pub mod bbr_rtc;
pub mod fixed;
pub mod gcc;
pub mod nada;
pub mod scream;
pub mod sluice;
pub mod tfrc;
