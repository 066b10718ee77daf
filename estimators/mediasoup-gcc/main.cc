// GoogCC, the sender's controller of libwebrtc as mediasoup's worker has it, behind Weir's `exec:` protocol in its binary form.
//
// It is driven by libwebrtc's own interface, NetworkControllerInterface, whose messages all carry their time; the two places that read a
// clock get the same time from shim/DepLibUV.hpp. Numbers are little-endian, and so has to be the machine.
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "DepLibUV.hpp"
#include "api/transport/goog_cc_factory.h"
#include "system_wrappers/source/field_trial.h"

using namespace webrtc;

namespace {

struct Head { uint32_t length, count; uint64_t turn; };
struct Event { uint8_t kind, flags; uint16_t small; uint32_t number; int64_t now_ns; };
struct Sent { uint64_t sequence, size, queued, in_flight; };
struct Packet { uint64_t sequence; int64_t sent_ns, arrived_ns; uint32_t size, probe, flags, unused; };
struct Body {
  uint32_t flags;
  uint16_t overhead_bytes;
  uint8_t repair[2];
  double media_bps, pacing_bps, padding_bps;
  uint64_t window_bytes;
  int64_t max_queue_age_ns, timer_ns;
};
struct Probe { uint32_t id, min_packets; double rate_bps; uint64_t min_bytes; };
static_assert(sizeof(Body) == 56 && sizeof(Packet) == 40 && sizeof(Probe) == 24);

enum Kind { SENT = 1, FEEDBACK = 2, REPORT = 3, ESTIMATE = 4, QUEUE = 5, LIMITS = 6, TIMER = 7 };
// Bytes of an event of each kind, without a feedback's packets.
constexpr size_t SIZES[] = {0, 48, 32, 64, 24, 40, 32, 16};
enum Flags : uint32_t { PACING = 1, PADDING = 4, WINDOW = 8, TIME = 64 };
constexpr uint32_t ARRIVED = 1;
constexpr uint32_t MOST = 64 << 20;

// The trials that mediasoup's worker sets.
constexpr char TRIALS[] = "WebRTC-Bwe-AlrLimitedBackoff/Enabled/";

int64_t field(const std::string& line, const char* name) {
  const size_t at = line.find(name);
  if (at == std::string::npos) throw std::runtime_error(std::string("no ") + name);
  return std::strtoll(line.c_str() + at + std::strlen(name), nullptr, 10);
}

class Estimator {
 public:
  Estimator(int64_t now_ns, int64_t floor, int64_t ceiling, int64_t start) : rate_(double(start)) {
    // Feedback alone decides on losses, as in mediasoup.
    GoogCcFactoryConfig factory_config;
    factory_config.feedback_only = true;
    GoogCcNetworkControllerFactory factory(std::move(factory_config));
    interval_ns_ = factory.GetProcessInterval().us() * 1000;
    const Timestamp at = advance(now_ns);
    NetworkControllerConfig config;
    config.constraints = constraints(at, floor, ceiling);
    config.constraints.starting_rate = DataRate::bps(start);
    config.stream_based_config = streams(at, ceiling);
    controller_ = factory.Create(config);
    NetworkAvailability available;
    available.at_time = at;
    available.network_available = true;
    follow(controller_->OnNetworkAvailability(available));
    process(now_ns);
  }

  void sent(const Event& e, const Sent& s) {
    SentPacket packet;
    packet.send_time = advance(e.now_ns);
    packet.size = DataSize::bytes(int64_t(s.size));
    packet.sequence_number = int64_t(s.sequence);
    packet.data_in_flight = DataSize::bytes(int64_t(s.in_flight));
    in_flight_ = packet.data_in_flight;
    follow(controller_->OnSentPacket(packet));
  }

  void feedback(const Event& e, int64_t in_flight, const std::vector<Packet>& packets) {
    TransportPacketsFeedback message;
    message.feedback_time = advance(e.now_ns);
    message.prior_in_flight = in_flight_;
    message.data_in_flight = in_flight_ = DataSize::bytes(in_flight);
    for (const Packet& p : packets) {
      PacketResult result;
      result.sent_packet.sequence_number = int64_t(p.sequence);
      result.sent_packet.send_time = Timestamp::us(p.sent_ns / 1000);
      result.sent_packet.size = DataSize::bytes(p.size);
      const auto probe = probes_.find(p.probe);
      if (p.probe != 0 && probe != probes_.end()) result.sent_packet.pacing_info = probe->second;
      result.receive_time = p.flags & ARRIVED ? Timestamp::us(p.arrived_ns / 1000) : Timestamp::PlusInfinity();
      message.packet_feedbacks.push_back(result);
    }
    if (!message.packet_feedbacks.empty()) follow(controller_->OnTransportPacketsFeedback(message));
  }

  void limits(const Event& e, int64_t floor, int64_t ceiling) {
    const Timestamp at = advance(e.now_ns);
    follow(controller_->OnTargetRateConstraints(constraints(at, floor, ceiling)));
    follow(controller_->OnStreamsConfig(streams(at, ceiling)));
  }

  void remote(const Event& e, int64_t bps) {
    RemoteBitrateReport report;
    report.receive_time = advance(e.now_ns);
    report.bandwidth = DataRate::bps(bps);
    follow(controller_->OnRemoteBitrateReport(report));
  }

  void process(int64_t now_ns) {
    ProcessInterval message;
    message.at_time = advance(now_ns);
    next_ns_ = now_ns + interval_ns_;
    follow(controller_->OnProcessInterval(message));
  }

  // A timer that is due at the time of another event does not come again.
  void catch_up(int64_t now_ns) {
    if (next_ns_ <= now_ns) process(now_ns);
  }

  double rate() const { return rate_; }

  int64_t next_ns() const { return next_ns_; }

