#include "tamis/redis/command.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "tamis/redis/settings.h"
#include "tamis/redis/trust.h"

namespace tamis::redis {
namespace {

constexpr int kStringArg = 0;
constexpr int kIntegerArg = 1;
constexpr int kDoubleArg = 2;
constexpr int kKeyArg = 3;
constexpr int kTokenArg = 6;
constexpr int kOneOfArg = 7;
constexpr int kBlockArg = 8;
constexpr int kOptionalArg = 1 << 0;
constexpr int kRepeatedArg = 1 << 1;

constexpr uint64_t kKeyReadOnly = 1 << 0;
constexpr uint64_t kKeyReadWrite = 1 << 1;
constexpr uint64_t kKeyAccess = 1 << 4;
constexpr uint64_t kKeyUpdate = 1 << 5;

constexpr int kByIndex = 2;
constexpr int kInRange = 2;

constexpr CommandInfoVersion kInfoVersion = {1, sizeof(CommandHistory), sizeof(CommandKeySpec),
                                             sizeof(CommandArg)};

// Reads Command::syntax; the server copies the result. Names and lists live as long as this.
class SyntaxReader {
 public:
  CommandArg* Read(std::string_view rest) {
    std::vector<CommandArg> args;
    while (!rest.empty()) {
      if (rest.front() == ' ') {
        rest.remove_prefix(1);
      } else if (rest.front() == '[') {
        const size_t end = rest.find(']');
        args.push_back(Option(rest.substr(1, end - 1)));
        rest.remove_prefix(end + 1);
      } else if (rest.front() == '<') {
        const size_t end = rest.find('>');
        args.push_back(Choice(rest.substr(1, end - 1)));
        rest.remove_prefix(end + 1);
      } else {
        const size_t end = std::min(rest.find(' '), rest.size());
        args.push_back(Word(rest.substr(0, end)));
        rest.remove_prefix(end);
      }
    }
    return Keep(std::move(args));
  }

 private:
  // Each a word or a block of several.
  CommandArg Choice(std::string_view text) {
    std::vector<CommandArg> choices;
    while (!text.empty()) {
      const size_t end = std::min(text.find('|'), text.size());
      const std::string_view choice = text.substr(0, end);
      const size_t space = choice.find(' ');
      if (space == choice.npos) {
        choices.push_back(Word(choice));
      } else {
        CommandArg block = New(Word(choice.substr(0, space)).name, kBlockArg);
        block.subargs = Read(choice);
        choices.push_back(block);
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    CommandArg arg = New("single_value", kOneOfArg);
    arg.subargs = Keep(std::move(choices));
    return arg;
  }

  CommandArg Option(std::string_view text) {
    CommandArg arg;
    if (text.find('|') != text.npos) {
      arg = Choice(text);
    } else if (const size_t space = text.find(' '); space != text.npos) {
      const CommandArg token = Word(text.substr(0, space));
      arg = New(token.name, kBlockArg);
      arg.subargs = Keep({token, Word(text.substr(space + 1))});
    } else {
      arg = Word(text);
    }
    arg.flags |= kOptionalArg;
    return arg;
  }

  CommandArg Word(std::string_view text) {
    if (std::isupper(static_cast<unsigned char>(text.front()))) {
      std::string name(text);
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      CommandArg arg = New(name, kTokenArg);
      arg.token = Keep(text);
      return arg;
    }
    const bool repeated = text.ends_with("...");
    if (repeated) text.remove_suffix(3);
    int type = text == "key" || text == "source" ? kKeyArg : kStringArg;
    if (const size_t colon = text.find(':'); colon != text.npos) {
      type = text.substr(colon + 1) == "double" ? kDoubleArg : kIntegerArg;
      text = text.substr(0, colon);
    }
    CommandArg arg = New(text, type);
    if (type == kKeyArg) arg.key_spec_index = text == "key" ? 0 : 1;
    if (repeated) arg.flags |= kRepeatedArg;
    return arg;
  }

  CommandArg New(std::string_view name, int type) {
    CommandArg arg{};
    arg.name = Keep(name);
    arg.type = type;
    arg.key_spec_index = -1;
    return arg;
  }

  const char* Keep(std::string_view text) { return names_.emplace_back(text).c_str(); }
  CommandArg* Keep(std::vector<CommandArg> args) {
    args.push_back({});  // ends the list
    return lists_.emplace_back(std::move(args)).data();
  }

  std::deque<std::string> names_;
  std::deque<std::vector<CommandArg>> lists_;
};

int Describe(Ctx* ctx, const Command& command) {
  SyntaxReader reader;
  CommandKeySpec key_specs[3] = {};
  const auto keys = [&](size_t spec, uint64_t flags, int first, int last) {
    key_specs[spec].flags = flags;
    key_specs[spec].begin_search_type = kByIndex;
    key_specs[spec].begin_search.index = first;
    key_specs[spec].find_keys_type = kInRange;
    key_specs[spec].find_keys.range = {last, 1, 0};
  };
  const bool reads = std::strstr(command.flags, "readonly") != nullptr;
  if (command.keys != Keys::kNone) {
    keys(0, reads ? kKeyReadOnly | kKeyAccess : kKeyReadWrite | kKeyUpdate, 1, 0);
  }
  if (command.keys == Keys::kFirstIsMadeOfOthers) keys(1, kKeyReadOnly | kKeyAccess, 2, -1);
  CommandInfo info{};
  info.version = &kInfoVersion;
  info.summary = command.summary;
  info.complexity = command.complexity;
  info.since = command.since;
  info.tips = command.tips;
  info.arity = command.arity;
  info.key_specs = key_specs;
  info.args = reader.Read(command.syntax);
  RedisModuleCommand* registered = server.GetCommand(ctx, command.name);
  if (registered == nullptr || server.SetCommandInfo(registered, &info) != kOk) return kErr;
  if (server.SetCommandACLCategories != nullptr) {
    return server.SetCommandACLCategories(registered, command.categories);
  }
  return kOk;
}

}  // namespace

int RegisterCommands(Ctx* ctx, std::span<const Command> commands) {
  for (const Command& command : commands) {
    const int first = command.keys == Keys::kNone ? 0 : 1;
    const int last = command.keys == Keys::kFirstIsMadeOfOthers ? -1 : first;
    if (server.CreateCommand(ctx, command.name, command.run, command.flags, first, last, first) !=
            kOk ||
        Describe(ctx, command) != kOk) {
      server.Log(ctx, "warning",
                 "the server refuses the command %s; is another module loaded that has it?",
                 command.name);
      return kErr;
    }
  }
  return kOk;
}

void ReplyOutOfMemory(Ctx* ctx) noexcept {
  CommandLost(ctx, false);
  server.ReplyWithError(ctx, kNoMemory);
}

bool Is(const String* word, std::string_view name) {
  const std::string_view text = TextOf(word);
  return std::ranges::equal(text, name, [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  });
}

bool ParseInteger(const String* word, long long* value) {
  return server.StringToLongLong(word, value) == kOk;
}

bool ParseDouble(const String* word, double* value) {
  return server.StringToDouble(word, value) == kOk;
}

void ReplyText(Ctx* ctx, std::string_view text) {
  server.ReplyWithStringBuffer(ctx, text.data(), text.size());
}

bool Resp3(Ctx* ctx) { return (server.GetContextFlags(ctx) & kFlagResp3) != 0; }

void Notify(Ctx* ctx, const char* event, String* key) {
  server.NotifyKeyspaceEvent(ctx, kNotifyModule, event, key);
}

}  // namespace tamis::redis
