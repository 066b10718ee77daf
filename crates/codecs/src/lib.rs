//! Video encoders and decoders by foreign libraries, behind the traits of `weir_media`.
//!
//! This is the only room that calls foreign code, and each library has a feature of its own.
