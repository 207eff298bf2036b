package plan

import (
	"fmt"
	"slices"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan/ideal"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

const (
	// rollInFull is up to how many nodes a roll is followed node by node. Each step
	// looks at what every node says of every other, so it takes seconds from there on.
	rollInFull = 60
	// mostNodes is what a forecast can be made for at all, within memory.
	mostNodes = 1500
)

// foresight is a forecast with what was left out of it.
type foresight struct {
	ideal.Forecast
	// start is the state that it starts from.
	start plan.State
	// alike are the shards that are rolled after the one whose roll was followed, in
	// the same way.
	alike []int32
}

// foresee lets the planner run from a state on, to what the wish makes of it.
func foresee(s plan.State, c *v1alpha1.ValkeyCluster, w *wish) (foresight, error) {
	if n := max(len(s.Nodes), int(s.Target.Shards*(s.Target.ReplicasPerShard+1))); n > mostNodes {
		return foresight{}, fmt.Errorf("a cluster of %d nodes is too large for a forecast; the most is %d", n, mostNodes)
	}
	f := foresight{start: s}
	if t := c.Status.TargetSpec; s.Creating && t != nil && len(s.Replies) > 0 && assigned(s) {
		// What was begun is completed first; edits are applied afterwards.
		wished := s.Target
		s.Target = *t
		f.follow(s)
		s = f.End
		s.Target = wished
	}
	if f.Waiting == "" {
		f.roll(s)
	}
	f.request(w.cluster)
	return f, nil
}

func assigned(s plan.State) bool {
	for _, set := range s.Recorded {
		if !set.Empty() {
			return true
		}
	}
	return false
}

// follow adds what the planner does from a state on.
func (f *foresight) follow(s plan.State) {
	next := ideal.Steps(s)
	f.Steps, f.Waiting, f.End = append(f.Steps, next.Steps...), next.Waiting, next.End
}

// roll follows the planner to the end. In a large cluster it looks at the roll of
// one shard only, since those of the others are like it.
func (f *foresight) roll(s plan.State) {
	if len(s.Nodes) <= rollInFull {
		f.follow(s)
		return
	}
	calm := s
	calm.Nodes = slices.Clone(s.Nodes)
	outdated := map[string]string{}
	for i := range calm.Nodes {
		if n := &calm.Nodes[i]; n.Lifecycle != v1alpha1.LifecycleJoining && n.Outdated != "" {
			outdated[n.Name], n.Outdated = n.Outdated, ""
		}
	}
	f.follow(calm)
	if f.Waiting != "" {
		return
	}
	next := f.End
	next.Nodes = slices.Clone(f.End.Nodes)
	var shards []int32
	for _, n := range next.Nodes {
		if outdated[n.Name] != "" && !slices.Contains(shards, n.Position.Shard) {
			shards = append(shards, n.Position.Shard)
		}
	}
	if len(shards) == 0 {
		return
	}
	slices.Sort(shards)
	for i := range next.Nodes {
		if n := &next.Nodes[i]; n.Position.Shard == shards[0] {
			n.Outdated = outdated[n.Name]
		}
	}
	f.follow(next)
	for i := range f.End.Nodes {
		f.End.Nodes[i].Outdated = outdated[f.End.Nodes[i].Name]
	}
	f.alike = shards[1:]
}

// request adds the failover that somebody asked for; the manager begins it once the
// cluster is as wished.
func (f *foresight) request(c *v1alpha1.ValkeyCluster) {
	r, open := request.Open(c, request.Failover)
	if _, begun := r.Answer(c); !open || begun || f.Waiting != "" {
		return
	}
	shard, node, err := r.Shard()
	if err != nil {
		return
	}
	if action, err := plan.Handover(f.End, shard, node); err == nil {
		f.Steps = append(f.Steps, action)
	}
}
