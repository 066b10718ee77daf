// Weir's controllers in libwebrtc: a webrtc::NetworkControllerFactoryInterface over weir.h.
//
//     auto factory = weir::NetworkControllerFactory::Make("nada", "", &error);
//     dependencies.network_controller_factory = std::move(factory);  // PeerConnectionFactoryDependencies
//
// Include it where libwebrtc's own headers are found, and link libweir. It is compiled and run in Weir's tests against
// stand-ins with these headers' public shape (libwebrtc of 2025); IT HAS NOT RUN INSIDE libwebrtc.
//
// What libwebrtc does not show a controller: the state of its RTP queue by frame, and RTCP beyond its own summaries.
// Repair that a controller plans with its rate is not sent. Sizes are libwebrtc's, which count headers down to IP where Weir
// counts RTP alone.

#ifndef WEIR_NETWORK_CONTROLLER_HPP
#define WEIR_NETWORK_CONTROLLER_HPP

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/transport/network_control.h"
#include "api/transport/network_types.h"
#include "weir.h"

namespace weir {

// One handle of the C library, freed at the end.
class Handle {
 public:
  explicit Handle(weir_handle handle) : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, 0)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (handle_ != 0) weir_free(handle_);
  }
  weir_handle get() const { return handle_; }

 private:
  weir_handle handle_;
};

class NetworkController : public webrtc::NetworkControllerInterface {
 public:
  using Update = webrtc::NetworkControlUpdate;

  // Null, with weir_last_error set, if there is no such controller or parameter.
  static std::unique_ptr<NetworkController> Make(const std::string& name,
                                                 const std::string& parameters,
                                                 const webrtc::TargetRateConstraints& constraints) {
    auto made = std::unique_ptr<NetworkController>(new NetworkController(name, parameters));
    made->Constrain(constraints);
    return made->Start(constraints) ? std::move(made) : nullptr;
  }

  Update OnNetworkAvailability(webrtc::NetworkAvailability event) override {
    if (!event.network_available) return Update();
    last_.reset();  // Everything is news to a sender that starts.
    return Changes(event.at_time);
  }
  // Another path: what was learnt of the old one does not hold.
  Update OnNetworkRouteChange(webrtc::NetworkRouteChange event) override {
    Constrain(event.constraints);
    webrtc::TargetRateConstraints from = event.constraints;
    from.at_time = event.at_time;
    Start(from);
    return Changes(event.at_time);
  }
  Update OnProcessInterval(webrtc::ProcessInterval event) override {
    weir_controller_on_timeout(controller_.get(), Nanos(event.at_time));
    return Changes(event.at_time);
  }
  Update OnRemoteBitrateReport(webrtc::RemoteBitrateReport event) override {
    weir_cue cue = {};
    cue.size = sizeof cue;
    cue.kind = WEIR_CUE_REMB;
    cue.now_ns = Nanos(event.receive_time);
    cue.rate_bps = Bps(event.bandwidth, kMostBps);
    cue.rtt_ns = -1;
    weir_controller_cue(controller_.get(), &cue);
    return Changes(event.receive_time);
  }
  // Kept for the next loss report: a receiver report has both.
  Update OnRoundTripTimeUpdate(webrtc::RoundTripTimeUpdate event) override {
    if (!event.smoothed && event.round_trip_time.IsFinite()) rtt_ns_ = event.round_trip_time.us() * 1000;
    return Update();
  }
  Update OnSentPacket(webrtc::SentPacket event) override {
    weir_sent_packet packet = {};
    packet.size = sizeof packet;
    packet.now_ns = Nanos(event.send_time);
    packet.bytes = static_cast<uint32_t>(std::clamp<int64_t>(event.size.bytes(), 1, 65535));
    const int cluster = event.pacing_info.probe_cluster_id;
    packet.probe = cluster == webrtc::PacedPacketInfo::kNotAProbe ? 0 : static_cast<uint32_t>(cluster);
    uint64_t number = 0;
    if (weir_controller_sent(controller_.get(), &packet, &number) == WEIR_STATUS_OK)
      offset_ = event.sequence_number - static_cast<int64_t>(number);
    return Changes(event.send_time);
  }
  Update OnReceivedPacket(webrtc::ReceivedPacket)
#ifndef WEIR_WITHOUT_RECEIVED_PACKET  // Define it for releases whose interface does not have this function.
      override
#endif
  {
    return Update();
  }
  Update OnStreamsConfig(webrtc::StreamsConfig) override { return Update(); }
  Update OnTargetRateConstraints(webrtc::TargetRateConstraints event) override {
    Constrain(event);
    weir_controller_set_limits(controller_.get(), floor_bps_, ceiling_bps_, Nanos(event.at_time));
    return Changes(event.at_time);
  }
  Update OnTransportLossReport(webrtc::TransportLossReport event) override {
    const uint64_t expected = event.packets_lost_delta + event.packets_received_delta;
    if (expected == 0) return Update();
    lost_ += static_cast<int64_t>(event.packets_lost_delta);
    highest_ += expected;
    weir_report_block block = {};
    block.size = sizeof block;
    block.expected = static_cast<uint32_t>(std::min<uint64_t>(expected, UINT32_MAX));
    block.now_ns = Nanos(event.receive_time);
    block.fraction_lost = static_cast<double>(event.packets_lost_delta) / static_cast<double>(expected);
    block.cumulative_lost = lost_;
    block.highest_sequence = highest_;
    block.rtt_ns = rtt_ns_;
    weir_controller_report_block(controller_.get(), &block);
    return Changes(event.receive_time);
  }
  Update OnTransportPacketsFeedback(webrtc::TransportPacketsFeedback event) override {
    reports_.clear();
    int64_t held_ns = -1;
    for (const webrtc::PacketResult& packet : event.packet_feedbacks) {
      const int64_t number = packet.sent_packet.sequence_number - offset_;
      if (number < 0) continue;
      weir_packet_report report = {};
      report.number = static_cast<uint64_t>(number);
      report.received = packet.IsReceived() ? 1 : 0;
      if (packet.IsReceived()) {
        report.arrival_ns = packet.receive_time.us() * 1000;
        report.ecn = static_cast<uint8_t>(packet.ecn);
        if (packet.arrival_time_offset.has_value() && packet.arrival_time_offset->IsFinite())
          held_ns = packet.arrival_time_offset->us() * 1000;  // That of the newest remains.
      }
      reports_.push_back(report);
    }
    weir_controller_feedback(controller_.get(), Nanos(event.feedback_time), reports_.data(), reports_.size(),
                             sizeof(weir_packet_report), held_ns);
    return Changes(event.feedback_time);
  }
  Update OnNetworkStateEstimate(webrtc::NetworkStateEstimate) override { return Update(); }

