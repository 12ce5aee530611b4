// tamis import.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <istream>

#include "tamis/cli/command.h"
#include "tamis/cli/connection.h"
#include "tamis/cli/importer.h"
#include "tamis/cli/input_file.h"
#include "tamis/cli/interrupt.h"

namespace tamis {
namespace {

int RunImport(const Context& context, ImportOptions options, const std::string& file,
              const std::string& format) {
  const auto record_format = ParseRecordFormat(format);
  if (!record_format.ok()) return Report(record_format.status());
  options.format = *record_format;
  auto input = InputFile::Open(file);
  if (!input.ok()) return Report(input.status());
  options.input_bytes = (*input)->size_bytes();
  auto connection = Connection::Open(context);
  if (!connection.ok()) return Report(connection.status());
  const InterruptScope interrupt(&(*connection)->session()->cancelled);
  options.cancelled = &(*connection)->session()->cancelled;
  (*input)->StopWhen(options.cancelled);
  std::istream stream(input->get());
  Importer importer(&(*connection)->engine(), options);
  Status status = importer.Run(stream);
  if (status.ok()) status = (*input)->status();
  std::fputs(importer.Summary().c_str(), stdout);
  return Report(status);
}

}  // namespace

void AddImportCommand(CLI::App* app, Context* context) {
  auto options = std::make_shared<ImportOptions>();
  auto file = std::make_shared<std::string>();
  auto format = std::make_shared<std::string>();
  auto on_error = std::make_shared<std::string>("stop");
  CLI::App* import = app->add_subcommand(
      "import",
      "Put the records of a file into a table, which is made when it is not there. A row replaces "
      "the one with the same key, so that an import that was stopped is just run again");
  import->add_option("TABLE", options->table, "The table")->required();
  import->add_option("FILE", *file, "The file; - is standard input")->required();
  import->add_option("--format", *format, "csv, jsonl or deb822")->required();
  import->add_option("--key", options->key, "Columns of the key")->delimiter(',');
  import->add_option("--column", options->columns,
                     "NAME or NAME:TYPE; types are text, bytes, int64, double, bool, timestamp, "
                     "decimal. Columns not named are text");
  import->add_option("--index", options->indexes,
                     "COLUMN[,COLUMN...]: an index, named after its columns");
  import->add_option("--on-error", *on_error, "What a bad record does: stop or skip")
      ->check(CLI::IsMember({"stop", "skip"}))
      ->capture_default_str();
  import->callback([=] {
    options->skip_bad = *on_error == "skip";
  context->run = [=] { return RunImport(*context, *options, *file, *format); };
});
}  // namespace tamis

}  // namespace tamis
