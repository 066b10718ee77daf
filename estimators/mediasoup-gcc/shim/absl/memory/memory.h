// The part of Abseil that is in the standard library since C++14.
#pragma once
#include <memory>

namespace absl {
using std::make_unique;
}  // namespace absl
