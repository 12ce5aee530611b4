// Reads a stream of wrapped pieces: int32 size | piece. The plain bytes of all pieces are the byte
// stream of the connection; frames may begin and end anywhere in a piece.
//
// It uses memory proportional to the bytes received, not to the announced size of a piece.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "tamis/base/status.h"
#include "tamis/hbase/frame.h"
#include "tamis/hbase/sasl_mechanism.h"

namespace tamis::hbase {

class WrappedReader {
 public:
  explicit WrappedReader(size_t max_piece_bytes) : pieces_(max_piece_bytes) {}

  // Returns the buffer for the next bytes; call Commit() with the number of bytes written to it.
  std::span<char> Space() { return pieces_.Space(); }
  void Commit(size_t size) { pieces_.Commit(size); }

  // Returns the plain bytes of the next piece; nothing if it is incomplete. After an error the
  // stream cannot be read any further.
  Result<std::optional<std::string>> Next(SaslMechanism* mechanism) {
    const auto piece = pieces_.Next();
    if (!piece.ok()) return DataLoss("the server sends a wrapped piece that is too large");
    if (*piece && (*piece)->is_cut()) {
      return ResourceExhausted("there is no memory for a wrapped piece that the server sends");
    }
    if (!*piece) return std::optional<std::string>();
    TAMIS_ASSIGN_OR_RETURN(std::string plain, mechanism->Unwrap((*piece)->bytes));
    return std::optional(std::move(plain));
  }

  size_t capacity() const { return pieces_.capacity(); }

 private:
  FrameReader pieces_;
};

}  // namespace tamis::hbase
