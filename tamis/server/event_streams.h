// EventStreams: the answers to GET /v1/events, which tell the console what happens in the store
// while it happens, as server-sent events (text/event-stream).
//
// A stream begins with "hello" and all that is known, then come the changes (store_view.h has the
// events), "totals" among them: what the searches of this server asked. One thread looks at the
// store for all streams, and only while there are some; after a look it pauses for at least ten
// times as long as the look took. A stream whose client does not take its events is cut; its client
// begins again.
//
// Threads: safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tamis/server/exchange.h"
#include "tamis/store/opened_store.h"

namespace tamis::server {

class StoreView;

class EventStreams {
 public:
  struct Options {
    size_t max_streams = 32;  // more are refused
    size_t max_regions = 100'000;
    size_t max_pending_bytes = size_t{16} << 20;  // bytes of changes that a client has not taken
    std::chrono::milliseconds pause{250};         // between two looks, at least
    std::chrono::milliseconds silence{10'000};    // then a comment shows that the stream lives
  };
  // JSON documents: what a stream begins with, and the totals as of the call.
  struct Documents {
    std::function<std::string()> hello;
    std::function<std::string()> totals;
  };

  EventStreams(std::shared_ptr<OpenedStore> store, Documents documents, Options options);
  ~EventStreams();

  EventStreams(const EventStreams&) = delete;
  EventStreams& operator=(const EventStreams&) = delete;

  void Answer(const ExchangePtr& exchange);
  uint64_t open() const;
  // Ends all streams cleanly; new ones are refused.
  void Stop();

 private:
  class Stream;
  void Run();
  void Tell(StoreView* view, std::string* totals);

  const std::shared_ptr<OpenedStore> store_;
  const Documents documents_;
  const Options options_;
  std::atomic<bool> stopped_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Stream>> streams_;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace tamis::server
