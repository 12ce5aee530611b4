#include "tests/golden/formats.h"

#include <sstream>

#include "tamis/base/hash.h"
#include "tamis/base/random.h"
#include "tamis/rocks/search_position.h"
#include "tamis/table/codec.h"
#include "tamis/table/stored_row.h"
#include "tamis/table/testing/random_keys.h"
#include "tests/golden/golden_text.h"
#include "tests/golden/golden_values.h"

namespace tamis {

std::string Keys() {
  std::ostringstream out;
  out << "# F parts, each TYPE/PART (docs/TABLES.md#keys): the format of the lines that follow\n"
         "# K bytes values: a key and what it holds; K refused values: they are no key\n"
         "# X bytes: no key of the format\n"
         "# S part op value prefix low..high,...: where the keys with `part op value` lie, behind "
         "the bytes of the parts before; ? = not said\n";
  Random random(20);
  for (const TableSchema& schema : SchemasOfAllKeys()) {
    const KeyFormat format(schema);
    out << "F";
    for (size_t i = 0; i < schema.key.size(); ++i) {
      const Type type = schema.columns[schema.key[i]].type;
      out << " " << TypeName(type) << "/" << KeyPartText(type, schema.key_parts[i]);
    }
    out << "\n";
    for (int i = 0; i < 8; ++i) {
      Row row;
      for (size_t part = 0; part < schema.key.size(); ++part) {
        row.push_back(RandomKeyValue(schema.columns[part].type, schema.key_parts[part], random));
      }
      const auto key = format.Encode(row);
      out << "K " << Refused(key) << " " << Texts(row) << "\n";
      if (!key.ok()) continue;
      Row parsed;
      std::string damaged = *key;
      damaged[random.Uniform(damaged.size())] = static_cast<char>(random.Uniform(256));
      if (random.OneIn(3)) damaged.pop_back();
      if (!format.Decode(damaged, &parsed).ok()) out << "X " << Hex(damaged) << "\n";
      std::string prefix;
      for (size_t part = 0; part < schema.key.size(); ++part) {
        static constexpr const char* kOps[] = {"", "=", "<>", "<", "<=", ">", ">="};
        for (const Predicate& leaf : LeavesAbout(static_cast<uint32_t>(part), row[part])) {
          if (leaf.kind == Predicate::Kind::kIsNull) continue;
          const bool begins = leaf.kind == Predicate::Kind::kPrefix;
          out << "S " << part << " " << (begins ? "begins" : kOps[static_cast<int>(leaf.op)]) << " "
              << Text(leaf.values[0]) << " " << Hex(prefix) << " ";
          const auto spans = format.SpansOf(part, leaf, prefix);
          if (!spans.has_value()) {
            out << "?\n";
            continue;
          }
          std::string text;
          for (const KeySpan& span : *spans) {
            text += (text.empty() ? "" : ",") + Hex(span.start) + ".." + Hex(span.end);
          }
          out << (text.empty() ? "none" : text) << "\n";
        }
        if (!format.Append(part, row[part], &prefix).ok()) break;
      }
    }
  }
  return out.str();
}

std::string Rows() {
  std::ostringstream out;
  const TableSchema schema = SchemaOfAllTypes();
  out << "# T schema: a serialized schema, of the lines that follow\n"
         "# R values key row: a row, its key, what stands under it\n"
         "# I index values prefix,...  hash,...: its entry's encoded values, the hash of each "
         "leading prefix\n"
         "# C family:qualifier=bytes,... bytes: a row of cells\n";
  out << "T " << Hex(SerializeSchema(schema)) << "\n";
  Random random(21);
  for (int i = 0; i < 40; ++i) {
    const Row row = RandomRow(schema, random);
    out << "R " << Texts(row) << " " << Hex(EncodeKey(schema, row)) << " "
        << Hex(EncodeRow(schema, row)) << "\n";
    for (IndexSpec index : schema.indexes) {
      index.seed = 77;
      std::string prefixes;
      std::string hashes;
      for (const std::string& prefix : IndexPrefixes(index, row)) {
        prefixes += (prefixes.empty() ? "" : ",") + Hex(prefix);
        hashes += (hashes.empty() ? "" : ",") + Hex64(Hash(prefix, index.seed));
      }
      out << "I " << index.name << " " << prefixes << " " << hashes << "\n";
    }
  }
  for (const std::vector<Cell>& cells : std::vector<std::vector<Cell>>{
           {},
           {{{"d", ""}, ""}},
           {{{"d", "a"}, "x"}, {{"d", "b"}, Pattern(300)}, {{"e", "a"}, ""}}}) {
    std::string text;
    for (const Cell& cell : cells) {
      text += (text.empty() ? "" : ",") + Hex(cell.name.family) + ":" + Hex(cell.name.qualifier) +
              "=" + Hex(cell.value);
    }
    out << "C " << (text.empty() ? "-" : text) << " " << Hex(EncodeCells(cells)) << "\n";
  }
  return out.str();
}

std::string Predicates() {
  std::ostringstream out;
  const TableSchema schema = SchemaOfAllTypes();
  out << "# T schema: a serialized schema, of the lines that follow\n"
         "# R values: a row\n"
         "# P condition truths: a serialized condition and its truth on each row, one letter each: "
         "true, false, unknown\n";
  out << "T " << Hex(SerializeSchema(schema)) << "\n";
  Random random(22);
  std::vector<Row> rows;
  for (int i = 0; i < 30; ++i) {
    rows.push_back(RandomRow(schema, random));
    out << "R " << Texts(rows.back()) << "\n";
  }
  for (int i = 0; i < 200; ++i) {
    const Predicate predicate = RandomPredicate(schema, random, 3);
    out << "P " << Hex(SerializePredicate(predicate)) << " ";
    for (const Row& row : rows) {
      const auto truth = predicate.Evaluate(row);
      out << (!truth.has_value() ? "u" : *truth ? "t" : "f");
    }
    out << "\n";
  }
  return out.str();
}

std::string Positions() {
  std::ostringstream out;
  out << "# P branch key|entry|descending|key_descending index last bytes: how far a search has "
         "come in "
         "a region\n"
         "# X bytes: no position\n";
  for (const uint64_t branch :
       {uint64_t{0}, uint64_t{1}, uint64_t{127}, uint64_t{128}, uint64_t{300}, ~uint64_t{0}}) {
    for (const auto order :
         {SearchPosition::Order::kRowKey, SearchPosition::Order::kEntry,
          SearchPosition::Order::kEntryDescending, SearchPosition::Order::kRowKeyDescending}) {
      for (const uint32_t index_id : {uint32_t{0}, uint32_t{300}, ~uint32_t{0}}) {
        for (const std::string& last :
             {std::string(), std::string("a"), std::string("\0\xff", 2)}) {
          const SearchPosition position{
              .branch = branch, .order = order, .index_id = index_id, .last = last};
          out << "P " << branch << " " << Text(order) << " " << index_id << " " << Hex(last) << " "
              << Hex(position.Serialize()) << "\n";
        }
      }
    }
  }
  for (const std::string& bytes :
       {std::string(), std::string("\0", 1), std::string("\1\0\0\0", 4), std::string("\2"),
        std::string("\2\0", 2), std::string("\2\0\0", 3), std::string("\2\0\4\0", 4),
        std::string("\2\x80", 2), "\2" + std::string(10, '\xff') + "\1",
        std::string("\2\0\0\x80\x80\x80\x80\x10", 8)}) {
    if (!SearchPosition::Parse(bytes).has_value()) out << "X " << Hex(bytes) << "\n";
  }
  return out.str();
}

}  // namespace tamis
