// Stands in for libwebrtc's header of this name in tests: see network_types.h.
#ifndef STANDIN_NETWORK_CONTROL_H
#define STANDIN_NETWORK_CONTROL_H

#include <memory>

#include "api/transport/network_types.h"

namespace webrtc {

class Environment {};

struct NetworkControllerConfig {
  explicit NetworkControllerConfig(const Environment& environment) : env(environment) {}
  TargetRateConstraints constraints;
  StreamsConfig stream_based_config;
  Environment env;
};

class NetworkControllerInterface {
 public:
  virtual ~NetworkControllerInterface() = default;
  [[nodiscard]] virtual NetworkControlUpdate OnNetworkAvailability(NetworkAvailability) = 0;
  [[nodiscard]] virtual NetworkControlUpdate OnNetworkRouteChange(NetworkRouteChange) = 0;
  [[nodiscard]] virtual NetworkControlUpdate OnProcessInterval(ProcessInterval) = 0;
  [[nodiscard]] virtual NetworkControlUpdate OnRemoteBitrateReport(RemoteBitrateReport) = 0;
  [[nodiscard]] virtual NetworkControlUpdate OnRoundTripTimeUpdate(RoundTripTimeUpdate) = 0;
  [[nodiscard]] virtual NetworkControlUpdate OnSentPacket(SentPacket) = 0;
#ifndef WEIR_WITHOUT_RECEIVED_PACKET
  [[nodiscard]] virtual NetworkControlUpdate OnReceivedPacket(ReceivedPacket) = 0;
#endif
  [[nodiscard]] virtual NetworkControlUpdate OnStreamsConfig(StreamsConfig) = 0;
  [[nodiscard]] virtual NetworkControlUpdate OnTargetRateConstraints(TargetRateConstraints) = 0;
  [[nodiscard]] virtual NetworkControlUpdate OnTransportLossReport(TransportLossReport) = 0;
  [[nodiscard]] virtual NetworkControlUpdate OnTransportPacketsFeedback(TransportPacketsFeedback) = 0;
  [[nodiscard]] virtual NetworkControlUpdate OnNetworkStateEstimate(NetworkStateEstimate) = 0;
};

class NetworkControllerFactoryInterface {
 public:
  virtual ~NetworkControllerFactoryInterface() = default;
  virtual std::unique_ptr<NetworkControllerInterface> Create(NetworkControllerConfig config) = 0;
  virtual TimeDelta GetProcessInterval() const = 0;
};

}  // namespace webrtc

#endif
