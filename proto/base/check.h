// CHECK: ends the program when its own logic is broken. For what input, network or disk can cause, return a Status.
//
//   CHECK(slot < hosts.size()) << "job " << job_id;
//
// Abseil 20220623 has no CHECK; this is the part of it that the project uses.
#ifndef CLOSEKNIT_PROTO_BASE_CHECK_H_
#define CLOSEKNIT_PROTO_BASE_CHECK_H_

#include <sstream>

namespace closeknit::internal {

// Collects the message and aborts in its destructor.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Makes `condition ? (void)0 : Voidify() & stream` one expression of type void.
struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace closeknit::internal

#define CHECK(condition)             \
  (condition) ? static_cast<void>(0) \
              : ::closeknit::internal::Voidify() & ::closeknit::internal::CheckFailure(__FILE__, __LINE__, #condition).stream()

// The status must be OK.
#define CHECK_OK(expression)                                                 \
  do {                                                                       \
    const ::absl::Status closeknit_check_status = (expression);              \
    CHECK(closeknit_check_status.ok()) << closeknit_check_status.ToString(); \
  } while (false)

#endif  // CLOSEKNIT_PROTO_BASE_CHECK_H_
