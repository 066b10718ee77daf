// Flows of libwebrtc's GoogCcNetworkController over the link: a pacer with its BitrateProber, frames of the target's size, and feedback with
// each packet's arrival. Arguments: rate=S:BPS,..., delay_ms, queue_bytes or queue_ms, duration_s, flows, stagger_s, later (the number
// of frames by which each flow begins later than the one before it), ceiling, floor, start_rate, padding, extra_ms (by flow).
#include <memory>

#include "api/environment/environment.h"
#include "api/environment/environment_factory.h"
#include "api/task_queue/default_task_queue_factory.h"
#include "api/task_queue/task_queue_factory.h"
#include "api/transport/network_control.h"
#include "api/transport/network_types.h"
#include "plain_link.h"
#include "modules/congestion_controller/goog_cc/goog_cc_network_control.h"
#include "modules/pacing/bitrate_prober.h"
#include "system_wrappers/include/clock.h"

namespace webrtc {
// An environment needs a factory; nothing here makes a queue.
struct NoQueues : TaskQueueFactory {
  std::unique_ptr<TaskQueueBase, TaskQueueDeleter> CreateTaskQueue(absl::string_view, Priority) const override { return nullptr; }
};
std::unique_ptr<TaskQueueFactory> CreateDefaultTaskQueueFactory(const FieldTrialsView*) { return std::make_unique<NoQueues>(); }
}  // namespace webrtc

using namespace webrtc;

namespace {
constexpr Micros kFrame = 33333;      // 30 a second
constexpr int kFrameShare = 240;      // bits per byte, times frames a second
constexpr int kPayload = 1000;        // bytes of a packet's payload at most
constexpr int kRtp = 20;              // bytes of RTP's header with its extensions
constexpr Micros kFeedback = 50000;   // between reports: 5 % of the rates here is more than the most frequent
constexpr Micros kProcess = 25000;    // RtpTransportControllerSend's interval
constexpr Micros kMostDebt = 500000;  // PacingController's kMaxDebtInTime
constexpr double kFirstPacing = 2.5;  // the controller's own factor, without a stream's
// The controller takes zero for "not set".
constexpr Micros kOrigin = 1000000000;

Events events;
Timestamp time_of(Micros t) { return Timestamp::Micros(t + kOrigin); }

struct SimulatedClock : Clock {
  Timestamp CurrentTime() override { return time_of(events.now); }
  NtpTime ConvertTimestampToNtpTime(Timestamp) override { return NtpTime(0); }
} clock_;

struct Packet {
  int flow = 0;
  int64_t number = 0;
  int payload = 0;
  int wire = 0;
  bool padding = false;
  Micros sent = 0, arrived = 0;
  PacedPacketInfo info;
  int rtp() const { return payload + kRtp; }
};

struct Settings {
  Micros delay;
  double floor, ceiling, start_rate;
  int padding;
};

class Flow {
 public:
  const Micros start;
  Row row;
  Flow(int id, Micros start, Micros extra, const Settings& s, Link<Packet>& link)
      : start(start), id_(id), extra_(extra), s_(s), link_(link), environment_(CreateEnvironment(static_cast<Clock*>(&clock_))),
        prober_(environment_.field_trials()), target_(s.start_rate), pacing_(kFirstPacing * s.start_rate) {
    events.at(start, [this] { begin(); });
  }
  double target() const { return target_; }
  void arrive(Packet p) {
    events.at(events.now + s_.delay + extra_, [this, p]() mutable {
      p.arrived = events.now;
      row.arrived(p.padding ? 0 : p.payload, p.arrived - p.sent);
      if (!reporting_) events.at(events.now + kFeedback, [this] { report(); });
      reporting_ = true;
      arrived_.push_back(p);
    });
  }

