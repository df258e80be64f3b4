// What placement sees of a job. Jobs that look alike to it share one Shape, so that a question about a thousand jobs is asked once.
#ifndef CLOSEKNIT_SCHEDULER_CORE_SHAPE_H_
#define CLOSEKNIT_SCHEDULER_CORE_SHAPE_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "closeknit/v1/types.pb.h"
#include "cluster_model/cluster_view.h"
#include "placement/gang_request.h"

namespace closeknit {

// The order of the queue: priority, then submission.
struct QueueKey {
  int32_t negated_priority = 0;
  uint64_t sequence = 0;
  JobId job = 0;
  friend auto operator<=>(const QueueKey&, const QueueKey&) = default;
};

struct Shape {
  std::string key;
  v1::JobSpec spec;                     // only the fields that placement looks at
  absl::StatusOr<GangRequest> request;  // on the present fabric
  absl::Status fits_fabric;             // kFailedPrecondition: were everything free, it still would not fit
  int jobs = 0;                         // that use it

  // What the last passes found; versions are those of the root domain of the view asked. 0: not asked yet.
  uint64_t blocked_at = 0;     // it did not fit the view of this version
  uint64_t idle_asked_at = 0;  // the idle view of this version was asked
  bool fits_idle = false;      // and it fits once work has ended
  std::string idle_why;        // why not, if not

  // Kept by JobQueue.
  absl::btree_set<QueueKey> ready;
  bool stalled = false;
};

// All shapes in use. Pointers stay good until the last Release.
class ShapeTable {
 public:
  // The shape of `spec`. `private_to`: 0, or a job that avoids hosts of its own and so shares no answers.
  // `ideal` is the fabric with everything up and free; null before the first topology.
  Shape* Acquire(const v1::JobSpec& spec, JobId private_to, const ClusterView* ideal);
  void Release(Shape* shape);
  // Forgets all answers and makes all requests anew. O(shapes * Place).
  void MoveTo(const ClusterView& ideal);

 private:
  absl::btree_map<std::string, std::unique_ptr<Shape>> shapes_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_CORE_SHAPE_H_
