//! A call end over DCCP (RFC 5762): RTP and RTCP on one connection (RFC 5761), whose congestion control says when packets leave.
//!
//! A [`DccpEnd`] is an [`Endpoint`] on a [`Connection`], of the same shape: its owner brings datagrams and the time, calls
//! [`DccpEnd::poll_transmit`] until it gives nothing, and waits until [`DccpEnd::poll_timeout`]. It connects
//! ([`DccpEnd::connect`]), or listens and accepts the first connection that is requested ([`DccpEnd::listen`]). By convention
//! the end that sends media connects; the thesis has a connection for each direction of media.
//!
//! The rules of the application are those of S. Jero, 2013, section 3.2:
//! - Packets are handed over one by one, as a kernel's socket has them: what congestion control lets leave leaves, the rest waits
//!   in the connection's send queue, and what that refuses is lost. RTP sequence numbers of lost packets are used up, as in
//!   linphone, so that the receiver sees a gap; sender reports do not count them.
//! - The controller hears of refused packets once a frame ([`SendRejected`](weir_cc::cue::SendRejected)); packets that the queue
//!   has dropped since, in favour of others or past their deadline, count as refused ones. With each frame it may hear the transport's rate.
//! - The queue follows the frames' sizes: see [`QueueSizing`].
//!
//! Media waits for the connection to open: frames until then are thrown away, and the first one after is a key frame. RTCP that
//! the queue has no room for waits for it (RFC 5762, section 4.2), the newest alone; its timer runs from when it was made. A
//! connection that has ended is the owner's to replace: [`DccpEnd::set_connection`].

mod config;
mod connected;
mod counters;

pub use config::{DccpConfig, QueueSizing, video_connection};
pub use counters::DccpCounters;

use crate::endpoint::Endpoint;
use crate::outcome::Outcome;
use connected::Connected;
use weir_cc::tunable::SetupError;
use weir_dccp::connection::{self, Connection};
use weir_units::Timestamp;

/// A DCCP packet that is to leave by UDP; its bytes are in the buffer that the caller gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DccpTransmit {
    /// What there is to say of it as a datagram.
    pub transmit: connection::Transmit,
    /// Whether it carries RTP or RTCP rather than being DCCP's own.
    pub has_data: bool,
}

/// What an end has of a connection.
enum Stage {
    Listening { connection: Box<connection::Config>, paused: bool },
    Connected(Box<Connected>),
}

/// See the top of this module.
pub struct DccpEnd {
    config: DccpConfig,
    endpoint: Endpoint,
    stage: Stage,
}

impl DccpEnd {
    /// An end on a connection that is open or will be. Packets of media are made to fit the connection's.
    pub fn new(mut endpoint: Endpoint, connection: Connection, config: DccpConfig, now: Timestamp) -> Self {
        let stage = Stage::Connected(Box::new(Connected::new(&mut endpoint, connection, config, now)));
        Self { config, endpoint, stage }
    }

    /// An end that connects.
    ///
    /// # Errors
    /// As [`Connection::connect`].
    pub fn connect(
        endpoint: Endpoint,
        connection: connection::Config,
        config: DccpConfig,
        now: Timestamp,
    ) -> Result<Self, SetupError> {
        Ok(Self::new(endpoint, Connection::connect(connection, now)?, config, now))
    }

    /// An end that listens: the first DCCP-Request makes the connection, and datagrams of other kinds are dropped before it. Until
    /// then nothing is sent and no timeout is due.
    pub fn listen(mut endpoint: Endpoint, connection: connection::Config, config: DccpConfig) -> Self {
        endpoint.set_paused(true);
        Self { config, endpoint, stage: Stage::Listening { connection: Box::new(connection), paused: false } }
    }

    /// The session.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
    /// The session to change. Pause it by [`Self::set_paused`].
    pub fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }
    /// The connection; `None` while this end listens.
    pub fn connection(&self) -> Option<&Connection> {
        match &self.stage {
            Stage::Listening { .. } => None,
            Stage::Connected(c) => Some(c.connection()),
        }
    }
    /// The connection to change; `None` while this end listens.
    pub fn connection_mut(&mut self) -> Option<&mut Connection> {
        match &mut self.stage {
            Stage::Listening { .. } => None,
            Stage::Connected(c) => Some(c.connection_mut()),
        }
    }
    /// Replaces the connection, as when it has ended, and returns the old one; `None` where this end was listening. Media waits
    /// until the new connection is open.
    pub fn set_connection(&mut self, connection: Connection, now: Timestamp) -> Option<Connection> {
        match &mut self.stage {
            Stage::Listening { .. } => {
                self.start(connection, now);
                None
            }
            Stage::Connected(c) => Some(c.replace(&mut self.endpoint, connection, now)),
        }
    }
    /// What became of packets on their way into the connection.
    pub fn counters(&self) -> DccpCounters {
        match &self.stage {
            Stage::Listening { .. } => DccpCounters::default(),
            Stage::Connected(c) => c.counters(),
        }
    }
    /// Whether media may flow.
    pub fn is_open(&self) -> bool {
        matches!(&self.stage, Stage::Connected(c) if c.is_open())
    }
    /// Stops or restarts the media source; RTCP goes on.
    pub fn set_paused(&mut self, paused: bool) {
        match &mut self.stage {
            Stage::Listening { paused: wanted, .. } => *wanted = paused,
            Stage::Connected(c) => c.set_paused(&mut self.endpoint, paused),
        }
    }
    /// Ends the call: an RTCP goodbye leaves, and then the connection closes. An end that listens has nobody to send to.
    pub fn leave(&mut self) {
        if let Stage::Connected(c) = &mut self.stage {
            c.leave(&mut self.endpoint);
        }
    }

    /// A UDP datagram has arrived; what the session made of the RTP or RTCP that it brought, if any.
    pub fn handle_datagram(&mut self, now: Timestamp, datagram: &connection::Datagram<'_>) -> Option<Outcome> {
        match &mut self.stage {
            Stage::Listening { connection, .. } => {
                if let Ok(accepted) = Connection::accept(connection.as_ref().clone(), now, datagram, None) {
                    self.start(accepted, now);
                }
                None
            }
            Stage::Connected(c) => c.handle_datagram(&mut self.endpoint, now, datagram),
        }
    }

    /// The deadline has passed.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        match &mut self.stage {
            Stage::Listening { .. } => self.endpoint.handle_timeout(now),
            Stage::Connected(c) => c.handle_timeout(&mut self.endpoint, now),
        }
    }

    /// When to call [`Self::handle_timeout`] next.
    pub fn poll_timeout(&mut self, now: Timestamp) -> Option<Timestamp> {
        match &mut self.stage {
            Stage::Listening { .. } => None,
            Stage::Connected(c) => c.poll_timeout(&mut self.endpoint, now),
        }
    }

    /// Writes the next datagram into `out`, in place of what is there; `None` where nothing is due. Call it until it gives nothing, after
    /// every input.
    pub fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<DccpTransmit> {
        let Stage::Connected(c) = &mut self.stage else { return None };
        let transmit = c.poll_transmit(&mut self.endpoint, now, out)?;
        let has_data = transmit.size.as_bytes() > transmit.header as u64;
        Some(DccpTransmit { transmit, has_data })
    }

    /// Ends listening with this connection.
    fn start(&mut self, connection: Connection, now: Timestamp) {
        let Stage::Listening { paused, .. } = self.stage else { return };
        let mut connected = Connected::new(&mut self.endpoint, connection, self.config, now);
        connected.set_paused(&mut self.endpoint, paused);
        self.stage = Stage::Connected(Box::new(connected));
    }
}
