// Stands in for libwebrtc's header of this name in tests: its public types by name and member, as of 2025, as far as a
// network controller sees them. Written for this purpose; no part of libwebrtc.
#ifndef STANDIN_NETWORK_TYPES_H
#define STANDIN_NETWORK_TYPES_H

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace webrtc {

// A number with infinities, as libwebrtc's units are.
template <typename Unit>
class Quantity {
 public:
  constexpr bool IsFinite() const { return value_ != kPlus && value_ != kMinus; }
  constexpr bool IsPlusInfinity() const { return value_ == kPlus; }
  static constexpr Unit PlusInfinity() { return Unit(kPlus); }
  static constexpr Unit MinusInfinity() { return Unit(kMinus); }

 protected:
  explicit constexpr Quantity(int64_t value) : value_(value) {}
  static constexpr int64_t kPlus = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kMinus = std::numeric_limits<int64_t>::min();
  int64_t value_;
};

class Timestamp : public Quantity<Timestamp> {
 public:
  static constexpr Timestamp Micros(int64_t us) { return Timestamp(us); }
  constexpr int64_t us() const { return value_; }

 private:
  friend class Quantity<Timestamp>;
  using Quantity::Quantity;
};
class TimeDelta : public Quantity<TimeDelta> {
 public:
  static constexpr TimeDelta Micros(int64_t us) { return TimeDelta(us); }
  static constexpr TimeDelta Millis(int64_t ms) { return TimeDelta(ms * 1000); }
  static constexpr TimeDelta Seconds(int64_t s) { return TimeDelta(s * 1000000); }
  static constexpr TimeDelta Zero() { return TimeDelta(0); }
  constexpr int64_t us() const { return value_; }

 private:
  friend class Quantity<TimeDelta>;
  using Quantity::Quantity;
};
class DataRate : public Quantity<DataRate> {
 public:
  static constexpr DataRate BitsPerSec(int64_t bps) { return DataRate(bps); }
  static constexpr DataRate Zero() { return DataRate(0); }
  static constexpr DataRate Infinity() { return PlusInfinity(); }
  constexpr int64_t bps() const { return value_; }

 private:
  friend class Quantity<DataRate>;
  using Quantity::Quantity;
};
class DataSize : public Quantity<DataSize> {
 public:
  static constexpr DataSize Bytes(int64_t bytes) { return DataSize(bytes); }
  static constexpr DataSize Zero() { return DataSize(0); }
  static constexpr DataSize Infinity() { return PlusInfinity(); }
  constexpr int64_t bytes() const { return value_; }

 private:
  friend class Quantity<DataSize>;
  using Quantity::Quantity;
};

enum class EcnMarking { kNotEct = 0, kEct1 = 1, kEct0 = 2, kCe = 3 };

struct StreamsConfig {};
struct TargetRateConstraints {
  Timestamp at_time = Timestamp::PlusInfinity();
  std::optional<DataRate> min_data_rate;
  std::optional<DataRate> max_data_rate;
  std::optional<DataRate> starting_rate;
};
struct NetworkAvailability {
  Timestamp at_time = Timestamp::PlusInfinity();
  bool network_available = false;
};
struct NetworkRouteChange {
  Timestamp at_time = Timestamp::PlusInfinity();
  TargetRateConstraints constraints;
};
struct PacedPacketInfo {
  static constexpr int kNotAProbe = -1;
  int probe_cluster_id = kNotAProbe;
};
struct SentPacket {
  Timestamp send_time = Timestamp::PlusInfinity();
  DataSize size = DataSize::Zero();
  PacedPacketInfo pacing_info;
  int64_t sequence_number;
};
struct ReceivedPacket {};
struct RemoteBitrateReport {
  Timestamp receive_time = Timestamp::PlusInfinity();
  DataRate bandwidth = DataRate::Infinity();
};
struct RoundTripTimeUpdate {
  Timestamp receive_time = Timestamp::PlusInfinity();
  TimeDelta round_trip_time = TimeDelta::PlusInfinity();
  bool smoothed = false;
};
struct TransportLossReport {
  Timestamp receive_time = Timestamp::PlusInfinity();
  uint64_t packets_lost_delta = 0;
  uint64_t packets_received_delta = 0;
};
struct PacketResult {
  bool IsReceived() const { return !receive_time.IsPlusInfinity(); }
  SentPacket sent_packet;
  Timestamp receive_time = Timestamp::PlusInfinity();
  std::optional<TimeDelta> arrival_time_offset;
  EcnMarking ecn = EcnMarking::kNotEct;
};
struct TransportPacketsFeedback {
  Timestamp feedback_time = Timestamp::PlusInfinity();
  std::vector<PacketResult> packet_feedbacks;
};
struct NetworkEstimate {
  Timestamp at_time = Timestamp::PlusInfinity();
  DataRate bandwidth = DataRate::Infinity();
  TimeDelta round_trip_time = TimeDelta::PlusInfinity();
  TimeDelta bwe_period = TimeDelta::PlusInfinity();
  float loss_rate_ratio = 0;
};
struct PacerConfig {
  Timestamp at_time = Timestamp::PlusInfinity();
  DataSize data_window = DataSize::Infinity();
  TimeDelta time_window = TimeDelta::PlusInfinity();
  DataSize pad_window = DataSize::Zero();
};
struct ProbeClusterConfig {
  Timestamp at_time = Timestamp::PlusInfinity();
  DataRate target_data_rate = DataRate::Zero();
  TimeDelta target_duration = TimeDelta::Zero();
  int32_t target_probe_count = 0;
  int32_t id = 0;
};
struct TargetTransferRate {
  Timestamp at_time = Timestamp::PlusInfinity();
  NetworkEstimate network_estimate;
  DataRate target_rate = DataRate::Zero();
};
struct NetworkControlUpdate {
  std::optional<DataSize> congestion_window;
  std::optional<PacerConfig> pacer_config;
  std::vector<ProbeClusterConfig> probe_cluster_configs;
  std::optional<TargetTransferRate> target_rate;
};
struct ProcessInterval {
  Timestamp at_time = Timestamp::PlusInfinity();
};
struct NetworkStateEstimate {};

}  // namespace webrtc

#endif
