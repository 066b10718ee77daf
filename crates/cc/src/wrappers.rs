//! Controllers around others: probing by repair packets, bounds by a forecast of capacity; and methods that follow a
//! forecast alone.

pub mod fec_probing;
pub mod foreseen;
pub mod map_guided;
