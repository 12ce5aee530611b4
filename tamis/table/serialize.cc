// Schemas and predicates to and from the messages of table.proto.
#include <algorithm>

#include "tamis/table/predicate.h"
#include "tamis/table/schema.h"
#include "tamis/table/table.pb.h"

namespace tamis {
namespace {

// The numbers of the messages are those of our own enums.
template <class Ours, class Theirs>
constexpr bool IsSame(Ours ours, Theirs theirs) {
  return static_cast<int>(ours) == static_cast<int>(theirs);
}
static_assert(IsSame(Type::kText, pb::TEXT) && IsSame(Type::kBytes, pb::BYTES) &&
              IsSame(Type::kInt64, pb::INT64) && IsSame(Type::kDouble, pb::DOUBLE) &&
              IsSame(Type::kBool, pb::BOOL) && IsSame(Type::kTimestamp, pb::TIMESTAMP) &&
              IsSame(Type::kDecimal, pb::DECIMAL));
static_assert(IsSame(Expression::Function::kLower, pb::Expression::LOWER) &&
              IsSame(Expression::Function::kSubstr, pb::Expression::SUBSTR) &&
              IsSame(Expression::Function::kDate, pb::Expression::DATE) &&
              IsSame(Expression::Function::kHour, pb::Expression::HOUR) &&
              IsSame(Expression::Function::kJsonText, pb::Expression::JSON_TEXT));
static_assert(IsSame(CellEncoding::kNone, pb::Column::NONE) &&
              IsSame(CellEncoding::kUtf8, pb::Column::UTF8) &&
              IsSame(CellEncoding::kRaw, pb::Column::RAW) &&
              IsSame(CellEncoding::kLong, pb::Column::LONG) &&
              IsSame(CellEncoding::kInt, pb::Column::INT) &&
              IsSame(CellEncoding::kShort, pb::Column::SHORT) &&
              IsSame(CellEncoding::kByte, pb::Column::BYTE) &&
              IsSame(CellEncoding::kText, pb::Column::TEXT) &&
              IsSame(CellEncoding::kPhoenixLong, pb::Column::PHOENIX_LONG) &&
              IsSame(CellEncoding::kPhoenixInt, pb::Column::PHOENIX_INT) &&
              IsSame(CellEncoding::kDouble, pb::Column::DOUBLE) &&
              IsSame(CellEncoding::kFloat, pb::Column::FLOAT) &&
              IsSame(CellEncoding::kPhoenixDouble, pb::Column::PHOENIX_DOUBLE) &&
              IsSame(CellEncoding::kPhoenixFloat, pb::Column::PHOENIX_FLOAT) &&
              IsSame(CellEncoding::kPhoenix, pb::Column::PHOENIX) &&
              IsSame(CellEncoding::kMillis, pb::Column::MILLIS) &&
              IsSame(CellEncoding::kSeconds, pb::Column::SECONDS) &&
              IsSame(CellEncoding::kMicros, pb::Column::MICROS) &&
              IsSame(CellEncoding::kPhoenixDate, pb::Column::PHOENIX_DATE) &&
              IsSame(CellEncoding::kBigDecimal, pb::Column::BIG_DECIMAL));
static_assert(IsSame(KeyPart::Form::kOrdered, pb::KeyPart::ORDERED) &&
              IsSame(KeyPart::Form::kFixed, pb::KeyPart::FIXED) &&
              IsSame(KeyPart::Form::kUntil, pb::KeyPart::UNTIL) &&
              IsSame(KeyPart::Form::kRest, pb::KeyPart::REST));
static_assert(IsSame(IndexNulls::kIndex, pb::Index::INDEX) &&
              IsSame(IndexNulls::kSkip, pb::Index::SKIP));
static_assert(!IsSame(IndexNulls::kIndex, pb::Index::EXTENDED) &&
              !IsSame(IndexNulls::kSkip, pb::Index::EXTENDED));
static_assert(IsSame(Predicate::Kind::kTrue, pb::Predicate::TRUE) &&
              IsSame(Predicate::Kind::kFalse, pb::Predicate::FALSE) &&
              IsSame(Predicate::Kind::kAnd, pb::Predicate::AND) &&
              IsSame(Predicate::Kind::kOr, pb::Predicate::OR) &&
              IsSame(Predicate::Kind::kNot, pb::Predicate::NOT) &&
              IsSame(Predicate::Kind::kCompare, pb::Predicate::COMPARE) &&
              IsSame(Predicate::Kind::kIn, pb::Predicate::IN) &&
              IsSame(Predicate::Kind::kPrefix, pb::Predicate::PREFIX) &&
              IsSame(Predicate::Kind::kIsNull, pb::Predicate::IS_NULL) &&
              IsSame(Predicate::Kind::kNotNull, pb::Predicate::NOT_NULL));
static_assert(IsSame(Predicate::Op::kEq, pb::Predicate::EQ) &&
              IsSame(Predicate::Op::kNe, pb::Predicate::NE) &&
              IsSame(Predicate::Op::kLt, pb::Predicate::LT) &&
              IsSame(Predicate::Op::kLe, pb::Predicate::LE) &&
              IsSame(Predicate::Op::kGt, pb::Predicate::GT) &&
              IsSame(Predicate::Op::kGe, pb::Predicate::GE));

void ToMessage(const Value& value, pb::Value* out) {
  if (value.is_null()) return;
  switch (value.type()) {
    case Type::kText:
      out->set_text(value.str());
      break;
    case Type::kBytes:
      out->set_raw(value.str());
      break;
    case Type::kInt64:
      out->set_int64(value.int64());
      break;
    case Type::kDouble:
      out->set_real(value.dbl());
      break;
    case Type::kBool:
      out->set_truth(value.int64() != 0);
      break;
    case Type::kTimestamp:
      out->set_timestamp_us(value.int64());
      break;
    case Type::kDecimal:
      out->set_decimal(value.str());
      break;
  }
}

Result<Value> FromMessage(const pb::Value& message) {
  switch (message.kind_case()) {
    case pb::Value::kText:
      return Value::Text(message.text());
    case pb::Value::kRaw:
      return Value::Bytes(message.raw());
    case pb::Value::kInt64:
      return Value::Int64(message.int64());
    case pb::Value::kReal:
      return Value::Double(message.real());
    case pb::Value::kTruth:
      return Value::Bool(message.truth());
    case pb::Value::kTimestampUs:
      return Value::Timestamp(message.timestamp_us());
    case pb::Value::kDecimal:
      return Value::Decimal(message.decimal());
    case pb::Value::KIND_NOT_SET:
      break;
  }
  return Value();
}

void ToMessage(const Predicate& predicate, pb::Predicate* out) {
  out->set_kind(static_cast<pb::Predicate::Kind>(predicate.kind));
  if (predicate.kind == Predicate::Kind::kCompare) {
    out->set_op(static_cast<pb::Predicate::Op>(predicate.op));
  }
  out->set_column(predicate.column);
  for (const Value& value : predicate.values) ToMessage(value, out->add_values());
  for (const Predicate& child : predicate.children) ToMessage(child, out->add_children());
}

// A number outside the enum becomes a value that Validate refuses.
template <class Ours, class Theirs>
Ours EnumOf(Theirs theirs) {
  return static_cast<Ours>(std::min<uint32_t>(static_cast<uint32_t>(theirs), 0xff));
}

Status Malformed(std::string_view what) {
  return DataLoss("cannot read a " + std::string(what) + ": the bytes are damaged or foreign");
}

void ToMessage(const Expression& expression, pb::Expression* out) {
  out->set_function(static_cast<pb::Expression::Function>(expression.function));
  out->set_source(expression.source);
  out->set_length(expression.length);
  for (const JsonPath::Step& step : expression.path.steps) {
    if (const auto* key = std::get_if<std::string>(&step)) {
      out->add_path()->set_key(*key);
    } else {
      out->add_path()->set_number(std::get<uint32_t>(step));
    }
  }
}

// Validate tests the rest, the number of the function too.
Result<Expression> FromMessage(const pb::Expression& message) {
  Expression expression{.function = EnumOf<Expression::Function>(message.function()),
                        .source = message.source(),
                        .length = message.length()};
  for (const pb::Expression::Step& step : message.path()) {
    if (step.kind_case() == pb::Expression::Step::KIND_NOT_SET) return Malformed("table schema");
    expression.path.steps.push_back(step.has_key() ? JsonPath::Step(step.key())
                                                   : JsonPath::Step(step.number()));
  }
  return expression;
}

Result<Column> FromMessage(const pb::Column& message) {
  Column column{.id = message.id(),
                .name = message.name(),
                .type = static_cast<Type>(message.type() <= 0xff ? message.type() : 0),
                .nullable = !message.not_null(),
                .cell = {message.family(), message.qualifier()},
                .encoding = EnumOf<CellEncoding>(message.encoding())};
  if (message.has_expression() != (message.type() == pb::COMPUTED)) {
    return Malformed("table schema");
  }
  if (message.has_expression()) {
    TAMIS_ASSIGN_OR_RETURN(column.expression, FromMessage(message.expression()));
    column.type = column.expression->ResultType();
  }
  return column;
}

// The shapes that Predicate promises; columns and types are for Validate, which knows the schema.
Result<Predicate> FromMessage(const pb::Predicate& message) {
  using Kind = Predicate::Kind;
  Predicate predicate;
  if (!pb::Predicate::Kind_IsValid(message.kind()) ||
      message.kind() == pb::Predicate::UNKNOWN_KIND) {
    return Malformed("condition");
  }
  predicate.kind = static_cast<Kind>(message.kind());
  predicate.column = message.column();
  for (const pb::Value& value : message.values()) {
    TAMIS_ASSIGN_OR_RETURN(Value parsed, FromMessage(value));
    predicate.values.push_back(std::move(parsed));
  }
  for (const pb::Predicate& child : message.children()) {
    TAMIS_ASSIGN_OR_RETURN(Predicate parsed, FromMessage(child));
    predicate.children.push_back(std::move(parsed));
  }
  const bool leaf = predicate.children.empty();
  bool good = true;
  switch (predicate.kind) {
    case Kind::kAnd:
    case Kind::kOr:
      good = predicate.values.empty();
      break;
    case Kind::kNot:
      good = predicate.values.empty() && predicate.children.size() == 1;
      break;
    case Kind::kCompare:
      good = leaf && predicate.values.size() == 1 && message.op() >= 1 && message.op() <= 6;
      if (good) predicate.op = static_cast<Predicate::Op>(message.op());
      break;
    case Kind::kPrefix:
      good = leaf && predicate.values.size() == 1 &&
             (predicate.values[0].is_null() || predicate.values[0].type() == Type::kText ||
              predicate.values[0].type() == Type::kBytes);
      break;
    case Kind::kIn:
      good = leaf;
      predicate = Predicate::In(predicate.column, std::move(predicate.values));
      break;
    case Kind::kTrue:
    case Kind::kFalse:
    case Kind::kIsNull:
    case Kind::kNotNull:
      good = leaf && predicate.values.empty();
      break;
  }
  if (!good) return Malformed("condition");
  return predicate;
}

// In ascending order of their numbers.
std::vector<pb::Index::Extension::Feature> RequiredFeatures(const IndexSpec& index) {
  std::vector<pb::Index::Extension::Feature> required;
  if (!index.include.empty()) required.push_back(pb::Index::Extension::INCLUDE);
  if (index.IsPartial()) required.push_back(pb::Index::Extension::WHERE);
  if (index.cell_map != nullptr) required.push_back(pb::Index::Extension::RANGES);
  return required;
}

void ToMessage(const IndexSpec& index, pb::Index* out) {
  out->set_id(index.id);
  out->set_name(index.name);
  out->mutable_columns()->Assign(index.columns.begin(), index.columns.end());
  out->set_fpr(index.fpr);
  out->set_expected_values(index.expected_values);
  out->set_seed(index.seed);
  const auto nulls = static_cast<pb::Index::Nulls>(index.nulls);
  const auto required = RequiredFeatures(index);
  if (required.empty()) {
    out->set_nulls(nulls);
    return;
  }
  out->set_nulls(pb::Index::EXTENDED);
  pb::Index::Extension* extension = out->mutable_extension();
  for (const auto feature : required) extension->add_required(feature);
  extension->set_nulls(nulls);
  extension->mutable_include()->Assign(index.include.begin(), index.include.end());
  if (index.IsPartial()) ToMessage(index.where, extension->mutable_where());
  if (index.cell_map != nullptr) extension->set_cell_map(index.cell_map->Serialize());
}

Status ReadExtension(const pb::Index& message, IndexSpec* index) {
  const std::string what = "cannot read a table schema: index \"" + index->name + "\" ";
  const pb::Index::Extension& extension = message.extension();
  std::vector<pb::Index::Extension::Feature> required;
  for (const int number : extension.required()) {
    if (number == pb::Index::Extension::NO_FEATURE ||
        !pb::Index::Extension::Feature_IsValid(number)) {
      return DataLoss(what + "requires feature number " + std::to_string(number) +
                      ", which this version does not know; use the version that made the index");
    }
    if (number == pb::Index::Extension::COMPUTED) {
      return DataLoss(
          what + "requires " +
          pb::Index::Extension::Feature_Name(static_cast<pb::Index::Extension::Feature>(number)) +
          ", which this version does not support; use the version that made the index");
    }
    required.push_back(static_cast<pb::Index::Extension::Feature>(number));
  }
  index->nulls = EnumOf<IndexNulls>(extension.nulls());
  index->include = {extension.include().begin(), extension.include().end()};
  if (extension.has_where()) {
    TAMIS_ASSIGN_OR_RETURN(index->where, FromMessage(extension.where()));
  }
  if (!extension.cell_map().empty()) {
    TAMIS_ASSIGN_OR_RETURN(CellMap map, CellMap::Deserialize(extension.cell_map()));
    index->cell_map = std::make_shared<const CellMap>(std::move(map));
  }
  if (required.empty() || required != RequiredFeatures(*index)) {
    return DataLoss(what + "does not have exactly the features that it requires");
  }
  return Status::Ok();
}

Result<IndexSpec> FromMessage(const pb::Index& message) {
  IndexSpec index{.id = message.id(),
                  .name = message.name(),
                  .columns = {message.columns().begin(), message.columns().end()},
                  .nulls = EnumOf<IndexNulls>(message.nulls()),
                  .fpr = message.fpr(),
                  .expected_values = message.expected_values(),
                  .seed = message.seed()};
  if (message.nulls() == pb::Index::EXTENDED) {
    TAMIS_RETURN_IF_ERROR(ReadExtension(message, &index));
  } else if (message.has_extension()) {
    return Malformed("table schema");
  }
  return index;
}

}  // namespace

std::string SerializeSchema(const TableSchema& schema) {
  pb::Schema out;
  out.set_id(schema.id);
  out.set_name(schema.name);
  out.set_version(schema.version);
  out.set_next_column_id(schema.next_column_id);
  out.set_next_index_id(schema.next_index_id);
  out.set_cells(schema.cells);
  if (schema.marker) {
    out.mutable_marker()->set_family(schema.marker->family);
    out.mutable_marker()->set_qualifier(schema.marker->qualifier);
  }
  for (const Column& column : schema.columns) {
    pb::Column* message = out.add_columns();
    message->set_id(column.id);
    message->set_name(column.name);
    message->set_type(static_cast<pb::ColumnType>(column.type));
    message->set_not_null(!column.nullable);
    message->set_family(column.cell.family);
    message->set_qualifier(column.cell.qualifier);
    message->set_encoding(static_cast<pb::Column::Encoding>(column.encoding));
    if (column.is_computed()) {
      message->set_type(pb::COMPUTED);
      ToMessage(*column.expression, message->mutable_expression());
    }
  }
  out.mutable_key()->Assign(schema.key.begin(), schema.key.end());
  for (const KeyPart& part : schema.key_parts) {
    pb::KeyPart* message = out.add_key_parts();
    message->set_form(static_cast<pb::KeyPart::Form>(part.form));
    message->set_encoding(static_cast<pb::Column::Encoding>(part.encoding));
    message->set_width(part.width);
    message->set_delimiter(part.delimiter);
  }
  for (const IndexSpec& index : schema.indexes) ToMessage(index, out.add_indexes());
  return out.SerializeAsString();
}

Result<TableSchema> ParseSchema(std::string_view bytes) {
  pb::Schema message;
  if (bytes.size() > INT32_MAX ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Malformed("table schema");
  }
  TableSchema schema;
  schema.id = message.id();
  schema.name = message.name();
  schema.version = message.version();
  schema.next_column_id = message.next_column_id();
  schema.next_index_id = std::max<uint32_t>(message.next_index_id(), 1);
  for (const pb::Column& column : message.columns()) {
    TAMIS_ASSIGN_OR_RETURN(Column parsed, FromMessage(column));
    schema.columns.push_back(std::move(parsed));
  }
  schema.key.assign(message.key().begin(), message.key().end());
  for (const pb::KeyPart& part : message.key_parts()) {
    schema.key_parts.push_back({.form = EnumOf<KeyPart::Form>(part.form()),
                                .encoding = EnumOf<CellEncoding>(part.encoding()),
                                .width = part.width(),
                                .delimiter = part.delimiter()});
  }
  schema.cells = message.cells();
  if (message.has_marker()) {
    schema.marker = {message.marker().family(), message.marker().qualifier()};
  }
  for (const pb::Index& index : message.indexes()) {
    TAMIS_ASSIGN_OR_RETURN(IndexSpec spec, FromMessage(index));
    schema.indexes.push_back(std::move(spec));
    // Schemas were stored without the next id while ids were given by the cluster.
    schema.next_index_id = std::max(schema.next_index_id, index.id() + 1);
  }
  if (Status status = schema.Validate(); !status.ok()) {
    return DataLoss("cannot read a table schema: " + status.message());
  }
  return schema;
}

std::string SerializePredicate(const Predicate& predicate) {
  pb::Predicate message;
  ToMessage(predicate, &message);
  return message.SerializeAsString();
}

Result<Predicate> ParsePredicate(std::string_view bytes) {
  pb::Predicate message;  // protobuf itself refuses messages nested more than 100 deep
  if (bytes.size() > INT32_MAX ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Malformed("condition");
  }
  return FromMessage(message);
}

}  // namespace tamis
