//! Arguments of `weir layers`.

use weir_units::DataRate;

pub(super) const EXAMPLES: &str = "\
A source sends its stream in layers, each to a multicast group. Receivers join groups from the lowest on until packets are
lost, and leave the highest then. They are at sites, each with one link: a failed experiment is felt by all of a site. The right
level is the highest whose layers together are no more than the link's rate.
A run of 1000 receivers for 300 s takes some seconds.

Examples:
  weir layers
  weir layers --learning none
  weir layers --learning session --receivers 1000 --sites 1000
  weir layers --classes 200kbps,1mbps --layers 64kbps,128kbps,256kbps,512kbps --json | jq .classes";

#[derive(clap::Args, Debug)]
pub(crate) struct LayersArgs {
    /// Receivers
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(crate) receivers: u32,
    /// Sites, among which they are divided; 40 or, if that is less, one for each receiver, if absent
    #[arg(long, value_name = "N")]
    pub(crate) sites: Option<u32>,
    /// Rates of the sites' links, in turn
    #[arg(long, value_name = "RATES", value_delimiter = ',', default_value = "128kbps,300kbps,640kbps,1300kbps,2600kbps",
          value_parser = crate::values::bit_rate)]
    pub(crate) classes: Vec<DataRate>,
    /// Rates of the layers from the lowest on, with all headers
    #[arg(long, value_name = "RATES", value_delimiter = ',', default_value = "32kbps,64kbps,128kbps,256kbps,512kbps,1024kbps",
          value_parser = crate::values::bit_rate)]
    pub(crate) layers: Vec<DataRate>,
    /// From whose experiments a receiver learns
    #[arg(long, value_name = "WHOSE", value_enum, default_value = "site")]
    pub(crate) learning: Learning,
    /// Time within which receivers start, each at a random one
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = crate::values::seconds)]
    pub(crate) arrivals: f64,
    /// From a site's last leave of a group until its router stops it
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = crate::values::seconds)]
    pub(crate) leave_latency: f64,
    /// Queue of a site's link
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = crate::values::seconds)]
    pub(crate) queue: f64,
    /// Simulated time
    #[arg(long, alias = "for", value_name = "TIME", default_value = "300s", value_parser = crate::values::seconds)]
    pub(crate) duration: f64,
    /// Seed of delays, starts and join times
    #[arg(long, value_name = "S", default_value = "1")]
    pub(crate) seed: u64,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress bar and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Learning {
    /// Nobody's
    None,
    /// Those at its site
    Site,
    /// Everybody's
    Session,
}
