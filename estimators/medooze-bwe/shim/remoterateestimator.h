// Of the receiver's estimator, the interface by which an application is told of a rate. It has more arguments in newer versions.
#pragma once
#include <cstdint>

struct RemoteRateEstimator {
  struct Listener {
    virtual ~Listener() = default;
    virtual void onTargetBitrateRequested(uint32_t bitrate) = 0;
    void onTargetBitrateRequested(uint32_t bitrate, uint32_t, uint32_t) { onTargetBitrateRequested(bitrate); }
  };
};
