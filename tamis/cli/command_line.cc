#include "tamis/cli/command_line.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <charconv>
#include <iostream>
#include <type_traits>

namespace tamis {
namespace {

OptionDescription DescribeOption(const CLI::Option& option) {
  OptionDescription described{.help = option.get_description(),
                              .default_value = option.get_default_str(),
                              .required = option.get_required(),
                              .repeated = option.get_items_expected_max() > 1};
  if (option.nonpositional()) {
    for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
  } else {
    described.names.push_back(option.get_name(true));
  }
  if (option.get_items_expected_max() == 0) return described;
  // CLI11 appends what its checks say: TEXT:{stop,skip}.
  described.value = option.get_type_name();
  const size_t checks = described.value.find(':');
  if (checks == std::string::npos) return described;
  std::string words = described.value.substr(checks + 1);
  described.value.resize(checks);
  if (words.starts_with('{') && words.ends_with('}')) {
    described.words = CLI::detail::split(words.substr(1, words.size() - 2), ',');
  }
  return described;
}

CommandDescription DescribeCommand(const CLI::App& app) {
  CommandDescription described{.name = app.get_name(), .help = app.get_description()};
  for (const CLI::Option* option : app.get_options()) {
    auto& list = option->nonpositional() ? described.options : described.arguments;
    list.push_back(DescribeOption(*option));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    described.commands.push_back(DescribeCommand(*command));
  }
  return described;
}

// CLI11 reads "-1" and numbers beyond 64 bits as the greatest number.
std::string CheckUnsigned(const std::string& text) {
  if (text.starts_with('-')) return "a number that is not negative is needed, not " + text;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc::result_out_of_range ? "the number " + text + " is too great" : "";
}

// CLI11 tells of a command that is missing where one is unknown, too.
bool PrintUnknownCommand(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::RequiredError*>(&error) == nullptr) return false;
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  const auto rest = app.remaining(/*recurse=*/true);
  if (command->get_require_subcommand_min() == 0 || rest.empty()) return false;
  std::cerr << "There is no " << (rest[0].starts_with('-') ? "option " : "command ") << rest[0]
            << "\nRun with --help for more information.\n";
  return true;
}

}  // namespace

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

const Option& Option::NotEmpty() const {
  option_->check([](const std::string& text) -> std::string {
    return text.empty() ? "the value must not be empty" : "";
  });
  return *this;
}

const Option& Option::OneOf(const std::vector<std::string>& values) const {
  option_->check(CLI::IsMember(values));
  return *this;
}

const Option& Option::InRange(int least, int most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

const Option& Option::AsSizeBytes() const {
  option_->transform(CLI::AsSizeValue(false));
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
  CLI::Option* const option = app_->add_option(name, value, help);
  if constexpr (std::is_same_v<T, uint64_t>) option->check(CheckUnsigned);
  return Option(option);
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
    : Command(nullptr), version_(version), owned_(std::make_unique<CLI::App>(help, name)) {
  app_ = owned_.get();
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
  app_->fallthrough();
}

CommandLine::~CommandLine() = default;

void CommandLine::AddConfigFile(const std::string& name, const std::string& help) {
  app_->set_config(name, "", help);
  app_->allow_config_extras(CLI::config_extras_mode::error);
}

CommandDescription CommandLine::Describe() const { return DescribeCommand(*app_); }

bool CommandLine::Parse(int argc, char** argv, int usage_code, int* exit_code) {
  try {
    app_->parse(argc, argv);
    return true;
  } catch (const CLI::ParseError& error) {
    const bool unknown = PrintUnknownCommand(*app_, error);
    *exit_code = !unknown && app_->exit(error) == 0 ? 0 : usage_code;
    return false;
  }
}

}  // namespace tamis
