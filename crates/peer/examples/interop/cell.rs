//! A call of a peer with a service of its own through a link that loses packets, and what came of it.

use crate::peers::{Job, SIZE, Said, call};
use std::net::IpAddr;
use std::sync::Arc;
use weir_cc::{Limits, Registry};
use weir_media::VideoCodec;
use weir_media::clip::Character;
use weir_path::{LinkConfig, Loss};
use weir_peer::call::{LinkPlan, Settings, Snapshot};
use weir_peer::server::{ClipConfig, ServerConfig, serve};
use weir_units::{DataRate, TimeDelta};

/// Outcome of a call.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) job: Job,
    pub(crate) said: Said,
    /// Statistics by the service, if it took the offer.
    pub(crate) call: Option<Snapshot>,
}

impl Cell {
    /// Frames decoded at the receiving end.
    pub(crate) fn frames(&self) -> u64 {
        let own = self.call.as_ref().map_or(0, |c| c.totals.frames_decoded + c.totals.frames_damaged);
        if self.job.weir_sends { self.said.frames } else { own }
    }
    /// Retransmitted packets of use at the receiving end.
    pub(crate) fn recovered(&self) -> Option<u64> {
        if self.job.weir_sends { self.said.retransmissions } else { self.call.as_ref().map(|c| c.totals.recovered) }
    }
    /// Retransmissions sent.
    pub(crate) fn retransmitted(&self) -> Option<u64> {
        if self.job.weir_sends { self.call.as_ref().map(|c| c.totals.retransmitted) } else { self.said.retransmissions }
    }
    /// Whether a line of the offer or the answer has this text.
    pub(crate) fn offers(&self, text: &str) -> bool {
        self.said.offer.lines().any(|l| l.starts_with("a=") && l.contains(text))
    }
    fn answers(&self, text: &str) -> bool {
        self.said.answer.lines().any(|l| l.starts_with("a=") && l.contains(text))
    }
    /// Whether the answer has repair packets.
    pub(crate) fn agrees_on_fec(&self) -> bool {
        self.answers("flexfec") || self.answers("ulpfec")
    }
    /// Repair packets sent, and those that have come, where it is known.
    pub(crate) fn repair(&self) -> (Option<u64>, Option<u64>) {
        let own = self.call.as_ref().map(|c| (c.totals.fec_sent, c.totals.fec_received));
        if self.job.weir_sends { (own.map(|c| c.0), self.said.fec) } else { (None, own.map(|c| c.1)) }
    }
    /// The feedback that controls the sender, as agreed.
    pub(crate) fn feedback(&self) -> &'static str {
        let named = [("ack ccfb", "RFC 8888"), ("transport-cc", "TWCC"), ("goog-remb", "REMB")];
        let agreed = named.into_iter().find(|(text, _)| self.answers(text));
        agreed.map_or("none", |(_, name)| name)
    }
    /// Repair other than retransmissions that is offered.
    pub(crate) fn repair_offered(&self) -> String {
        let names = ["flexfec", "ulpfec"].into_iter().filter(|n| self.offers(n));
        names.collect::<Vec<_>>().join(" ")
    }
}

/// A link in both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// Share of packets lost.
    pub(crate) loss: f64,
    /// One way.
    pub(crate) delay: TimeDelta,
}

impl Path {
    pub(crate) const DELAY: TimeDelta = TimeDelta::from_millis(20);
}

/// Makes a call, with media at this address, through such a link.
pub(crate) async fn run(job: Job, address: IpAddr, path: Path) -> Cell {
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(2) };
    let constant = LinkConfig::constant(DataRate::from_mbps(10), path.delay);
    let lossy = LinkConfig { loss: Loss::Independent { share: path.loss }, ..constant };
    let config = ServerConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        media: Some(address),
        token: None,
        settings: Settings { controller: "gcc".into(), limits },
        start_rate: DataRate::from_kbps(500),
        codec: VideoCodec::Vp8,
        clip: ClipConfig { character: Character::TalkingHead, size: SIZE, rate: "30".parse().expect("a rate") },
        link: Some(LinkPlan { forward: vec![lossy.clone()], reverse: vec![lossy], seed: 5, network: None }),
        limits: weir_peer::server::Limits::default(),
    };
    let service = serve(config, Arc::new(Registry::builtin())).await.expect("started");
    let said = call(&job, &service).await;
    let call = service.calls().pop().map(|(_, call)| call);
    service.stop().await;
    Cell { job, said, call }
}
