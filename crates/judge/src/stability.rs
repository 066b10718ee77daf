//! The stability map: one flow alone on a fixed link, over a grid of round-trip time, capacity and feedback interval.
//!
//! A cell is a run of 40 s, of which the last 20 s are judged. Its **swing** is the peak-to-trough of the rate over its
//! mean, of means over 2 s, or two round trips where that is longer: drains every 8 s, which are wanted, are averaged and shorter
//! than the window. A cell **oscillates** if its swing is above 0.3, or the 95th percentile of the queueing delay is above the
//! larger of 100 ms and twelve packets' time; it is **starved** if it uses less than 0.8 of the link.

mod grid;
mod plot;

pub use grid::{Cell, Grid, Map, Region};
pub use plot::write;
