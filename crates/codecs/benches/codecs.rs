//! Frames a second of each codec.

fn main() {}
