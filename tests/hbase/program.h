// The program `tamis`, run on the real HBase of a test.
#pragma once

#include <string>
#include <vector>

namespace tamis {

struct Ended {
  int code = 0;
  std::string output;  // standard output and standard error
};

class Program {
 public:
  // `store` is "hbase://ADDRESSES/NAMESPACE".
  Program(std::string program, std::string store)
      : program_(std::move(program)), store_(std::move(store)) {}

  Ended Run(const std::vector<std::string>& words) const;
  // Returns the output; the test fails if the program fails.
  std::string Do(const std::vector<std::string>& words) const;
  // Returns the output; the test fails unless the program exits with this code.
  std::string Fail(const std::vector<std::string>& words, int code = 1) const;
  // Starts the program, discards its output, and returns its process id.
  int Start(const std::vector<std::string>& words) const;

 private:
  std::vector<std::string> Words(const std::vector<std::string>& words) const;

  const std::string program_;
  const std::string store_;
};

}  // namespace tamis
