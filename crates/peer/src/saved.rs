//! A call as files: a report, a scenario that repeats it in the simulator, and a capture of its packets.

mod capture;
mod report;
mod scenario;
mod tables;

pub use capture::capture;
pub use report::report;
pub use scenario::scenario;

/// The pictures that this end sends, as scenarios name them.
#[derive(Clone, PartialEq, Debug)]
pub struct Material {
    /// The built-in clip.
    pub clip: &'static str,
    /// Width and height.
    pub size: (u32, u32),
    /// Pictures a second.
    pub fps: f64,
}

/// Why a call cannot be saved in this form.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// Weir forwards in rooms.
    #[error("in a room Weir forwards what others send: that is no scenario")]
    Room,
    /// Weir receives alone.
    #[error("Weir sends no video in this call: there is nothing to simulate")]
    SendsNothing,
    /// There is nothing yet.
    #[error("the call has not been connected")]
    NotConnected,
    /// A link that is in no file.
    #[error("the call's link was not given as a scenario")]
    Link,
    /// The simulator does not have what the call has.
    #[error("not as a scenario: {0}")]
    Scenario(#[from] weir_lab::scenario::InputError),
    /// The page's template failed.
    #[error(transparent)]
    Report(#[from] weir_report::page::ReportError),
    /// A packet that no capture holds.
    #[error(transparent)]
    Capture(#[from] weir_report::pcap::PcapFileError),
}
