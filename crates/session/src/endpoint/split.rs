//! Splits an endpoint's configuration into streams and paths.

use crate::config::{EndpointConfig, IncomingConfig, OutgoingConfig, ReceiveConfig, SendConfig};
use crate::feedback::TwccWriter;
use crate::receiver::ReceivePath;
use crate::sender::PathConfig;
use weir_units::{PathId, Timestamp};

impl SendConfig {
    /// The first stream and the path. `first` is the path's first transport-wide number.
    pub(crate) fn split(self, endpoint: &EndpointConfig, first: u64) -> (OutgoingConfig, PathConfig) {
        let stream = OutgoingConfig {
            identity: endpoint.outgoing(),
            demand: self.demand,
            source: self.source,
            packetiser: self.packetiser,
            repair: self.repair,
            retransmission: self.retransmission,
            resilience: self.resilience,
            max_queue_age: self.max_queue_age,
            picture: endpoint.picture,
        };
        let path = PathConfig {
            id: PathId::FIRST,
            controller: self.controller,
            per_packet_feedback: self.per_packet_feedback,
            reports: self.reports,
            circuit_breaker: self.circuit_breaker,
            feedback_guard: self.feedback_guard,
            ecn: endpoint.ecn,
            first,
        };
        (stream, path)
    }
}

impl ReceiveConfig {
    /// The first stream and the path.
    pub(crate) fn split(
        self,
        endpoint: &EndpointConfig,
        twcc: TwccWriter,
        now: Timestamp,
    ) -> (IncomingConfig, ReceivePath) {
        let stream = IncomingConfig {
            identity: endpoint.incoming(),
            media: self.media,
            repair: self.repair,
            nack: self.nack,
            resilience: self.resilience,
            playout_deadline: self.playout_deadline,
            adaptive_playout: self.adaptive_playout,
            skew_playout: self.skew_playout,
            content: self.content,
            picture: endpoint.picture,
        };
        (stream, ReceivePath::new(self.feedback, self.reports, self.controller, twcc, now))
    }
}
