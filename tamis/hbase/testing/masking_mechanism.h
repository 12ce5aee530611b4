// A SASL mechanism for tests: it answers the challenges "1", "2", ... and wraps bytes by a mask.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "tamis/hbase/sasl_mechanism.h"

namespace tamis::hbase {

class MaskingMechanism : public SaslMechanism {
 public:
  static constexpr size_t kMaxPieceBytes = 100;
  static constexpr char kMask = 0x5a;

  // The exchange has `rounds` challenges.
  MaskingMechanism(int rounds, bool wraps) : rounds_(rounds), wraps_(wraps) {}

  static std::string Masked(std::string_view bytes) {
    std::string masked(bytes);
    for (char& c : masked) c ^= kMask;
    return "!" + masked;
  }

  Result<Answer> Next(std::string_view challenge) override {
    if (challenge != std::to_string(++round_)) return FailedPrecondition("a wrong challenge");
    return Answer{.token = "to " + std::string(challenge), .is_last = round_ == rounds_};
  }
  bool wraps() const override { return wraps_; }
  size_t max_piece_bytes() const override { return kMaxPieceBytes; }
  Result<std::string> Wrap(std::string_view bytes) override { return Masked(bytes); }
  Result<std::string> Unwrap(std::string_view piece) override {
    if (!piece.starts_with('!')) return DataLoss("a wrong piece");
    return Masked(piece.substr(1)).substr(1);
  }

 private:
  const int rounds_;
  const bool wraps_;
  int round_ = 0;
};

}  // namespace tamis::hbase
