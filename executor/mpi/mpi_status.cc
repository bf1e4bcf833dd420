#include "executor/mpi/mpi_status.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_cat.h"

namespace optimus::executor {

absl::Status MpiStatus(int code, const char* call) {
  if (code == MPI_SUCCESS) {
    return absl::OkStatus();
  }
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) {
    return absl::InternalError(absl::StrCat(call, ": MPI error ", code));
  }
  std::string line(text.data(), static_cast<std::size_t>(length));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return absl::InternalError(absl::StrCat(call, ": ", line));
}

}  // namespace optimus::executor
