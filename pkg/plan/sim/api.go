package sim

import (
	"slices"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// never is a moment that has not come.
const never = time.Duration(-1)

// nodeObject is a ValkeyNode.
type nodeObject struct {
	name string
	// uid tells nodes of one name apart.
	uid       int
	position  plan.Position
	lifecycle v1alpha1.Lifecycle
	image     image
	// podCreated is the condition of that name, host what was recorded of where
	// the pod ran.
	podCreated bool
	host       *host
	nodeID     string
	role       topology.Role
	created    time.Duration
}

// podObject is a pod as the API server shows it.
type podObject struct {
	name string
	// serial tells pods of one name apart, owner is the uid of the node.
	serial, owner int
	phase         plan.PodPhase
	ip            string
	host          *host
	// inSync is the readiness gate.
	inSync bool
	// deleted is when the pod was told to stop, never if it was not.
	deleted time.Duration
	detail  string
	image   image
	// process that runs, or ran, in the pod. Only the model looks at it.
	process *server
}

// clusterStatus is the part of the ValkeyCluster's status that the manager reads
// again.
type clusterStatus struct {
	active bool
	// target is the snapshot to work towards while creating.
	target   *v1alpha1.TargetTopology
	recorded map[int32]slots.Set
}

// api is the API server: the objects as they are.
type api struct {
	nodes   map[string]*nodeObject
	pods    map[string]*podObject
	status  clusterStatus
	serials int
	ips     int
}

func newAPI() *api {
	return &api{
		nodes: map[string]*nodeObject{}, pods: map[string]*podObject{},
		status: clusterStatus{recorded: map[int32]slots.Set{}},
	}
}

// sortedNodes returns all nodes by name.
func (a *api) sortedNodes() []*nodeObject { return sorted(a.nodes) }

// sortedPods returns all pods by name.
func (a *api) sortedPods() []*podObject { return sorted(a.pods) }

func sorted[T any](m map[string]T) []T {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	out := make([]T, len(names))
	for i, name := range names {
		out[i] = m[name]
	}
	return out
}

// changedNode and changedPod tell the watchers of an object that was written.
func (w *world) changedNode(name string) { w.m.watch(objectNode, name) }
func (w *world) changedPod(name string)  { w.m.watch(objectPod, name) }

// deleteNode removes a ValkeyNode; its pod follows, as ownership wants it.
func (w *world) deleteNode(name string, byManager bool) {
	n := w.api.nodes[name]
	if n == nil {
		return
	}
	if s, ok := w.process(name); ok && byManager {
		s.retired = true
	}
	delete(w.api.nodes, name)
	w.changedNode(name)
	w.after(w.between(10*time.Millisecond, 2*time.Second), func() {
		if p := w.api.pods[name]; p != nil && p.owner == n.uid {
			w.deletePod(name, "its node was deleted")
		}
	})
}
