//! Arguments of `weir live dccp`.

use crate::args::OutputArgs;
use crate::output::Failure;
use clap::{ArgAction, Subcommand};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use weir_dccp::ccid::Registry;
use weir_dccp::connection::{Ccids, Config};
use weir_dccp::packet::ServiceCode;
use weir_dccp::queue::QueueConfig;
use weir_lab::scenario::InputError;
use weir_live::dccp::{DCCP_UDP_PORT, transfer::MIN_DATAGRAM};
use weir_units::{DataRate, DataSize, TimeDelta};

pub(super) const EXAMPLES: &str = "\
DCCP (RFC 4340) carries datagrams under congestion control: what is lost stays lost, and how fast data leave is the CCID's
say. It runs over UDP (RFC 6773), here between two Weirs; every datagram has a number and a checksum, so that what comes is
known to be whole. CCID 2 is TCP-like, CCID 3 smooth (TFRC), CCID 4 TFRC for small packets, CCID 5 CUBIC: see weir show ccids.

Examples:
  weir live dccp serve --listen 0.0.0.0                       receive at UDP port 6511 of all addresses until Ctrl-C
  weir live dccp send 192.0.2.7 --size 1GB --ccid 3           as fast as CCID 3 lets it
  weir live dccp send 192.0.2.7 --duration 30s --rate 5Mbit --packet-size 1000
  weir live dccp send '[2001:db8::7]:6600' --duration 10s --ccid 5,2 --json | jq .rate_bps
  weir show ccids
  weir live emulate --rate 50mbps --delay 10ms --queue 50ms --loss 0.1% --right 'weir live dccp serve --once --listen 0.0.0.0' \\
      -- sh -c 'weir live dccp send $WEIR_PEER --duration 10s'";

#[derive(Subcommand, Debug)]
pub(crate) enum DccpCommand {
    /// Receive data, and report rate and loss
    #[command(after_help = "\
Each connection is reported every second on standard error, and as a whole at its end on standard output. Ctrl-C closes those that
are open and ends it. Any of the CCIDs given is accepted for received data, by the order of both ends' lists. Connections are limited
in number, and silent ones give way to newcomers; idle ones are reset; many half-open ones are answered by Init Cookies, without
memory.

Examples:
  weir live dccp serve
  weir live dccp serve --listen '[::]:6600' --once --json
  weir live dccp serve --ccid 3 --duration 60s")]
    Serve(ServeArgs),
    /// Send data as fast as congestion control permits, or at a rate
    #[command(after_help = "\
Without --size and --duration it sends until Ctrl-C. The connection closes in order however it ends, and a summary
is printed. Exit code 1 if the connection could not be opened or was broken.

Examples:
  weir live dccp send 192.0.2.7 --size 100MB
  weir live dccp send 192.0.2.7 --duration 30s --ccid 3 --json
  weir live dccp send localhost:6600 --rate 500kbit --packet-size 200 --ccid 4
  weir live dccp send 192.0.2.7 --size 1GB --ccid 2 --param some_parameter=0.5      (names: weir show ccids)")]
    Send(SendArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct ConnectionArgs {
    /// CCIDs to negotiate, in order of preference, such as 3 or 5,2
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub(crate) ccid: Option<Vec<u8>>,
    /// A parameter of the CCIDs, any number of times: NAME=VALUE for each that has it, or CCID.NAME=VALUE
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) param: Vec<String>,
    /// DCCP port of the server, inside the UDP port
    #[arg(long, value_name = "PORT", default_value = "5001")]
    pub(crate) dccp_port: u16,
    /// Service code, four letters or a number, which both ends have to share
    #[arg(long, value_name = "CODE", default_value = "WEIR")]
    pub(crate) service: String,
    /// Send packets as not able to carry congestion marks (ECN)
    #[arg(long)]
    pub(crate) no_ecn: bool,
    /// Add a CRC-32c to the data of each packet, besides UDP's checksum
    #[arg(long)]
    pub(crate) data_checksum: bool,
    /// Number of valid sequence numbers around the newest (Sequence Window); several times the packets in flight
    #[arg(long, value_name = "N", default_value = "100000")]
    pub(crate) sequence_window: u64,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ServeArgs {
    /// Address and UDP port to receive at, such as 0.0.0.0 for all addresses; DCCP-UDP's own port if absent, any free
    /// one for port 0
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6511")]
    pub(crate) listen: String,
    /// Connections in all, a quarter of them of those who have sent no data yet. Beyond it, the one longest idle of the source
    /// that holds most gives way
    #[arg(long, value_name = "N", default_value = "256", value_parser = at_least_one)]
    pub(crate) max_connections: usize,
    /// Connections with data from one IPv4 address or IPv6 network of 64 bits; more stay among those without
    #[arg(long, value_name = "N", default_value = "32", value_parser = at_least_one)]
    pub(crate) max_per_source: usize,
    /// Reset a connection that receives no datagram for this long
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = crate::values::seconds)]
    pub(crate) idle: f64,
    /// End after the first connection
    #[arg(long)]
    pub(crate) once: bool,
    /// End after this time, such as 60s
    #[arg(long, value_name = "TIME", value_parser = crate::values::seconds)]
    pub(crate) duration: Option<f64>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct SendArgs {
    /// The receiver: HOST, HOST:PORT or [IPv6]:PORT; UDP port 6511 if absent
    #[arg(value_name = "ADDR")]
    pub(crate) to: String,
    /// Amount of data, such as 1GB or 64MiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) size: Option<DataSize>,
    /// Duration, such as 30s
    #[arg(long, value_name = "TIME", value_parser = crate::values::seconds)]
    pub(crate) duration: Option<f64>,
    /// The application's own rate, such as 5Mbit; as fast as congestion control permits if absent
    #[arg(long, value_name = "RATE", value_parser = crate::values::bit_rate)]
    pub(crate) rate: Option<DataRate>,
    /// Bytes of a datagram; as many as fit the path's packets if absent
    #[arg(long, value_name = "BYTES")]
    pub(crate) packet_size: Option<u64>,
    /// Datagrams that may wait in the send queue
    #[arg(long, value_name = "N", default_value = "64")]
    pub(crate) queue: usize,
    /// How long to wait for the other end at the beginning and at the end
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = crate::values::seconds)]
    pub(crate) patience: f64,
    /// Show progress on standard error even if that is no terminal, as a line per second
    #[arg(long, action = ArgAction::SetTrue, conflicts_with = "quiet")]
    pub(crate) progress: bool,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "not a number from 1 on".into())
}

