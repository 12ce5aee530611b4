// CommandLine: the commands and options of the program: parses them, prints the help, describes
// itself for shells and the manual page. A thin layer over CLI11, which only its .cc includes,
// since each file that does takes ten seconds to compile.
//
// Command and Option are handles into the command line that made them, and must not outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tamis {

// A command line as data.
struct OptionDescription {
  std::vector<std::string> names;  // "-o", "--output"; of an argument: its name alone
  std::string help;
  std::string value;               // "TEXT", "UINT"; empty: a flag
  std::string default_value;       // empty: none is told
  std::vector<std::string> words;  // words that can be given, where they are known
  bool required = false;
  bool repeated = false;
};
struct CommandDescription {
  std::string name;
  std::string help;
  std::vector<OptionDescription> options;
  std::vector<OptionDescription> arguments;
  std::vector<CommandDescription> commands;
};

class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  const Option& Required() const;
  const Option& ShowDefault() const;
  const Option& Expected(int least, int most) const;  // how many values
  const Option& Delimiter(char delimiter) const;      // between values in one argument
  const Option& NotEmpty() const;
  const Option& OneOf(const std::vector<std::string>& values) const;
  const Option& InRange(int least, int most) const;
  const Option& AsSizeBytes() const;  // 64MB and the like
  const Option& FromEnvironment(const std::string& variable) const;
  const Option& Excludes(const Option& other) const;

 private:
  CLI::Option* option_;
};

class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command AddCommand(const std::string& name, const std::string& help) const;
  // Commands stand below it, and one must be named.
  void RequireCommand() const;
  // A name without dashes is a positional argument. T: std::string, std::vector<std::string>,
  // uint64_t, int or double. The value must outlive the parse.
  template <class T>
  Option AddOption(const std::string& name, T& value, const std::string& help) const;
  Option AddFlag(const std::string& name, bool& value, const std::string& help) const;
  // Called when it was named, after those below it.
  void OnParsed(std::function<void()> call) const;

 protected:
  CLI::App* app_;
};

class CommandLine : public Command {
 public:
  CommandLine(const std::string& name, const std::string& help, const std::string& version);
  ~CommandLine();

  // An option that names a file with values of options, in sections by command: INI or TOML. The
  // command line and the environment come first. Names that no option has are errors.
  void AddConfigFile(const std::string& name, const std::string& help);

  CommandDescription Describe() const;
  const std::string& version() const { return version_; }

  // True: go on. False: help was printed, or what is wrong; *exit_code is 0 or `usage_code`.
  bool Parse(int argc, char** argv, int usage_code, int* exit_code);

 private:
  const std::string version_;
  std::unique_ptr<CLI::App> owned_;
};

}  // namespace tamis