 private:
  // Rates where libwebrtc gives none: a floor and start as its own controller has, and a ceiling beyond any call.
  static constexpr uint64_t kLeastBps = 5000;
  static constexpr uint64_t kStartBps = 300000;
  static constexpr uint64_t kMostBps = 1000000000;

  NetworkController(std::string name, std::string parameters)
      : name_(std::move(name)), parameters_(std::move(parameters)) {}

  // libwebrtc has no time before 0; an infinite one means that none was set.
  static int64_t Nanos(webrtc::Timestamp time) { return time.IsFinite() ? std::max<int64_t>(time.us(), 0) * 1000 : 0; }
  static uint64_t Bps(webrtc::DataRate rate, uint64_t otherwise) {
    return rate.IsFinite() ? static_cast<uint64_t>(std::max<int64_t>(rate.bps(), 0)) : otherwise;
  }

  void Constrain(const webrtc::TargetRateConstraints& constraints) {
    if (constraints.min_data_rate) floor_bps_ = std::max(Bps(*constraints.min_data_rate, kLeastBps), kLeastBps);
    if (constraints.max_data_rate) ceiling_bps_ = Bps(*constraints.max_data_rate, kMostBps);
    ceiling_bps_ = std::max(ceiling_bps_, floor_bps_);
  }
  bool Start(const webrtc::TargetRateConstraints& constraints) {
    weir_setup setup = {};
    setup.size = sizeof setup;
    setup.floor_bps = floor_bps_;
    setup.ceiling_bps = ceiling_bps_;
    setup.start_bps = constraints.starting_rate ? Bps(*constraints.starting_rate, kStartBps) : kStartBps;
    setup.now_ns = Nanos(constraints.at_time);
    setup.seed = 1;
    weir_handle made = 0;
    if (weir_controller_new(name_.c_str(), parameters_.c_str(), &setup, &made) != WEIR_STATUS_OK) return false;
    controller_ = Handle(made);
    last_.reset();
    return true;
  }