/// A number and its unit.
fn quantity(text: &str) -> Result<(f64, String), String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    match text[..digits].parse::<f64>() {
        Ok(n) if n > 0.0 => Ok((n, text[digits..].trim().to_ascii_lowercase())),
        _ => Err("not a number above zero with a unit".into()),
    }
}

/// An amount of data: `1GB`, `64MiB`, `1500`.
pub(crate) fn size(text: &str) -> Result<DataSize, String> {
    let (n, unit) = quantity(text)?;
    let scale: f64 = match unit.as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1_048_576.0,
        "gib" => 1_073_741_824.0,
        other => return Err(format!("`{other}` is no unit of data: B, kB, MB, GB, KiB, MiB or GiB")),
    };
    Ok(DataSize::from_bytes((n * scale) as u64))
}

/// A host with or without a port.
pub(crate) fn address(option: &str, text: &str) -> Result<SocketAddr, Failure> {
    let text = text.trim();
    let with_port = match text.parse::<std::net::IpAddr>() {
        Ok(ip) => return Ok(SocketAddr::new(ip, DCCP_UDP_PORT)),
        Err(_) if text.rsplit_once(':').is_some_and(|(_, p)| p.parse::<u16>().is_ok()) => text.to_owned(),
        Err(_) => format!("{text}:{DCCP_UDP_PORT}"),
    };
    let wrong = |why: String| {
        let what = format!("{text}: {why}; expected HOST, HOST:PORT or [IPv6]:PORT");
        Failure::from(InputError::whole(option, what))
    };
    let mut all = with_port.to_socket_addrs().map_err(|e| wrong(e.to_string()))?;
    all.next().ok_or_else(|| wrong("it has no address".into()))
}

fn service(text: &str) -> Result<ServiceCode, Failure> {
    let letters = <[u8; 4]>::try_from(text.as_bytes()).ok().filter(|b| b.iter().all(u8::is_ascii_graphic));
    let code = letters.map(u32::from_be_bytes).or_else(|| text.parse().ok()).map(ServiceCode);
    code.filter(|c| *c != ServiceCode::INVALID).ok_or_else(|| {
        InputError::whole("--service", format!("{text}: expected four letters, or a number below 4294967295")).into()
    })
}