  std::string answer(uint64_t turn) {
    Body body = {};
    body.flags = PACING | TIME;
    body.media_bps = rate_;
    body.pacing_bps = pacing_;
    if (padding_ > 0) body.flags |= PADDING, body.padding_bps = padding_;
    if (window_ > 0) body.flags |= WINDOW, body.window_bytes = window_;
    body.timer_ns = next_ns_;
    const Head head = {uint32_t(sizeof body + sizeof(Probe) * asked_.size()), uint32_t(asked_.size()), turn};
    std::string out(reinterpret_cast<const char*>(&head), sizeof head);
    out.append(reinterpret_cast<const char*>(&body), sizeof body);
    if (!asked_.empty()) out.append(reinterpret_cast<const char*>(asked_.data()), sizeof(Probe) * asked_.size());
    asked_.clear();
    return out;
  }

 private:
  Timestamp advance(int64_t now_ns) {
    DepLibUV::now_ms = now_ns / 1000000;
    return Timestamp::us(now_ns / 1000);
  }

  static TargetRateConstraints constraints(Timestamp at, int64_t floor, int64_t ceiling) {
    TargetRateConstraints out;
    out.at_time = at;
    out.min_data_rate = DataRate::bps(floor);
    out.max_data_rate = DataRate::bps(ceiling);
    return out;
  }

  static StreamsConfig streams(Timestamp at, int64_t ceiling) {
    StreamsConfig out;
    out.at_time = at;
    out.requests_alr_probing = true;
    out.max_total_allocated_bitrate = DataRate::bps(ceiling);
    return out;
  }

  void follow(const NetworkControlUpdate& update) {
    if (update.target_rate) rate_ = double(update.target_rate->target_rate.bps());
    if (update.pacer_config) {
      pacing_ = double(update.pacer_config->data_rate().bps());
      padding_ = double(update.pacer_config->pad_rate().bps());
    }
    if (update.congestion_window)
      window_ = update.congestion_window->IsFinite() ? uint64_t(update.congestion_window->bytes()) : 0;
    for (const ProbeClusterConfig& p : update.probe_cluster_configs) {
      const uint64_t bytes = uint64_t((p.target_data_rate * p.target_duration).bytes());
      asked_.push_back({uint32_t(p.id), uint32_t(p.target_probe_count), double(p.target_data_rate.bps()), bytes});
      PacedPacketInfo info(p.id, p.target_probe_count, int(bytes));
      info.send_bitrate_bps = int(p.target_data_rate.bps());
      probes_[uint32_t(p.id)] = info;
    }
  }

  std::unique_ptr<NetworkControllerInterface> controller_;
  DataSize in_flight_ = DataSize::Zero();
  std::map<uint32_t, PacedPacketInfo> probes_;
  std::vector<Probe> asked_;
  double rate_, pacing_ = 0, padding_ = 0;
  uint64_t window_ = 0;
  int64_t interval_ns_ = 0, next_ns_ = 0;
};

template <typename T>
T read(const std::vector<char>& body, size_t at) {
  T out;
  if (at + sizeof out > body.size()) throw std::runtime_error("a turn is cut");
  std::memcpy(&out, body.data() + at, sizeof out);
  return out;
}

void take(Estimator& estimator, const std::vector<char>& body) {
  for (size_t at = 0; at < body.size();) {
    const Event e = read<Event>(body, at);
    if (e.kind == 0 || e.kind > TIMER) throw std::runtime_error("an event of an unknown kind");
    const size_t fields = at + sizeof e;
    at += SIZES[e.kind];
    if (e.kind == SENT) estimator.sent(e, read<Sent>(body, fields));
    if (e.kind == ESTIMATE && e.flags & 1) estimator.remote(e, read<int64_t>(body, fields));
    if (e.kind == LIMITS) estimator.limits(e, read<int64_t>(body, fields), read<int64_t>(body, fields + 8));
    if (e.kind == FEEDBACK) {
      std::vector<Packet> packets(e.number);
      for (Packet& p : packets) p = read<Packet>(body, at), at += sizeof p;
      estimator.feedback(e, read<int64_t>(body, fields), packets);
    }
    estimator.catch_up(e.now_ns);
  }
}

void call() {
  std::string line;
  for (int c; (c = std::getchar()) != EOF && c != '\n';) line.push_back(char(c));
  if (line.empty()) return;
  Estimator estimator(field(line, "\"now_ns\":"), field(line, "\"floor_bps\":"), field(line, "\"ceiling_bps\":"),
                      field(line, "\"start_bps\":"));
  // The probes of the begin wait for the first binary answer.
  std::printf("{\"turn\":0,\"media_bps\":%.17g,\"timer_ns\":%" PRId64 ",\"about\":{\"version\":2,\"name\":\"mediasoup-gcc " LIBRARY
              "\",\"form\":\"binary\",\"events\":[\"sent\",\"feedback\",\"limits\",\"timer\",\"estimate\"],"
              "\"answers\":[\"feedback\",\"limits\",\"timer\",\"estimate\"]}}\n",
              estimator.rate(), estimator.next_ns());
  std::fflush(stdout);
  std::vector<char> body;
  for (Head head; std::fread(&head, sizeof head, 1, stdin) == 1;) {
    if (head.length > MOST) throw std::runtime_error("a turn is too long");
    body.resize(head.length);
    if (std::fread(body.data(), 1, body.size(), stdin) != body.size()) throw std::runtime_error("a turn is cut");
    take(estimator, body);
    const std::string out = estimator.answer(head.turn);
    std::fwrite(out.data(), 1, out.size(), stdout);
    std::fflush(stdout);
  }
}

}  // namespace

int main() {
  field_trial::InitFieldTrialsFromString(TRIALS);
  try {
    call();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
