// tamis import.
#include <cstdio>
#include <sstream>

#include "tamis/cli/command.h"
#include "tamis/cli/connection.h"
#include "tamis/cli/importer.h"
#include "tamis/cli/input_file.h"
#include "tamis/cli/interrupt.h"
#include "tamis/import/text_input.h"

namespace tamis {
namespace {

struct ImportArguments {
  std::string file;
  std::string format;
  std::string delimiter;
  std::string columns;
  bool no_header = false;
  std::string on_error = "stop";
};

// The format that the name of a file tells, without the ending of a packed one; empty: none.
std::string FormatOfName(std::string_view name) {
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (name.ends_with(packed)) name.remove_suffix(packed.size());
  }
  constexpr std::pair<std::string_view, std::string_view> kEndings[] = {{".csv", "csv"},
                                                                        {".json", "json"},
                                                                        {".jsonl", "jsonl"},
                                                                        {".ndjson", "jsonl"},
                                                                        {".deb822", "deb822"}};
  for (const auto& [ending, format] : kEndings) {
    if (name.ends_with(ending)) return std::string(format);
  }
  return "";
}

Status ReadArguments(const ImportArguments& arguments, ImportOptions* options) {
  const std::string format =
      arguments.format.empty() ? FormatOfName(arguments.file) : arguments.format;
  if (format.empty()) {
    return InvalidArgument("the name \"" + arguments.file +
                           "\" does not tell the format; give --format csv, json, jsonl or deb822");
  }
  TAMIS_ASSIGN_OR_RETURN(options->format, ParseRecordFormat(format));
  options->skip_bad = arguments.on_error == "skip";
  CsvOptions& csv = options->csv;
  if (!arguments.delimiter.empty()) {
    TAMIS_ASSIGN_OR_RETURN(csv.delimiter, ParseDelimiter(arguments.delimiter));
  }
  csv.has_header = !arguments.no_header;
  std::istringstream names(arguments.columns);
  for (std::string name; std::getline(names, name, ',');) csv.columns.push_back(name);
  const bool any = csv.delimiter || !csv.has_header || !csv.columns.empty();
  if (any && options->format != RecordFormat::kCsv) {
    return InvalidArgument("--delimiter, --no-header and --columns are for --format csv");
  }
  return Status::Ok();
}

int RunImport(const Invocation& invocation, ImportOptions options,
              const ImportArguments& arguments) {
  if (Status status = ReadArguments(arguments, &options); !status.ok()) return Report(status);
  const std::string& file = arguments.file;
  auto input = InputFile::Open(file);
  if (!input.ok()) return Report(input.status());
  options.input_bytes = (*input)->size_bytes();
  auto connection = Connection::Open(invocation);
  if (!connection.ok()) return Report(connection.status());
  const InterruptScope interrupt(&(*connection)->session()->cancelled);
  options.cancelled = &(*connection)->session()->cancelled;
  (*input)->StopWhen(options.cancelled);
  TextInput text(input->get());
  Importer importer((*connection)->session().get(), options);
  Status status = importer.Run(&text);
  // Input that could not be read looks empty.
  if (status.ok() || text.source_bytes() == 0) {
    if (!(*input)->status().ok()) status = (*input)->status();
  }
  std::fputs(importer.Summary().c_str(), stdout);
  return Report(status);
}

}  // namespace

void AddImportCommand(Command app, Invocation* invocation) {
  auto options = std::make_shared<ImportOptions>();
  auto arguments = std::make_shared<ImportArguments>();
  ImportArguments* a = arguments.get();
  Command import = app.AddCommand(
      "import",
      "Put the records of a file into a table; a missing table is made. A row replaces the row "
      "with the same key, so an interrupted import can be run again");
  import.AddOption("TABLE", options->table, "The table").Required();
  import
      .AddOption("FILE", a->file,
                 "The file, in UTF-8, UTF-16 or UTF-32, also packed by gzip or zstd; - is "
                 "standard input")
      .Required();
  import
      .AddOption("--format", a->format,
                 "csv, json or jsonl (an array of objects, or one object a line), deb822; default: "
                 "by the ending of the file's name (.csv, .json, .jsonl, .ndjson, .deb822, each "
                 "also with .gz or .zst)")
      .NotEmpty();
  import
      .AddOption("--delimiter", a->delimiter,
                 "The delimiter of a CSV: a character, or tab; default: a comma")
      .NotEmpty();
  import.AddFlag("--no-header", a->no_header,
                 "The first line of the CSV is a record; columns are column_1, column_2, ... or "
                 "those of --columns");
  import
      .AddOption("--columns", a->columns,
                 "Names of all columns of the CSV in the place of its header's, such as id,name")
      .NotEmpty();
  options->definition.AddTo(import);
  import.AddOption("--on-error", a->on_error, "On a bad record: stop or skip")
      .OneOf({"stop", "skip"})
      .ShowDefault();
  import.OnParsed([=] {
    invocation->run = [=] { return RunImport(*invocation, *options, *arguments);
};
}  // namespace tamis
);
}

}  // namespace tamis