  // What has changed since the last update, and the probes to be sent.
  Update Changes(webrtc::Timestamp now) {
    Update update;
    weir_target target = {};
    target.size = sizeof target;
    if (weir_controller_target(controller_.get(), &target) != WEIR_STATUS_OK) return update;
    if (!last_ || last_->media_bps != target.media_bps || last_->window_bytes != target.window_bytes ||
        last_->pacing_bps != target.pacing_bps || last_->padding_bps != target.padding_bps) {
      last_ = target;
      update.target_rate = Rate(target, now);
      update.pacer_config = Pacing(target, now);
      if (target.window_bytes != WEIR_NO_WINDOW)
        update.congestion_window =
            webrtc::DataSize::Bytes(static_cast<int64_t>(std::min<uint64_t>(target.window_bytes, INT64_MAX / 2)));
    }
    weir_probe probe = {};
    probe.size = sizeof probe;
    while (weir_controller_poll_probe(controller_.get(), Nanos(now), &probe) == WEIR_STATUS_OK) {
      webrtc::ProbeClusterConfig cluster;
      cluster.at_time = now;
      cluster.target_data_rate = webrtc::DataRate::BitsPerSec(static_cast<int64_t>(probe.rate_bps));
      const uint64_t rate = std::max<uint64_t>(probe.rate_bps, 1);
      cluster.target_duration = webrtc::TimeDelta::Micros(static_cast<int64_t>(probe.min_bytes * 8000000 / rate));
      cluster.target_probe_count = static_cast<int32_t>(probe.min_packets);
      cluster.id = static_cast<int32_t>(probe.id);
      update.probe_cluster_configs.push_back(cluster);
    }
    return update;
  }
  webrtc::TargetTransferRate Rate(const weir_target& target, webrtc::Timestamp now) const {
    weir_statistics statistics = {};
    statistics.size = sizeof statistics;
    weir_controller_statistics(controller_.get(), &statistics);
    const webrtc::DataRate rate = webrtc::DataRate::BitsPerSec(static_cast<int64_t>(target.media_bps));
    webrtc::TargetTransferRate out;
    out.at_time = now;
    out.target_rate = rate;
    out.network_estimate.at_time = now;
    out.network_estimate.bandwidth = rate;
    out.network_estimate.round_trip_time =
        webrtc::TimeDelta::Micros(statistics.rtt_ns < 0 ? 0 : statistics.rtt_ns / 1000);
    out.network_estimate.bwe_period = webrtc::TimeDelta::Seconds(3);  // libwebrtc's own before it has measured one
    return out;
  }
  static webrtc::PacerConfig Pacing(const weir_target& target, webrtc::Timestamp now) {
    const auto bytes = [](uint64_t bps) {
      return webrtc::DataSize::Bytes(static_cast<int64_t>(std::min(bps, kMostBps) / 8));
    };
    webrtc::PacerConfig out;
    out.at_time = now;
    out.time_window = webrtc::TimeDelta::Seconds(1);
    out.data_window = bytes(target.pacing_bps);
    out.pad_window = bytes(target.padding_bps);
    return out;
  }

  const std::string name_, parameters_;
  uint64_t floor_bps_ = kLeastBps, ceiling_bps_ = kMostBps;
  Handle controller_{0};
  std::optional<weir_target> last_;
  // libwebrtc's sequence number less the library's.
  int64_t offset_ = 0;
  int64_t rtt_ns_ = -1;
  int64_t lost_ = 0;
  uint64_t highest_ = 0;
  std::vector<weir_packet_report> reports_;
};

class NetworkControllerFactory : public webrtc::NetworkControllerFactoryInterface {
 public:
  // Null, with the reason in `error`, if there is no such controller or parameter, or the library has another ABI.
  static std::unique_ptr<NetworkControllerFactory> Make(const std::string& name,
                                                        const std::string& parameters,
                                                        std::string* error) {
    std::string reason;
    if (weir_abi_version() != WEIR_ABI_VERSION) {
      reason = "libweir has ABI " + std::to_string(weir_abi_version()) + ": expected " +
               std::to_string(WEIR_ABI_VERSION);
    } else if (NetworkController::Make(name, parameters, webrtc::TargetRateConstraints()) == nullptr) {
      reason = weir_last_error();
    } else {
      return std::unique_ptr<NetworkControllerFactory>(new NetworkControllerFactory(name, parameters));
    }
    if (error != nullptr) *error = reason;
    return nullptr;
  }

  std::unique_ptr<webrtc::NetworkControllerInterface> Create(webrtc::NetworkControllerConfig config) override {
    return NetworkController::Make(name_, parameters_, config.constraints);
  }
  // As libwebrtc's own controller: timeouts are then at most this late.
  webrtc::TimeDelta GetProcessInterval() const override { return webrtc::TimeDelta::Millis(25); }

 private:
  NetworkControllerFactory(std::string name, std::string parameters)
      : name_(std::move(name)), parameters_(std::move(parameters)) {}
  const std::string name_, parameters_;
};

}  // namespace weir

#endif  // WEIR_NETWORK_CONTROLLER_HPP
