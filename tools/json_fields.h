#pragma once
// Names in the JSON of the commands, with their meaning, for the command reference.

namespace optimus::tools {

// "a.b" is b of the object a.
struct JsonField {
  const char* name;
  const char* meaning;
};

}  // namespace optimus::tools
