#include "scheduler/core/shape.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "placement/from_proto.h"
#include "placement/place.h"
#include "proto/base/check.h"
#include "scheduler/core/wire.h"

namespace closeknit {
namespace {

v1::JobSpec PlacementFields(const v1::JobSpec& spec) {
  v1::JobSpec fields;
  fields.set_partition(spec.partition());
  fields.set_nodes(spec.nodes());
  fields.set_gpus_per_node(spec.gpus_per_node());
  fields.set_ranks_per_node(spec.ranks_per_node());
  fields.set_spares(spec.spares());
  *fields.mutable_parallelism() = spec.parallelism();
  if (spec.has_constraints()) *fields.mutable_constraints() = spec.constraints();
  return fields;
}

void Ask(const ClusterView& ideal, Shape* shape) {
  shape->request = ToGangRequest(shape->spec, ideal.fabric());
  shape->fits_fabric = absl::OkStatus();
  if (!shape->request.ok()) return;
  absl::Status placed = Place(ideal, *shape->request).status();
  if (!placed.ok()) shape->fits_fabric = std::move(placed);
}

}  // namespace

Shape* ShapeTable::Acquire(const v1::JobSpec& spec, JobId private_to, const ClusterView* ideal) {
  v1::JobSpec fields = PlacementFields(spec);
  std::string key = DeterministicBytes(fields);
  if (private_to != 0) absl::StrAppend(&key, "\n", private_to);
  std::unique_ptr<Shape>& shape = shapes_[key];
  if (shape == nullptr) {
    shape = std::make_unique<Shape>();
    shape->key = std::move(key);
    shape->spec = std::move(fields);
    shape->request = absl::FailedPreconditionError("no topology has been applied");
    if (ideal != nullptr) Ask(*ideal, shape.get());
  }
  ++shape->jobs;
  return shape.get();
}

void ShapeTable::Release(Shape* shape) {
  CHECK(shape->jobs > 0) << "shape released too often";
  if (--shape->jobs > 0) return;
  CHECK(shape->ready.empty()) << "job " << shape->ready.begin()->job << " is still queued";
  shapes_.erase(std::string(shape->key));
}

void ShapeTable::MoveTo(const ClusterView& ideal) {
  for (auto& [key, shape] : shapes_) {
    Ask(ideal, shape.get());
    shape->blocked_at = 0;
    shape->idle_asked_at = 0;
  }
}

}  // namespace closeknit
