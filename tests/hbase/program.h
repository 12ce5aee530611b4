// The program `tamis` on the real HBase of a test.
#pragma once

#include <string>
#include <vector>

namespace tamis {

struct Ended {
  int code = 0;
  std::string output;  // of both kinds
};

class Program {
 public:
  // Runs the program on the store `hbase://ADDRESSES/NAMESPACE`.
  Program(std::string program, std::string store)
      : program_(std::move(program)), store_(std::move(store)) {}

  Ended Run(const std::vector<std::string>& words) const;
  // Its output; the test fails when the program fails.
  std::string Do(const std::vector<std::string>& words) const;
  // Its output; the test fails unless the program ends with this code.
  std::string Fail(const std::vector<std::string>& words, int code = 1) const;
  // Started, with its output thrown away: its process.
  int Start(const std::vector<std::string>& words) const;

 private:
  std::vector<std::string> Words(const std::vector<std::string>& words) const;

  const std::string program_;
  const std::string store_;
};

}  // namespace tamis
