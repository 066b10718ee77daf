//! Scenario files: their contents, parsing and resolution.
//!
//! A file is TOML with units in its quantities; `scenarios/schema.json` describes every field. It is read by
//! [`ScenarioFile`], which checks every variant with every controller at once, and becomes one [`Scenario`] per run:
//! plain values without references.
//!
//! ```
//! use weir_cc::Registry;
//! use weir_scenario::ScenarioFile;
//! let text = r#"
//!     title = "One flow on a small link"
//!     duration = "10 s"
//!     [links.bottleneck]
//!     rate = "2 Mbps"
//!     delay = "50 ms"
//!     [rtp.video]
//!     controller = "fixed"
//!     start_rate = "1 Mbps"
//! "#;
//! let registry = Registry::builtin();
//! let file = ScenarioFile::parse("small", text, ".".as_ref(), &registry)?;
//! let scenario = file.scenario(None, None, &registry)?;
//! assert_eq!(scenario.flows[0].name, "video");
//! # Ok::<(), weir_scenario::InputError>(())
//! ```

pub mod bottleneck;
mod builtin;
mod capacity;
mod capacity_text;
mod checks;
mod choice;
mod clock;
mod dccp;
pub mod embedded;
mod error;
mod file;
mod forecast;
mod impairment;
mod limits;
mod link;
mod media;
mod members;
mod middlebox;
mod model;
mod network_text;
mod parameters;
mod paths;
mod pause;
mod quantity;
mod queue;
mod radio;
mod raw;
mod request;
mod resolve;
mod schema;
mod spanned;
mod station;
mod steps;
pub mod suggest;
mod traces;
mod tree;

pub use builtin::{file as builtin_file, scenarios as builtin_scenarios};
pub use capacity_text::{CapacityPoint, CapacityText, capacity_texts};
pub use clock::{Clock, ClockStep, Clocks};
pub use dccp::{DccpFlow, DccpSettings};
pub use error::InputError;
pub use file::{MAX_SCENARIO, ScenarioFile};
pub use forecast::{Expected, Forecast, Foreknown, Foretold};
pub use limits::differing_limits;
pub use media::*;
pub use model::*;
pub use network_text::NetworkText;
pub use parameters::{split_parameters, with_parameters};
pub use paths::{FlowPath, Multipath};
pub use pause::Pause;
pub use quantity::{parse_rate, parse_time};
pub use schema::schema;
pub use traces::read_text;

#[cfg(test)]
mod tests;