 private:
  void begin() {
    NetworkControllerConfig c(environment_);
    c.constraints.at_time = time_of(events.now);
    c.constraints.min_data_rate = DataRate::BitsPerSec(s_.floor);
    c.constraints.max_data_rate = DataRate::BitsPerSec(s_.ceiling);
    c.constraints.starting_rate = DataRate::BitsPerSec(s_.start_rate);
    c.stream_based_config.requests_alr_probing = true;
    controller_ = std::make_unique<GoogCcNetworkController>(c, GoogCcConfig());
    NetworkAvailability available;
    available.at_time = time_of(events.now);
    available.network_available = true;
    apply(controller_->OnNetworkAvailability(available));
    process();
    frame();
  }
  void process() {
    ProcessInterval p;
    p.at_time = time_of(events.now);
    apply(controller_->OnProcessInterval(p));
    events.at(events.now + kProcess, [this] { process(); });
  }
  void apply(NetworkControlUpdate u) {
    if (u.target_rate) target_ = u.target_rate->target_rate.bps();
    if (u.pacer_config) {
      double pacing = u.pacer_config->data_rate().bps();
      if (next_ > events.now) next_ = events.now + Micros((next_ - events.now) * pacing_ / pacing);
      pacing_ = pacing;
      padding_ = u.pacer_config->pad_rate().bps();
    }
    for (auto& cluster : u.probe_cluster_configs) prober_.CreateProbeCluster(cluster);
    pump();
  }
  void frame() {
    for (int left = std::max(1, int(target_ / kFrameShare)); left > 0; left -= kPayload) {
      Packet p;
      p.payload = std::min(left, kPayload);
      queue_.push_back(p);
      prober_.OnIncomingPacket(DataSize::Bytes(p.rtp()));
    }
    events.at(events.now + kFrame, [this] { frame(); });
    pump();
  }
  void wake_at(Micros time) {
    if (wake_ > events.now && wake_ <= time) return;
    wake_ = time;
    events.at(time, [this, time] {
      if (wake_ != time) return;
      wake_ = -1;
      pump();
    });
  }
  Packet next_or_padding() {
    Packet p;
    if (!queue_.empty()) {
      p = queue_.front();
      queue_.pop_front();
    } else {
      p.payload = s_.padding;
      p.padding = true;
    }
    return p;
  }
  void pump() {
    for (;;) {
      if (prober_.is_probing() && (media_sent_ || !queue_.empty())) {
        Timestamp when = prober_.NextProbeTime(time_of(events.now));
        if (when.IsFinite() && when > time_of(events.now)) return wake_at(when.us() - kOrigin);
        auto cluster = prober_.CurrentCluster(time_of(events.now));
        if (!cluster) continue;
        DataSize least = prober_.RecommendedMinProbeSize(), sent = DataSize::Zero();
        do {
          Packet p = next_or_padding();
          p.info = *cluster;
          sent += DataSize::Bytes(p.rtp());
          send(p);
        } while (sent < least);
        prober_.ProbeSent(time_of(events.now), sent);
        continue;
      }
      bool media = !queue_.empty();
      if (!media && !(padding_ > 0 && media_sent_)) return;
      Micros when = media ? next_ : std::max(next_, next_padding_);
      if (when > events.now) return wake_at(when);
      send(next_or_padding());
    }
  }
  void send(Packet p) {
    p.flow = id_;
    p.number = number_++;
    p.sent = events.now;
    p.wire = p.rtp() + kBelowRtp;
    media_sent_ |= !p.padding;
    next_ = std::min(std::max(next_, events.now) + std::llround(p.rtp() * 8 * kMicros / pacing_), (long long)(events.now + kMostDebt));
    if (padding_ > 0) next_padding_ = std::max(next_padding_, events.now) + std::llround(p.rtp() * 8 * kMicros / padding_);
    SentPacket s;
    s.send_time = time_of(events.now);
    s.size = DataSize::Bytes(p.rtp());
    s.sequence_number = p.number;
    s.pacing_info = p.info;
    in_flight_ += s.size;
    s.data_in_flight = in_flight_;
    sent_[p.number] = s;
    link_.send(p);
    NetworkControlUpdate u = controller_->OnSentPacket(s);
    if (u.has_updates()) events.at(events.now, [this, u] { apply(u); });
  }
  void report() {
    events.at(events.now + kFeedback, [this] { report(); });
    if (arrived_.empty()) return;
    auto packets = std::exchange(arrived_, {});
    Micros made = events.now;
    events.at(made + s_.delay + extra_, [this, packets, made] { feedback(packets, made); });
  }
  void feedback(const std::vector<Packet>& packets, Micros made) {
    TransportPacketsFeedback report;
    report.feedback_time = time_of(events.now);
    std::map<int64_t, Micros> arrivals;
    for (auto& p : packets) arrivals[p.number] = p.arrived;
    // What is below the highest number and has not arrived is lost: the link keeps the order.
    int64_t highest = arrivals.rbegin()->first;
    for (auto it = sent_.begin(); it != sent_.end() && it->first <= highest; it = sent_.erase(it)) {
      PacketResult result;
      result.sent_packet = it->second;
      auto arrival = arrivals.find(it->first);
      if (arrival != arrivals.end())
        result.receive_time = time_of(arrival->second);
      else
        result.reported_lost_for_the_first_time = true;
      in_flight_ -= it->second.size;
      report.packet_feedbacks.push_back(result);
    }
    report.data_in_flight = in_flight_;
    RoundTripTimeUpdate u;
    u.receive_time = time_of(events.now);
    u.round_trip_time = TimeDelta::Micros(events.now - packets.back().sent - (made - packets.back().arrived));
    apply(controller_->OnRoundTripTimeUpdate(u));
    apply(controller_->OnTransportPacketsFeedback(report));
  }

  int id_;
  Micros extra_;
  const Settings& s_;
  Link<Packet>& link_;
  Environment environment_;
  BitrateProber prober_;
  std::unique_ptr<GoogCcNetworkController> controller_;
  double target_, pacing_, padding_ = 0;
  std::deque<Packet> queue_;
  Micros next_ = 0, next_padding_ = 0, wake_ = -1;
  int64_t number_ = 0;
  bool media_sent_ = false, reporting_ = false;
  std::map<int64_t, SentPacket> sent_;
  DataSize in_flight_ = DataSize::Zero();
  std::vector<Packet> arrived_;
};
}  // namespace

int main(int count, char** given) {
  Arguments a(count, given);
  Settings s{Micros(a.number("delay_ms", 100) * 1e3), a.number("floor", 30e3), a.number("ceiling", 3e6), a.number("start_rate", 300e3),
             int(a.number("padding", 1000))};
  std::vector<Flow*> flows;
  Link<Packet> link(events, a, [&](Packet p) { flows[p.flow]->arrive(p); });
  auto extra = a.numbers("extra_ms");
  for (int i = 0; i < a.number("flows", 1); i++) {
    Micros start = Micros(a.number("stagger_s", 0) * i * kMicros) + Micros(a.number("later", 0)) * i * kFrame;
    flows.push_back(new Flow(i, start, i < int(extra.size()) ? Micros(extra[i] * 1e3) : 0, s, link));
  }
  record(events, flows);
  events.run(Micros(a.number("duration_s", 120) * kMicros));
}
