//! Weir's deterministic event simulator: agents that send packets to each other over the links of `weir-path`.
//!
//! A [`Simulator`] connects [`Agent`]s (sans-IO ends of flows) by routes over links. Time is simulated and advances
//! from event to event; the same agents, links and seed give the same packets at the same nanoseconds. Besides the
//! engine there are [`topology`] builders, and UDP sources and sinks ([`udp`]) and TCP ([`tcp`]) as cross traffic.
//!
//! ```
//! use weir_path::{Limit, LinkConfig};
//! use weir_sim::{Endpoint, Outcome, Simulator, topology, udp};
//! use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};
//! let mut sim = Simulator::new(1);
//! let mut link = LinkConfig::constant(DataRate::from_mbps(2), TimeDelta::from_millis(50));
//! link.limit = Limit::Size(DataSize::from_bytes(75_000));
//! let route = topology::point_to_point(&mut sim, &topology::DuplexConfig::symmetric(link))?;
//! let source = udp::Source::constant(DataRate::from_mbps(1), DataSize::from_bytes(1_000));
//! let source = sim.add_agent(Endpoint::UdpSource(source), Timestamp::ZERO);
//! let sink = sim.add_agent(Endpoint::UdpSink(udp::Sink::default()), Timestamp::ZERO);
//! sim.connect(source, sink, &route);
//! assert_eq!(sim.run_until(Timestamp::from_millis(990)), Outcome::Reached);
//! let Endpoint::UdpSink(sink) = sim.agent(sink) else { panic!("an agent stays what it is") };
//! // One packet each 8 ms from 0 on; each takes 4 ms to transmit and 50 ms to travel.
//! assert_eq!(sink.packets(), 118);
//! assert_eq!(sink.mean_delay(), Some(TimeDelta::from_millis(54)));
//! # Ok::<(), weir_path::ConfigError>(())
//! ```

mod agent;
mod distribution;
mod endpoint;
mod engine;
mod ids;
mod log_histogram;
mod observer;
mod packet;
mod route;
mod seed;
mod slab;
pub mod tcp;
mod tcp_segment;
mod timers;
pub mod topology;
pub mod udp;

pub use agent::Agent;
pub use distribution::{Distribution, DistributionError, Random};
pub use endpoint::Endpoint;
pub use engine::{Outcome, Side, Simulator, Totals};
pub use ids::{AgentId, LinkId};
pub use log_histogram::LogHistogram;
pub use observer::{Observer, Place, StreamHash};
pub use packet::{Body, Packet};
pub use route::Route;
pub use seed::mix;
