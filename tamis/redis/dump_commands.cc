#include "tamis/redis/dump_commands.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "tamis/redis/clock.h"
#include "tamis/redis/faults.h"
#include "tamis/redis/option_words.h"
#include "tamis/redis/settings.h"
#include "tamis/redis/tamis_key.h"
#include "tamis/redis/trust.h"
#include "tamis/redis/trusted_keys.h"

namespace tamis::redis {
namespace {

constexpr char kBadPosition[] =
    "ERR bad position: the first one is 0, the next one is that of the last answer of SCANDUMP";

}  // namespace

void ScanDump(Ctx* ctx, Words words) {
  const auto error = [&](const char* text) { server.ReplyWithError(ctx, text); };
  long long position = 0;
  if (!ParseInteger(words[2], &position) || position < 0) return error(kBadPosition);
  TamisKey key = Open(ctx, words, kRead);
  if (!Whole(ctx, key)) return;
  if (position == 0) {
    key->EndDump();  // drops an earlier dump that was not read to its end
    if (key->SizeBytes() > GreatestCopiedBytes(ctx)) return error(kTooLargeToCopy);
    const TrustedFilter::Saved& dump = key->BeginDump(TrustEpochToSave(), PresentMoment());
    server.ReplyWithArray(ctx, 2);
    server.ReplyWithLongLong(ctx, 1);
    return ReplyText(ctx, dump.header);
  }
  const TrustedFilter::Saved* dump = key->dump();
  if (dump == nullptr) return error("ERR no dump is under way: begin at position 0");
  const auto at = std::min<uint64_t>(static_cast<uint64_t>(position) - 1, dump->bytes.size());
  const std::string_view chunk =
      std::string_view(dump->bytes).substr(at, TrustedFilter::kGreatestChunk);
  server.ReplyWithArray(ctx, 2);
  server.ReplyWithLongLong(ctx,
                           chunk.empty() ? 0 : position + static_cast<long long>(chunk.size()));
  ReplyText(ctx, chunk);
  if (chunk.empty()) key->EndDump();
}

void LoadChunk(Ctx* ctx, Words words) {
  const auto error = [&](const char* text) { server.ReplyWithError(ctx, text); };
  long long position = 0;
  if (!ParseInteger(words[2], &position) || position < 0) return error(kBadPosition);
  const std::string_view data = TextOf(words[3]);
  TamisKey key = Open(ctx, words, kRead | kWrite);
  if (key.other_type()) return error(kWrongType);
  const auto bad = [&](const Status& status) {
    server.Log(ctx, "notice", "TAMIS.LOADCHUNK: %s", status.message().c_str());
    error("ERR received bad data: the log of the server says what is wrong");
  };
  if (position == 0) {
    if (!key.missing()) return error("ERR item exists");
    // Only this server's own log may say that a filter was trusted, and when it was written. A
    // client may send the log of another server, which is a part of this log from now on.
    const bool keeps_record = LoadsFiles(ctx) || faults.log_of_another_is_believed ||
                              faults.copies_are_believed || faults.dumps_are_trusted;
    const std::string header =
        keeps_record ? std::string(data) : TrustedFilter::WithoutRecord(data);
    auto filter = TrustedFilter::FromHeader(header, GreatestBytes(ctx));
    if (!filter.ok()) return bad(filter.status());
    if (filter->promised() > GreatestCopiedBytes(ctx)) return error(kTooLargeToCopy);
    key.Set(std::move(*filter));
    server.Replicate(ctx, "TAMIS.LOADCHUNK", "slb", words[1], 0ll, header.data(), header.size());
  } else {
    if (key.missing()) return error(kNotFound);
    if (!key->partial() || static_cast<uint64_t>(position) != key->received() + 1) {
      return error("ERR invalid position: chunks are taken one after the other");
    }
    ListTrustedKey(ctx, words[1]);
    if (const Status status = key->AppendChunk(data, GreatestBytes(ctx)); !status.ok())
      return bad(status);
    // A filter that a client loads is not trusted: items may have been added to its source
    // meanwhile. One that is loaded from the server's own log may be.
    TrustLoaded(ctx, key.get());
    server.ReplicateVerbatim(ctx);
  }
  Notify(ctx, "tamis.loadchunk", words[1]);
  server.ReplyWithSimpleString(ctx, "OK");
}

}  // namespace tamis::redis
