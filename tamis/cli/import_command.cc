// tamis import.
#include <cstdio>
#include <istream>

#include "tamis/cli/command.h"
#include "tamis/cli/connection.h"
#include "tamis/cli/importer.h"
#include "tamis/cli/input_file.h"
#include "tamis/cli/interrupt.h"

namespace tamis {
namespace {

int RunImport(const Invocation& invocation, ImportOptions options, const std::string& file,
              const std::string& format) {
  const auto record_format = ParseRecordFormat(format);
  if (!record_format.ok()) return Report(record_format.status());
  options.format = *record_format;
  auto input = InputFile::Open(file);
  if (!input.ok()) return Report(input.status());
  options.input_bytes = (*input)->size_bytes();
  auto connection = Connection::Open(invocation);
  if (!connection.ok()) return Report(connection.status());
  const InterruptScope interrupt(&(*connection)->session()->cancelled);
  options.cancelled = &(*connection)->session()->cancelled;
  (*input)->StopWhen(options.cancelled);
  std::istream stream(input->get());
  Importer importer((*connection)->session().get(), options);
  Status status = importer.Run(stream);
  if (status.ok()) status = (*input)->status();
  std::fputs(importer.Summary().c_str(), stdout);
  return Report(status);
}

}  // namespace

void AddImportCommand(Command app, Invocation* invocation) {
  auto options = std::make_shared<ImportOptions>();
  auto file = std::make_shared<std::string>();
  auto format = std::make_shared<std::string>();
  auto on_error = std::make_shared<std::string>("stop");
  Command import = app.AddCommand(
      "import",
      "Put the records of a file into a table, which is made when it is not there. A row replaces "
      "the one with the same key, so that an import that was stopped is just run again");
  import.AddOption("TABLE", options->table, "The table").Required();
  import.AddOption("FILE", *file, "The file; - is standard input").Required();
  import.AddOption("--format", *format, "csv, jsonl or deb822").Required();
  options->definition.AddTo(import);
  import.AddOption("--on-error", *on_error, "What a bad record does: stop or skip")
      .OneOf({"stop", "skip"})
      .ShowDefault();
  import.OnParsed([=] {
    options->skip_bad = *on_error == "skip";
  invocation->run = [=] { return RunImport(*invocation, *options, *file, *format); };
});
}  // namespace tamis

}  // namespace tamis
