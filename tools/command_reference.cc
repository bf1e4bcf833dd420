#include "tools/command_reference.h"

#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tools/optimus_json.h"
#include "tools/report_json.h"
#include "tools/reproduction_json.h"

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
  absl::StrAppend(
      &out,
      "\n## JSON\n\n`optimus simulate`: one experiment is one object, several are `{\"results\": "
      "[...]}`, each with `speed_up` and `reduction_percent` (of the step time) "
      "against the first. Names that end in `_gib` and the FLOP figures are left "
      "out where the input (profiled stages, a schedule file) does not say "
      "them.\n\n");
  AppendFields(JsonFields(), out);
  absl::StrAppend(&out, "\n`optimus plan`:\n\n");
  AppendFields(PlanJsonFields(), out);
  absl::StrAppend(&out, "\n`optimus reproduce`:\n\n");
  AppendFields(ReproduceJsonFields(), out);
}

}  // namespace

std::string CommandReference(const CLI::App& app) {
  std::string out =
      absl::StrCat("# Command reference\n\nThis page is the output of `", app.get_name(),
                   " --help-markdown`; a test keeps it current.\n\n", app.get_description(), "\n\n",
                   app.get_footer(), "\n\n## ", app.get_name(), "\n\n");
  AppendOptions(app, out);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    absl::StrAppend(&out, "\n## ", app.get_name(), " ", command->get_name(), "\n\n",
                    command->get_description(), "\n\n");
    AppendOptions(*command, out);
  }
  AppendJson(out);
  return out;
}

}  // namespace optimus::tools
