// Drives weir_network_controller.hpp as libwebrtc would, with a pacer and a link of 1 Mbit/s.

#include <algorithm>
#include <cstdio>
#include <deque>
#include <string>

#include "weir_network_controller.hpp"

using webrtc::DataRate;
using webrtc::DataSize;
using webrtc::Timestamp;

static int faults;
#define CHECK(condition)                                                  \
  if (!(condition)) {                                                     \
    std::printf("line %d: not %s\n", __LINE__, #condition);               \
    faults++;                                                             \
  }

// What a sender keeps of updates.
struct Sender {
  int64_t target_bps = 0, pacing_bps = 0, probes = 0;
  std::deque<webrtc::ProbeClusterConfig> clusters;
  void Take(const webrtc::NetworkControlUpdate& update) {
    if (update.target_rate) target_bps = update.target_rate->target_rate.bps();
    if (update.pacer_config)
      pacing_bps = update.pacer_config->data_window.bytes() * 8 * 1000000 / update.pacer_config->time_window.us();
    for (const auto& cluster : update.probe_cluster_configs) clusters.push_back(cluster), probes++;
  }
};

static void Call(const std::string& name) {
  std::string error;
  auto factory = weir::NetworkControllerFactory::Make(name, "", &error);
  CHECK(factory != nullptr && error.empty());
  if (!factory) return;
  CHECK(factory->GetProcessInterval().us() == 25000);
  webrtc::NetworkControllerConfig config{webrtc::Environment()};
  config.constraints.at_time = Timestamp::Micros(0);
  config.constraints.min_data_rate = DataRate::BitsPerSec(100000);
  config.constraints.max_data_rate = DataRate::BitsPerSec(3000000);
  config.constraints.starting_rate = DataRate::BitsPerSec(300000);
  std::unique_ptr<webrtc::NetworkControllerInterface> controller = factory->Create(config);
  Sender sender;
  sender.Take(controller->OnNetworkAvailability({Timestamp::Micros(0), true}));
  CHECK(sender.target_bps == 300000 && sender.pacing_bps >= 300000);

  const int64_t link_bps = 1000000, delay_us = 25000;
  int64_t sequence = 70000, free_us = 0, budget = 0;  // numbers need not begin at 0
  std::deque<webrtc::PacketResult> on_the_way;
  double carried = 0;
  const auto send = [&](int64_t now, int cluster) {
    webrtc::SentPacket packet;
    packet.send_time = Timestamp::Micros(now);
    packet.size = DataSize::Bytes(1200);
    packet.pacing_info.probe_cluster_id = cluster;
    packet.sequence_number = sequence++;
    sender.Take(controller->OnSentPacket(packet));
    webrtc::PacketResult result;
    result.sent_packet = packet;
    if (free_us - now < 300000) {
      free_us = std::max(free_us, now) + INT64_C(9600000000) / link_bps;
      result.receive_time = Timestamp::Micros(free_us + delay_us);
      if (now >= 10000000) carried += 1200 * 8;
    }
    on_the_way.push_back(result);
  };
  for (int64_t now = 0; now < 30000000; now += 5000) {
    budget = std::min<int64_t>(budget + sender.target_bps / 200, 40000);
    for (; budget > 0; budget -= 1200 * 8) send(now, webrtc::PacedPacketInfo::kNotAProbe);
    while (!sender.clusters.empty()) {
      const auto cluster = sender.clusters.front();
      sender.clusters.pop_front();
      CHECK(cluster.id > 0 && cluster.target_data_rate.bps() > 0);
      for (int n = 0; n < cluster.target_probe_count; n++) send(now, cluster.id);
    }
    if (now % 25000 == 0) sender.Take(controller->OnProcessInterval({Timestamp::Micros(now)}));
    if (now % 50000 == 0) {
      webrtc::TransportPacketsFeedback feedback;
      feedback.feedback_time = Timestamp::Micros(now);
      // A lost packet is reported with those after it that have arrived.
      size_t arrived = 0;
      for (size_t i = 0; i < on_the_way.size(); i++)
        if (on_the_way[i].IsReceived() && on_the_way[i].receive_time.us() + delay_us <= now) arrived = i + 1;
      for (; arrived > 0; arrived--, on_the_way.pop_front()) feedback.packet_feedbacks.push_back(on_the_way.front());
      if (!feedback.packet_feedbacks.empty()) sender.Take(controller->OnTransportPacketsFeedback(feedback));
    }
  }
  const double share = carried / 20 / link_bps;
  std::printf("%s: %.0f %% of the link, %d probes\n", name.c_str(), 100 * share, (int)sender.probes);
  CHECK(share > 0.6 && share <= 1.01);

  // Bounds hold at once; another path begins with its own rate.
  webrtc::TargetRateConstraints bounds;
  bounds.at_time = Timestamp::Micros(30000000);
  bounds.max_data_rate = DataRate::BitsPerSec(200000);
  sender.Take(controller->OnTargetRateConstraints(bounds));
  CHECK(sender.target_bps <= 200000 && sender.target_bps >= 100000);
  webrtc::NetworkRouteChange route;
  route.at_time = Timestamp::Micros(30100000);
  route.constraints.max_data_rate = DataRate::BitsPerSec(5000000);
  route.constraints.starting_rate = DataRate::BitsPerSec(700000);
  sender.Take(controller->OnNetworkRouteChange(route));
  CHECK(sender.target_bps == 700000);
}

int main() {
  for (const char* name : {"gcc", "nada", "scream2", "sluice"}) Call(name);

  std::string error;
  CHECK(weir::NetworkControllerFactory::Make("nadda", "", &error) == nullptr);
  CHECK(error.find("did you mean `nada`?") != std::string::npos);

  // A controller that lives on REMB, and one on receiver reports.
  auto remb = weir::NetworkControllerFactory::Make("gcc-remb", "", &error);
  auto controller = remb->Create(webrtc::NetworkControllerConfig{webrtc::Environment()});
  Sender sender;
  sender.Take(controller->OnNetworkAvailability({Timestamp::Micros(0), true}));
  sender.Take(controller->OnRemoteBitrateReport({Timestamp::Micros(1000000), DataRate::BitsPerSec(120000)}));
  CHECK(sender.target_bps == 120000);
  auto loss = weir::NetworkControllerFactory::Make("rtcp-aimd", "", &error)->Create(
      webrtc::NetworkControllerConfig{webrtc::Environment()});
  Sender lossy;
  lossy.Take(loss->OnNetworkAvailability({Timestamp::Micros(0), true}));
  const int64_t before = lossy.target_bps;
  for (int64_t s = 1; s < 10; s++) {
    lossy.Take(loss->OnRoundTripTimeUpdate({Timestamp::Micros(s * 1000000), webrtc::TimeDelta::Millis(60), false}));
    lossy.Take(loss->OnTransportLossReport({Timestamp::Micros(s * 1000000), 30, 70}));
  }
  CHECK(lossy.target_bps < before);

  std::printf("%d faults\n", faults);
  return faults != 0;
}
