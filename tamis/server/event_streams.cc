#include "tamis/server/event_streams.h"

#include <algorithm>

#include "tamis/base/exception_status.h"
#include "tamis/server/problem.h"
#include "tamis/server/store_view.h"

namespace tamis::server {
namespace {

constexpr const char* kEventStream = "text/event-stream";

}  // namespace

// One client. Events that come while others are being sent wait for them.
class EventStreams::Stream : public std::enable_shared_from_this<Stream> {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Stream(ExchangePtr exchange) : exchange_(std::move(exchange)) {}

  void NoticeDisconnect() {
    exchange_->OnDisconnect([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->ended_ = true;
    });
  }

  bool begun() const { return begun_; }
  bool ended() const { return ended_; }

  void Begin(std::string events) {
    begun_ = true;
    exchange_->Begin({.content_type = kEventStream});
    Add(std::move(events), SIZE_MAX);
  }

  // Cuts the stream when more than `max_pending` bytes wait already.
  void Add(std::string events, size_t max_pending) {
    std::unique_lock lock(mutex_);
    if (ended_) return;
    if (pending_.size() > max_pending) {
      lock.unlock();
      return Cut();
    }
    pending_ += events;
    Write(&lock);
  }

  void Cut() {
    begun_ = true;
    ended_ = true;
    exchange_->Abort();
  }

  // A comment, if nothing was sent for so long.
  void BreakSilence(Clock::duration silence) {
    std::unique_lock lock(mutex_);
    if (ended_ || is_writing_ || Clock::now() - written_ < silence) return;
    pending_ += ":\n\n";
    Write(&lock);
  }

  void End() {
    std::unique_lock lock(mutex_);
    if (ended_) return;
    if (!begun_) {
      ended_ = true;
      lock.unlock();
      return exchange_->Send(Problem(Unavailable("the server is stopping; ask another one")));
    }
    is_ending_ = true;
    Write(&lock);
  }

 private:
  void Write(std::unique_lock<std::mutex>* lock) {
    if (is_writing_) return;
    if (pending_.empty()) {
      if (!is_ending_ || ended_.exchange(true)) return;
      lock->unlock();
      return exchange_->End();
    }
    is_writing_ = true;
    written_ = Clock::now();
    std::string part = std::exchange(pending_, {});
    lock->unlock();
    exchange_->Write(std::move(part), [self = shared_from_this()](bool sent) {
      std::unique_lock again(self->mutex_);
      self->is_writing_ = false;
      if (!sent) {
        self->ended_ = true;
        return;
      }
      self->Write(&again);
    });
  }

  const ExchangePtr exchange_;
  std::atomic<bool> begun_ = false;
  std::atomic<bool> ended_ = false;
  std::mutex mutex_;
  std::string pending_;
  bool is_writing_ = false;
  bool is_ending_ = false;  // once `pending_` is sent
  Clock::time_point written_ = Clock::now();
};

EventStreams::EventStreams(std::shared_ptr<OpenedStore> store, Documents documents, Options options)
    : store_(std::move(store)),
      documents_(std::move(documents)),
      options_(options),
      thread_([this] { Run(); }) {}

EventStreams::~EventStreams() { Stop(); }

void EventStreams::Answer(const ExchangePtr& exchange) {
  if (exchange->request().method == "HEAD") {
    exchange->Begin({.content_type = kEventStream});
    return exchange->End();
  }
  const auto stream = std::make_shared<Stream>(exchange);
  bool is_full = false;
  {
    std::lock_guard lock(mutex_);
    std::erase_if(streams_, [](const auto& one) { return one->ended(); });
    is_full = streams_.size() >= options_.max_streams;
    if (!is_full && !stopped_) streams_.push_back(stream);
  }
  if (stopped_) return stream->End();
  if (is_full) {
    return exchange->Send(
        Problem(Busy("the server has " + std::to_string(options_.max_streams) +
                     " streams of events already; close another console and try again")));
  }
  stream->NoticeDisconnect();
  changed_.notify_all();
}

uint64_t EventStreams::open() const {
  std::lock_guard lock(mutex_);
  return static_cast<uint64_t>(
      std::ranges::count_if(streams_, [](const auto& one) { return !one->ended(); }));
}

void EventStreams::Stop() {
  {
    std::lock_guard lock(mutex_);
    if (stopped_.exchange(true)) return;
  }
  changed_.notify_all();
  thread_.join();
  std::vector<std::shared_ptr<Stream>> streams;
  {
    std::lock_guard lock(mutex_);
    streams.swap(streams_);
  }
  for (const auto& stream : streams) stream->End();
}

void EventStreams::Run() {
  StoreView view(store_.get(), &stopped_, options_.max_regions);
  std::string totals;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !streams_.empty(); });
    if (stopped_) return;
    lock.unlock();
    const auto begun = std::chrono::steady_clock::now();
    const Status told = WithoutExceptions([&] {
      Tell(&view, &totals);
      return Status::Ok();
    });
    const auto took = std::chrono::steady_clock::now() - begun;
    lock.lock();
    if (!told.ok()) {
      // Memory is short: some streams may lack changes. Their clients begin again.
      for (const auto& stream : streams_) stream->Cut();
    }
    changed_.wait_for(lock, std::max<std::chrono::nanoseconds>(options_.pause, 10 * took), [this] {
      return stopped_ ||
             std::ranges::any_of(streams_, [](const auto& one) { return !one->begun(); });
    });
  }
}

// Looks at the store once, and tells all streams.
void EventStreams::Tell(StoreView* view, std::string* totals) {
  std::string changes = view->Look();
  const std::string totals_now = documents_.totals();
  if (totals_now != *totals) changes += Event("totals", totals_now);
  *totals = totals_now;

  std::unique_lock lock(mutex_);
  std::erase_if(streams_, [](const auto& one) { return one->ended(); });
  const auto streams = streams_;
  lock.unlock();
  for (const auto& stream : streams) {
    if (!stream->begun()) {
      stream->Begin(Event("hello", documents_.hello()) + view->Whole() + Event("totals", *totals));
    } else if (!changes.empty()) {
      stream->Add(changes, options_.max_pending_bytes);
    } else {
      stream->BreakSilence(options_.silence);
    }
  }
}

}  // namespace tamis::server