impl ConnectionArgs {
    /// Configuration of a connection; `default` are the CCIDs if none are named.
    pub(crate) fn config(&self, default: &[u8]) -> Result<Config, Failure> {
        let registry = Registry::builtin();
        let known: Vec<String> = registry.specs().iter().map(|s| s.number.to_string()).collect();
        let mut numbers = self.ccid.clone().unwrap_or_else(|| default.to_vec());
        if let Some(odd) = numbers.iter().find(|n| registry.get(**n).is_none()) {
            let what = format!("{odd}: there is no such CCID, but {}: see weir show ccids", known.join(", "));
            return Err(InputError::whole("--ccid", what).into());
        }
        let mut seen = Vec::new();
        numbers.retain(|n| {
            !seen.contains(n) && {
                seen.push(*n);
                true
            }
        });
        let mut params = Vec::new();
        for given in &self.param {
            params.extend(param(given, &numbers, &registry)?);
        }
        if !(32..1 << 46).contains(&self.sequence_window) {
            let what = format!("{}: expected 32 to {}", self.sequence_window, (1u64 << 46) - 1);
            return Err(InputError::whole("--sequence-window", what).into());
        }
        Ok(Config {
            local_port: 0,
            remote_port: self.dccp_port,
            service_code: service(&self.service)?,
            registry: Arc::new(registry),
            ccids: Ccids { send: numbers.clone(), receive: numbers, params },
            ecn: !self.no_ecn,
            data_checksum: self.data_checksum,
            sequence_window: self.sequence_window,
            ..Config::default()
        })
    }
}

/// `NAME=VALUE` or `CCID.NAME=VALUE`, for each CCID to which it applies.
fn param(given: &str, numbers: &[u8], registry: &Registry) -> Result<Vec<(u8, String, f64)>, Failure> {
    let wrong = |what: String| Failure::from(InputError::whole("--param", format!("{given}: {what}")));
    let (name, value) = given.split_once('=').ok_or_else(|| wrong("expected NAME=VALUE".into()))?;
    let value: f64 = value.trim().parse().map_err(|_| wrong("the value is no number".into()))?;
    let (only, name) = match name.split_once('.') {
        Some((n, name)) => (Some(n.trim().parse::<u8>().map_err(|_| wrong(format!("`{n}` is no CCID")))?), name.trim()),
        None => (None, name.trim()),
    };
    let meant = numbers.iter().filter(|n| only.is_none_or(|o| o == **n));
    let has = |n: u8| registry.get(n).is_some_and(|s| s.params.iter().any(|p| p.name == name));
    let all: Vec<_> = meant.filter(|n| has(**n)).map(|n| (*n, name.to_owned(), value)).collect();
    if all.is_empty() {
        return Err(wrong(format!("none of the CCIDs in use has a parameter `{name}`: see weir show ccids")));
    }
    Ok(all)
}

impl SendArgs {
    pub(crate) fn plan(&self) -> Result<weir_live::dccp::transfer::SendPlan, Failure> {
        if let Some(s) = self.packet_size.filter(|s| *s < MIN_DATAGRAM as u64 || *s > 65_000) {
            let what = format!("{s}: expected {MIN_DATAGRAM} bytes, which its number and checksum take, to 65000");
            return Err(InputError::whole("--packet-size", what).into());
        }
        Ok(weir_live::dccp::transfer::SendPlan {
            size: self.size,
            duration: self.duration.map(TimeDelta::from_secs_f64),
            rate: self.rate,
            datagram: self.packet_size.map(DataSize::from_bytes),
        })
    }
    pub(crate) fn queue(&self) -> Result<QueueConfig, Failure> {
        if !(1..=100_000).contains(&self.queue) {
            let what = format!("{}: expected 1 to 100000 datagrams", self.queue);
            return Err(InputError::whole("--queue", what).into());
        }
        Ok(QueueConfig { capacity: self.queue, ..QueueConfig::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts() {
        assert_eq!(size("1GB"), Ok(DataSize::from_bytes(1_000_000_000)));
        assert_eq!(size("1.5 MiB"), Ok(DataSize::from_bytes(1_572_864)));
        assert_eq!(size("1500"), Ok(DataSize::from_bytes(1_500)));
        assert!(size("0GB").is_err() && size("GB").is_err() && size("3 apples").is_err());
    }

    #[test]
    fn hosts_have_a_port_of_their_own_or_the_usual_one() {
        let at = |text: &str| address("ADDR", text).map(|a| a.to_string()).map_err(|_| ());
        assert_eq!(at("192.0.2.7"), Ok("192.0.2.7:6511".into()));
        assert_eq!(at("192.0.2.7:99"), Ok("192.0.2.7:99".into()));
        assert_eq!(at("2001:db8::7"), Ok("[2001:db8::7]:6511".into()));
        assert_eq!(at("[2001:db8::7]:99"), Ok("[2001:db8::7]:99".into()));
        assert_eq!(at("no such host"), Err(()));
    }

    #[test]
    fn service_codes() {
        assert_eq!(service("RTPV").ok(), Some(ServiceCode::RTP_VIDEO));
        assert_eq!(service("42").ok(), Some(ServiceCode(42)));
        assert!(service("4294967295").is_err() && service("word").is_ok() && service("words").is_err());
    }
}
