// The part of Abseil that is in the standard library since C++17.
#pragma once
#include <string_view>

namespace absl {
using std::string_view;
}  // namespace absl
