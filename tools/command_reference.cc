#include "tools/command_reference.h"

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tools/command.h"

namespace optimus::tools {
namespace {

// "FILE..." or "--fidelity=auto|folded|group|gpu"
std::string Synopsis(const CLI::Option& option) {
  if (option.get_positional()) {
    return absl::StrCat(option.get_name(true), option.get_items_expected_max() > 1 ? "..." : "");
  }
  std::string text = option.get_name();
  if (option.get_items_expected_max() > 0 && !option.get_type_name().empty()) {
    absl::StrAppend(&text, "=", option.get_type_name());
  }
  return text;
}

std::string Cell(const std::string& text) { return absl::StrReplaceAll(text, {{"|", "\\|"}}); }

void AppendOptions(const CLI::App& app, std::string& out) {
  absl::StrAppend(&out, "| argument | meaning | default |\n|---|---|---|\n");
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    const std::string fallback = option->get_default_str();
    absl::StrAppend(&out, "| `", Cell(Synopsis(*option)), "` | ", Cell(option->get_description()),
                    option->get_required() ? " (required)" : "", " | ",
                    fallback.empty() ? "" : absl::StrCat("`", Cell(fallback), "`"), " |\n");
  }
}

void AppendFields(absl::Span<const JsonField> fields, std::string& out) {
  absl::StrAppend(&out, "| name | meaning |\n|---|---|\n");
  for (const JsonField& field : fields) {
    absl::StrAppend(&out, "| `", field.name, "` | ", Cell(field.meaning), " |\n");
  }
}

void AppendJson(std::string& out) {
  absl::StrAppend(&out, "\n## JSON\n");
  for (const JsonSection& section : JsonSections()) {
    absl::StrAppend(&out, "\n", section.introduction, "\n\n");
    AppendFields(section.fields, out);
  }
}

bool IsNamed(const CLI::App* command) { return !command->get_name().empty(); }

// A command, or those under it where it has some.
void AppendCommand(const CLI::App& command, const std::string& name, std::string& out) {
  const std::vector<const CLI::App*> parts = command.get_subcommands(IsNamed);
  for (const CLI::App* part : parts) {
    AppendCommand(*part, absl::StrCat(name, " ", part->get_name()), out);
  }
  if (!parts.empty()) return;
  absl::StrAppend(&out, "\n## ", name, "\n\n", command.get_description(), "\n\n");
  AppendOptions(command, out);
}

}  // namespace

std::string CommandReference(const CLI::App& app) {
  std::string out =
      absl::StrCat("# Command reference\n\nThis page is the output of `", app.get_name(),
                   " --help-markdown`; a test keeps it current.\n\n", app.get_description(), "\n\n",
                   app.get_footer(), "\n\n## ", app.get_name(), "\n\n");
  AppendOptions(app, out);
  for (const CLI::App* command : app.get_subcommands(IsNamed)) {
    AppendCommand(*command, absl::StrCat(app.get_name(), " ", command->get_name()), out);
  }
  AppendJson(out);
  return out;
}

}  // namespace optimus::tools
