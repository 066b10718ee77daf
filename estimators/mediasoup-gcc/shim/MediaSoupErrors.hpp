// Exceptions of mediasoup's worker: MS_THROW_ERROR of Logger.hpp is all that is used of them.
#pragma once
#include "Logger.hpp"
