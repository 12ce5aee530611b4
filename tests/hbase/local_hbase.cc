#include "tests/hbase/local_hbase.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace tamis {
namespace {

std::string added_words;  // extra arguments of "start"

struct Output {
  int status;
  std::string text;
};

// The directory of a cluster that is already running and is used unchanged; speeds up repeated
// runs.
const char* RunningDirectory() { return std::getenv("TAMIS_HBASE_RUNNING"); }

Output RunTool(const std::string& words) {
  const std::string command = std::string(TAMIS_HBASE_LOCAL) + " --directory " +
                              LocalHBase::Directory() + " " + words + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  Output output;
  std::array<char, 4096> buffer;
  while (const size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.text.append(buffer.data(), size);
  }
  output.status = pclose(pipe);
  return output;
}

std::string VersionVariable() {
  const char* const variable = std::getenv("TAMIS_HBASE_VERSION");
  return variable == nullptr ? "" : variable;
}

// Returns the arguments of "start" for the version of HBase that $TAMIS_HBASE_VERSION names, with
// the jar for that version.
std::string ForVersion(std::string words) {
  const std::string version = VersionVariable();
  if (version.empty()) return words;
  const std::string jar = "/tamis.jar";
  if (const size_t at = words.find(jar); at != std::string::npos && version.starts_with("3.")) {
    words.replace(at, jar.size(), "/tamis-hbase3.jar");
  }
  return words + " --version " + version;
}

class Cleanup : public testing::Environment {
 public:
  void TearDown() override {
    // After a failure, keep the logs.
    RunTool(testing::UnitTest::GetInstance()->Passed() ? "clean" : "stop");
  }
};

}  // namespace

LocalHBase::LocalHBase() {
  if (RunningDirectory() == nullptr) {
    RunTool("clean");
    const char* also = std::getenv("TAMIS_HBASE_ALSO");
    const Output started =
        RunTool(ForVersion("start 3 -D hbase.balancer.period=86400000 " TAMIS_HBASE_START +
                           added_words + " " + (also == nullptr ? "" : also)));
    if (started.status != 0) {
      std::fprintf(stderr, "cannot start HBase: %s\n", started.text.c_str());
      std::exit(1);
    }
    testing::AddGlobalTestEnvironment(new Cleanup);
  }
  if (std::ifstream(Directory() + "/kdc/ccache").good()) {
    setenv("KRB5_CONFIG", (Directory() + "/kdc/krb5.conf").c_str(), 1);
    setenv("KRB5CCNAME", ("FILE:" + Directory() + "/kdc/ccache").c_str(), 1);
  }
  addresses_ = RunTool("addresses").text;
  addresses_.pop_back();  // the newline
}

LocalHBase& LocalHBase::Get() {
  static LocalHBase hbase;
  return hbase;
}

std::string LocalHBase::Version() {
  const std::string version = VersionVariable();
  return version.empty() ? "2.6." : version;
}

void LocalHBase::AddToStart(const std::string& words) { added_words += " " + words; }

std::string LocalHBase::Directory() {
  const char* running = RunningDirectory();
  return running != nullptr ? running : TAMIS_HBASE_DIRECTORY;
}

std::string LocalHBase::Run(const std::string& words) const {
  const Output output = RunTool(words);
  EXPECT_EQ(output.status, 0) << words << ": " << output.text;
  return output.text;
}

bool LocalHBase::Try(const std::string& words) const { return RunTool(words).status == 0; }

std::string LocalHBase::RoleOf(unsigned port) const {
  const std::string role = FindRole(port);
  if (role.empty()) ADD_FAILURE() << "no role has port " << port;
  return role;
}

std::string LocalHBase::FindRole(unsigned port) const {
  // Servers that are down are included.
  const auto roles = nlohmann::json::parse(Run("status --json"));
  for (const auto& role : roles) {
    if (role["port"] == port) return role["role"];
  }
  return "";
}

std::string LocalHBase::StateOf(const std::string& role) const {
  const auto roles = nlohmann::json::parse(Run("status --json"));
  for (const auto& one : roles) {
    if (one["role"] == role) return one["state"];
  }
  return "down";
}

}  // namespace tamis
