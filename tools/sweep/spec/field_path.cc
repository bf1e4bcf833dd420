#include "tools/sweep/spec/field_path.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "google/protobuf/dynamic_message.h"
#include "hw_profiles/profile.pb.h"
#include "schedule/step/experiment.pb.h"

namespace optimus::sweep {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr char kProfilePrefix[] = "profile.";

bool IsNumber(const Descriptor* type) { return type == hw::Number::descriptor(); }

std::string FieldNames(const Descriptor* type) {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(type->field_count()));
  for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
  return absl::StrJoin(names, ", ");
}

// "encoders[0]" -> encoders, 0. False where the brackets are no index.
bool SplitIndex(absl::string_view part, std::string& name, int& index) {
  const auto bracket = part.find('[');
  name = std::string(part.substr(0, bracket));
  if (bracket == absl::string_view::npos) return true;
  if (part.back() != ']') return false;
  return absl::SimpleAtoi(part.substr(bracket + 1, part.size() - bracket - 2), &index) &&
         index >= 0;
}

// The parser would print what is wrong on standard error.
class Silence : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int /*line*/, int /*column*/, const std::string& /*message*/) override {}
};

// As it stands in a text proto.
std::string AsText(const FieldDescriptor* field, const std::string& value) {
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_STRING) return value;
  return absl::StrCat("\"", absl::CEscape(value), "\"");
}

bool AddValue(const std::string& value, const FieldDescriptor* field, Message& message) {
  google::protobuf::TextFormat::Parser parser;
  Silence silence;
  parser.RecordErrorsTo(&silence);
  return parser.ParseFieldValueFromString(AsText(field, value), field, &message);
}

std::string TypeWords(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      return "a whole number";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM: {
      std::vector<std::string> names;
      const auto* type = field->enum_type();
      names.reserve(static_cast<std::size_t>(type->value_count()));
      for (int i = 0; i < type->value_count(); ++i) names.push_back(type->value(i)->name());
      return absl::StrCat("one of ", absl::StrJoin(names, ", "));
    }
    default:
      return "a text";
  }
}

// A changed number has another origin than the one that its profile names.
void MarkChanged(Message& holder) {
  if (!IsNumber(holder.GetDescriptor())) return;
  auto& number = dynamic_cast<hw::Number&>(holder);
  number.set_origin(hw::Number::ASSUMED);
  number.set_source("changed by a sweep");
  if (number.date().empty()) number.set_date("1970");
}

}  // namespace

absl::Status FieldPath::Error(const std::string& what) const {
  return absl::InvalidArgumentError(absl::StrCat(text_, ": ", what));
}

absl::StatusOr<FieldPath> FieldPath::Parse(const std::string& text) {
  FieldPath path;
  path.text_ = text;
  absl::string_view rest = text;
  const Descriptor* type = step::Experiment::descriptor();
  if (absl::StartsWith(rest, kProfilePrefix)) {
    rest.remove_prefix(sizeof(kProfilePrefix) - 1);
    path.root_ = Root::kProfile;
    type = hw::HardwareProfile::descriptor();
  }
  for (const absl::string_view part : absl::StrSplit(rest, '.')) {
    if (type == nullptr || IsNumber(type)) {
      return path.Error(absl::StrCat("\"", path.last(), "\" has no fields"));
    }
    std::string name;
    Step step;
    if (!SplitIndex(part, name, step.index)) {
      return path.Error(absl::StrCat("\"", part, "\" has no index from 0 in its brackets"));
    }
    step.field = type->FindFieldByName(name);
    if (step.field == nullptr) {
      return path.Error(absl::StrCat("no field \"", name, "\"; there are ", FieldNames(type),
                                     type == step::Experiment::descriptor()
                                         ? "; and profile for the hardware profile's"
                                         : ""));
    }
    type = step.field->message_type();
    if (type != nullptr && step.field->is_repeated() && step.index < 0) {
      return path.Error(absl::StrCat("\"", name, "\" is a list; say which one: ", name, "[0]"));
    }
    if (step.index >= 0 && (type == nullptr || !step.field->is_repeated())) {
      return path.Error(absl::StrCat("\"", name, "\" takes no index"));
    }
    path.steps_.push_back(step);
  }
  if (type != nullptr && !IsNumber(type)) {
    return path.Error(absl::StrCat("is no value; its fields are ", FieldNames(type)));
  }
  return path;
}

const FieldDescriptor* FieldPath::ValueField() const {
  const FieldDescriptor* last = steps_.back().field;
  if (last->message_type() == nullptr) return last;
  return hw::Number::descriptor()->FindFieldByName("value");
}

bool FieldPath::is_integer() const {
  const auto type = ValueField()->cpp_type();
  return type == FieldDescriptor::CPPTYPE_INT32 || type == FieldDescriptor::CPPTYPE_INT64;
}

std::string FieldPath::SqlType() const {
  if (ValueField()->is_repeated()) return "TEXT";
  if (is_integer()) return "INTEGER";
  return ValueField()->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE ? "REAL" : "TEXT";
}

bool FieldPath::may_be_path() const {
  return root_ == Root::kExperiment &&
         (last() == "llm" || last() == "model" || last() == "profile" || last() == "schedule_file");
}

absl::Status FieldPath::SetValue(const std::string& value, Message& holder) const {
  const FieldDescriptor* field = ValueField();
  holder.GetReflection()->ClearField(&holder, field);
  std::vector<std::string> values = {value};
  if (field->is_repeated()) values = absl::StrSplit(value, ',', absl::SkipWhitespace());
  for (const std::string& one : values) {
    if (!AddValue(one, field, holder)) {
      return Error(absl::StrCat("\"", one, "\" is not ", TypeWords(field)));
    }
  }
  return absl::OkStatus();
}

absl::Status FieldPath::CheckValue(const std::string& value) const {
  google::protobuf::DynamicMessageFactory factory;
  const std::unique_ptr<Message> holder(
      factory.GetPrototype(ValueField()->containing_type())->New());
  return SetValue(value, *holder);
}

absl::Status FieldPath::Set(const std::string& value, Message& message) const {
  Message* holder = &message;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (step.field->message_type() == nullptr) break;
    const Reflection* reflection = holder->GetReflection();
    if (!step.field->is_repeated()) {
      holder = reflection->MutableMessage(holder, step.field);
      continue;
    }
    const int size = reflection->FieldSize(*holder, step.field);
    if (step.index >= size) {
      return Error(absl::StrCat("the list ", step.field->name(), " has ", size, " entries"));
    }
    holder = reflection->MutableRepeatedMessage(holder, step.field, step.index);
  }
  OPTIMUS_RETURN_IF_ERROR(SetValue(value, *holder));
  MarkChanged(*holder);
  return absl::OkStatus();
}

}  // namespace optimus::sweep
