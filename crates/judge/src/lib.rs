//! Judgements of results: rows with goals, the criteria of RFCs, other implementations, papers' numbers, tuning, maps of
//! stability, harm to others, the worth of cues, ordinary calls that fail, contradictions between numbers, fits of links and causes that
//! are known, gates for builds,
//! sweeps of parameters, and fits and predictions of many recorded calls.

pub mod calls;
pub mod causes;
pub mod contradictions;
pub mod cues;
mod draw;
pub mod fits;
pub mod gate;
pub mod harm;
pub mod paper;
pub mod pathologies;
pub mod rfc;
pub mod rfc9743;
pub mod rows;
pub mod stability;
pub mod sweep;
pub mod tune;
pub mod twins;
