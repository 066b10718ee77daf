// The part of Abseil that is in the standard library since C++17.
#pragma once
#include <optional>

namespace absl {
using std::make_optional;
using std::nullopt;
using std::optional;
}  // namespace absl
