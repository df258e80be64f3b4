#include "proto/base/errors.h"

#include "gtest/gtest.h"

namespace closeknit {
namespace {

TEST(Errors, NestedFieldsKeepTheirWholePath) {
  const absl::Status status = UnderField("spec", UnderField("constraints", InvalidField("required_tier", "no tier 'podd'")));
  EXPECT_EQ(status.message(), "spec.constraints.required_tier: no tier 'podd'");
  const google::rpc::Status rpc = ToRpcStatus(status);
  ASSERT_EQ(rpc.details_size(), 1);
  google::rpc::BadRequest detail;
  ASSERT_TRUE(rpc.details(0).UnpackTo(&detail));
  EXPECT_EQ(detail.field_violations(0).field(), "spec.constraints.required_tier");
  EXPECT_EQ(FromRpcStatus(rpc), status);
}

TEST(Errors, TextMustBeUtf8WithoutControlCharacters) {
  EXPECT_TRUE(CheckText("name", "Größe 学习 🙂", 64).ok());
  for (const std::string bad : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\x1b[2J", "\x7f"}) {
    EXPECT_EQ(CheckText("name", bad, 64).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_FALSE(CheckText("name", absl::string_view("a\0b", 3), 64).ok());
  EXPECT_FALSE(CheckText("name", "toolong", 6).ok());
}

}  // namespace
}  // namespace closeknit
