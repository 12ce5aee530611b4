#include "tamis/rocks/store_log.h"

#include <ctime>

namespace tamis {

StoreLog::StoreLog(const std::string& directory) {
  if (directory.empty()) return;
  const std::string path = directory + "/LOG";
  (void)std::rename(path.c_str(), (path + ".old").c_str());
  file_ = std::fopen(path.c_str(), "we");
}

StoreLog::~StoreLog() {
  if (file_ != nullptr) (void)std::fclose(file_);
}

void StoreLog::Logv(const char* format, va_list arguments) {
  std::lock_guard lock(mutex_);
  if (file_ == nullptr) return;
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  char time[32] = "";
  if (localtime_r(&now, &parts) != nullptr) std::strftime(time, sizeof(time), "%F %T ", &parts);
  (void)std::fputs(time, file_);
  (void)std::vfprintf(file_, format, arguments);
  (void)std::fputc('\n', file_);
  (void)std::fflush(file_);
}

}  // namespace tamis
