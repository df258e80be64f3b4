// RETURN_IF_ERROR(status) and ASSIGN_OR_RETURN(declaration, status_or): pass errors up.
#ifndef CLOSEKNIT_PROTO_BASE_STATUS_MACROS_H_
#define CLOSEKNIT_PROTO_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define RETURN_IF_ERROR(expression)                                                                      \
  do {                                                                                                   \
    if (::absl::Status closeknit_status = (expression); !closeknit_status.ok()) return closeknit_status; \
  } while (false)

#define CLOSEKNIT_CONCAT_INNER(a, b) a##b
#define CLOSEKNIT_CONCAT(a, b) CLOSEKNIT_CONCAT_INNER(a, b)
#define ASSIGN_OR_RETURN(declaration, expression) \
  CLOSEKNIT_ASSIGN_OR_RETURN(CLOSEKNIT_CONCAT(closeknit_status_or_, __LINE__), declaration, expression)
#define CLOSEKNIT_ASSIGN_OR_RETURN(status_or, declaration, expression) \
  auto status_or = (expression);                                       \
  if (!status_or.ok()) return std::move(status_or).status();           \
  declaration = *std::move(status_or)

#endif  // CLOSEKNIT_PROTO_BASE_STATUS_MACROS_H_
