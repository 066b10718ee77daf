//! `weir live`: what runs in real time.

mod call;
mod dccp;
mod emulate;
mod privilege;
mod testbed;
#[cfg(feature = "webrtc")]
mod webrtc;

#[cfg(any(all(test, feature = "schema"), feature = "webrtc"))]
pub(crate) use call::Report as CallReport;
#[cfg(all(test, feature = "schema"))]
pub(crate) use dccp::Report as DccpReport;
pub(crate) use dccp::list_ccids;
pub(crate) use privilege::with_privilege;
#[cfg(all(test, feature = "schema"))]
pub(crate) use testbed::Json as TestbedJson;

use crate::Done;
use crate::args::live::LiveCommand;
use crate::session::Session;

pub(crate) fn live(session: &Session, command: &LiveCommand) -> Done {
    match command {
        LiveCommand::Call { command } => call::call(session, command),
        #[cfg(feature = "webrtc")]
        LiveCommand::Webrtc(a) => webrtc::serve_page(session, a),
        LiveCommand::Emulate(a) => emulate::emulate(session, a),
        LiveCommand::Testbed(a) => testbed::testbed(session, a),
        LiveCommand::Dccp { command } => dccp::dccp(session, command),
    }
}
