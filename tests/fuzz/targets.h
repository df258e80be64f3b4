// What the fuzzers call: each ends the program if its promises do not hold for an input. The replay test calls the same on recorded inputs.
#ifndef CLOSEKNIT_TESTS_FUZZ_TARGETS_H_
#define CLOSEKNIT_TESTS_FUZZ_TARGETS_H_

#include "absl/strings/string_view.h"

namespace closeknit {

// Readers of fabric descriptions: any bytes give a fabric that is whole, or kInvalidArgument whose every line begins with a position.
void FuzzFabric(absl::string_view input);

// Host lists: what expands folds back to the same names; what does not names a position.
void FuzzHostList(absl::string_view input);

}  // namespace closeknit

#endif  // CLOSEKNIT_TESTS_FUZZ_TARGETS_H_
