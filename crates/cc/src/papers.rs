//! Controllers that exist to reproduce one paper's results.

pub mod cnadu;
pub mod dpfec;
pub mod fbra;
pub mod gcc_remb;
pub mod gcc_scream2;
pub mod linphone;
pub mod rrtcc;
pub mod rtcp_aimd;
pub mod rtcp_thresholds;
pub mod tmmbr;
