#pragma once
// Error codes of MPI to Status.

#include "absl/status/status.h"

namespace optimus::executor {

// OK for MPI_SUCCESS, else INTERNAL "MPI_Isend: <the library's text>".
absl::Status MpiStatus(int code, const char* call);

}  // namespace optimus::executor

#define OPTIMUS_RETURN_IF_MPI_ERROR(call_name, ...) \
  OPTIMUS_RETURN_IF_ERROR(::optimus::executor::MpiStatus(call_name(__VA_ARGS__), #call_name))
