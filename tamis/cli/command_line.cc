#include "tamis/cli/command_line.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace tamis {

const Option& Option::Required() const {
  option_->required();
  return *this;
}

const Option& Option::ShowDefault() const {
  option_->capture_default_str();
  return *this;
}

const Option& Option::Expected(int least, int most) const {
  option_->expected(least, most);
  return *this;
}

const Option& Option::Delimiter(char delimiter) const {
  option_->delimiter(delimiter);
  return *this;
}

const Option& Option::OneOf(std::vector<std::string> values) const {
  option_->check(CLI::IsMember(std::move(values)));
  return *this;
}

const Option& Option::InRange(int least, int most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

const Option& Option::AsSizeBytes() const {
  option_
      ->check([](const std::string& text) {
        return std::string(text.starts_with('-') ? "a size is not negative" : "");
      })
      ->transform(CLI::AsSizeValue(false));
  return *this;
}

const Option& Option::FromEnvironment(const std::string& variable) const {
  option_->envname(variable);
  return *this;
}

const Option& Option::Excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}

Command Command::AddCommand(const std::string& name, const std::string& help) const {
  return Command(app_->add_subcommand(name, help));
}

void Command::RequireCommand() const { app_->require_subcommand(1); }

template <class T>
Option Command::AddOption(const std::string& name, T& value, const std::string& help) const {
  return Option(app_->add_option(name, value, help));
}
template Option Command::AddOption(const std::string&, std::string&, const std::string&) const;
template Option Command::AddOption(const std::string&, std::vector<std::string>&,
                                   const std::string&) const;
template Option Command::AddOption(const std::string&, uint64_t&, const std::string&) const;
template Option Command::AddOption(const std::string&, int&, const std::string&) const;
template Option Command::AddOption(const std::string&, double&, const std::string&) const;

Option Command::AddFlag(const std::string& name, bool& value, const std::string& help) const {
  return Option(app_->add_flag(name, value, help));
}

void Command::OnParsed(std::function<void()> call) const { app_->callback(std::move(call)); }

CommandLine::CommandLine(const std::string& name, const std::string& help,
                         const std::string& version)
    : Command(nullptr), owned_(std::make_unique<CLI::App>(help, name)) {
  app_ = owned_.get();
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
  app_->fallthrough();
}

CommandLine::~CommandLine() = default;

bool CommandLine::Parse(int argc, char** argv, int usage_code, int* exit_code) {
  try {
    app_->parse(argc, argv);
    return true;
  } catch (const CLI::ParseError& error) {
    *exit_code = app_->exit(error) == 0 ? 0 : usage_code;
    return false;
  }
}

}  // namespace tamis
