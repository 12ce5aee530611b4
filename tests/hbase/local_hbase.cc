#include "tests/hbase/local_hbase.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace tamis {
namespace {

struct Output {
  int status;
  std::string text;
};

Output RunTool(const std::string& words) {
  const std::string command = std::string(TAMIS_HBASE_LOCAL) + " --directory " +
                              TAMIS_HBASE_DIRECTORY + " " + words + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  Output output;
  std::array<char, 4096> buffer;
  while (const size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.text.append(buffer.data(), size);
  }
  output.status = pclose(pipe);
  return output;
}

class Cleanup : public testing::Environment {
 public:
  void TearDown() override {
    // What failed may be read in the logs.
    RunTool(testing::UnitTest::GetInstance()->Passed() ? "clean" : "stop");
  }
};

}  // namespace

LocalHBase::LocalHBase() {
  RunTool("clean");
  const Output started = RunTool(
      "start 3 -D hbase.client.scanner.timeout.period=2000 -D hbase.ipc.max.request.size=4194304 "
      "-D hbase.balancer.period=86400000");
  if (started.status != 0) {
    std::fprintf(stderr, "cannot start HBase: %s\n", started.text.c_str());
    std::exit(1);
  }
  addresses_ = RunTool("addresses").text;
  addresses_.pop_back();  // the end of the line
  testing::AddGlobalTestEnvironment(new Cleanup);
}

LocalHBase& LocalHBase::Get() {
  static LocalHBase hbase;
  return hbase;
}

std::string LocalHBase::Run(const std::string& words) const {
  const Output output = RunTool(words);
  EXPECT_EQ(output.status, 0) << words << ": " << output.text;
  return output.text;
}

std::string LocalHBase::RoleOf(unsigned port) const {
  std::istringstream lines(Run("status"));
  const std::string wanted = " port " + std::to_string(port) + " ";
  for (std::string line; std::getline(lines, line);) {
    if (line.find(wanted) != std::string::npos) return line.substr(0, line.find(' '));
  }
  ADD_FAILURE() << "no role has port " << port;
  return "";
}

}  // namespace tamis
