//! A call end over DCCP (RFC 5762): RTP and RTCP on one connection (RFC 5761), whose congestion control decides when
//! packets are sent.
//!
//! A [`DccpEnd`] is an [`Endpoint`] on a [`Connection`], with the same interface: the caller passes datagrams and the
//! time, calls [`DccpEnd::poll_transmit`] until it returns `None`, and waits until [`DccpEnd::poll_timeout`]. It
//! connects ([`DccpEnd::connect`]), or listens and accepts the first connection ([`DccpEnd::listen`]). By convention
//! the end that sends media connects; the thesis has a connection for each direction of media.
//!
//! The application's rules are those of S. Jero, 2013, section 3.2:
//! - Packets are handed over one by one, as to a kernel's socket: those allowed by congestion control are sent, others
//!   wait in the connection's send queue, and those refused by the queue are lost. A lost packet uses up its RTP
//!   sequence number, as in linphone, so that the receiver sees a gap; sender reports do not count it.
//! - The controller is notified of refused packets once per frame ([`SendRejected`](weir_cc::cue::SendRejected));
//!   packets that the queue has dropped since, in favour of others or past their deadline, count as refused. With each
//!   frame it may be given the transport's rate.
//! - The queue's size follows the frame sizes: see [`QueueSizing`].
//!
//! Media waits for the connection to open: earlier frames are dropped, and the first one afterwards is a key frame.
//! RTCP for which the queue has no room waits (RFC 5762, section 4.2), the newest compound only; its timer runs from
//! when it was made. A connection that has ended must be replaced by the caller: [`DccpEnd::set_connection`].
//!
//! Over DCCP a session passes packets one by one: those that congestion control permits are sent, the rest wait in the
//! connection's queue; the controller gets refusals once per frame. Where the thesis's text and code disagree, the
//! code is followed.

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

/// A DCCP packet to be sent over UDP; its bytes are in the caller's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DccpTransmit {
    /// Its properties as a datagram.
    pub transmit: connection::Transmit,
    /// Whether it carries RTP or RTCP rather than only DCCP's own signalling.
    pub has_data: bool,
}

/// The state of an end's connection.
enum Stage {
    Listening { connection: Box<connection::Config>, paused: bool },
    Connected(Box<Connected>),
}

/// A call end over DCCP; see the module documentation.
pub struct DccpEnd {
    config: DccpConfig,
    endpoint: Endpoint,
    stage: Stage,
}

impl DccpEnd {
    /// An end on a connection that is open or opening. Media packets are limited to the connection's packet size.
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

    /// An end that listens: the first DCCP-Request makes the connection; before it, other datagrams are dropped,
    /// nothing is sent and no timeout is due.
    pub fn listen(mut endpoint: Endpoint, connection: connection::Config, config: DccpConfig) -> Self {
        endpoint.set_paused(true);
        Self { config, endpoint, stage: Stage::Listening { connection: Box::new(connection), paused: false } }
    }

    /// The session.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
    /// The session, mutably. Pause it with [`Self::set_paused`].
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
    /// The connection, mutably; `None` while this end listens.
    pub fn connection_mut(&mut self) -> Option<&mut Connection> {
        match &mut self.stage {
            Stage::Listening { .. } => None,
            Stage::Connected(c) => Some(c.connection_mut()),
        }
    }
    /// Replaces the connection, for instance after it has ended, and returns the old one; `None` if this end was
    /// listening. Media waits until the new connection is open.
    pub fn set_connection(&mut self, connection: Connection, now: Timestamp) -> Option<Connection> {
        match &mut self.stage {
            Stage::Listening { .. } => {
                self.start(connection, now);
                None
            }
            Stage::Connected(c) => Some(c.replace(&mut self.endpoint, connection, now)),
        }
    }
    /// Counters of packets handed over to the connection.
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
    /// Stops or restarts the media source; RTCP continues.
    pub fn set_paused(&mut self, paused: bool) {
        match &mut self.stage {
            Stage::Listening { paused: wanted, .. } => *wanted = paused,
            Stage::Connected(c) => c.set_paused(&mut self.endpoint, paused),
        }
    }
    /// Ends the call: sends an RTCP BYE, then closes the connection. A listening end sends nothing.
    pub fn leave(&mut self) {
        if let Stage::Connected(c) = &mut self.stage {
            c.leave(&mut self.endpoint);
        }
    }

    /// Handles a UDP datagram; returns the session's outcome for the RTP or RTCP in it, if any.
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

    /// Writes the next datagram into `out`, replacing its contents; `None` if nothing is due. Call it until it returns
    /// `None`, after every input.
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
