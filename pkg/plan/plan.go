// Package plan decides what the manager does next for one cluster. It is pure:
// it reads what was observed (State) and returns the next harmless batch of
// actions of one kind, each with its reason in words, or what it waits for. The
// same State always gives the same Decision, whatever the order of its parts, and
// nothing is remembered between two calls: a manager that is killed between any
// two actions goes on from what the servers say.
package plan

import (
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// PodPhase is what Kubernetes knows of a node's pod.
type PodPhase string

// Values of PodPhase.
const (
	// PodNone was not created yet.
	PodNone PodPhase = "None"
	// PodPending is created, its container does not run yet.
	PodPending PodPhase = "Pending"
	// PodRunning has a running container.
	PodRunning PodPhase = "Running"
	// PodTerminated has a container that ended; it never starts again.
	PodTerminated PodPhase = "Terminated"
	// PodGone was created once and no longer exists.
	PodGone PodPhase = "Gone"
)

// Position is a place in a cluster that one node fills. Two nodes may share one
// while the first is being replaced.
type Position struct {
	Shard, Index int32
}

// Node is one ValkeyNode with what Kubernetes says of its pod.
type Node struct {
	Name      string
	Position  Position
	Lifecycle v1alpha1.Lifecycle
	Pod       PodPhase
	// Terminating is true once the pod or the ValkeyNode has a deletion time.
	Terminating bool
	// TerminatingFor is how long ago the pod was told to stop.
	TerminatingFor time.Duration
	PodIP          string
	// InSync is the pod's readiness gate.
	InSync bool
	// NodeID is the server's ID that was recorded, also for a dead node.
	NodeID string
	// Role is what the server was when it was last seen, as it was recorded.
	Role topology.Role
	// Age since the ValkeyNode was created.
	Age time.Duration
	// Silent is how long the manager has had no answer from the node; 0 while it
	// answers.
	Silent time.Duration
	// Misread is for how long IsMisread has been true.
	Misread time.Duration
	// HostGone is true once nothing of the node can run any more, although nobody
	// saw its container end: its pod is gone and its Kubernetes node too, or that
	// node is at work again and reports no such pod.
	HostGone bool
	// Zone that the pod runs in, as far as it is known.
	Zone string
	// Outdated says in words why the node differs from the wish in a way that only
	// a replacement mends; empty if it doesn't.
	Outdated string
	// Detail says why a pod is pending or how it ended.
	Detail string
	// External is about clients outside Kubernetes.
	External External
}

// Proven reports whether the node's process is known to have ended, so that
// nobody can still write to it.
func (n Node) Proven() bool { return n.Pod == PodTerminated || n.Pod == PodGone && n.HostGone }

// Dead reports whether the node can never serve again: its container ended (a
// diskless server never restarts in place), or its pod is gone or going.
func (n Node) Dead() bool {
	return n.Pod == PodTerminated || n.Pod == PodGone || n.Terminating
}

// State is everything that a decision depends on.
type State struct {
	// Cluster is the cluster's name; UID tells clusters of one name apart.
	Cluster, UID string
	// Target is the shape to work towards: status.targetSpec while Creating.
	Target v1alpha1.TargetTopology
	// Creating is true until the cluster was complete once. Only then are slots
	// handed out to empty nodes.
	Creating bool
	Nodes    []Node
	// Replies of the servers that were asked; those of dead and leaving nodes
	// don't count.
	Replies []topology.Reply
	// Former are the names that pods of nodes which are no more still have.
	Former map[string]bool
	// Holds are positions whose replacement has to wait, with how long and why:
	// nodes that die before they join are replaced more and more slowly.
	Holds map[Position]Hold
	// Stalled are sources whose migrations fail, by name, with how long no other is
	// to be started, and why.
	Stalled map[string]Hold
	// Recorded are the slots that each shard was last seen to own.
	Recorded map[int32]slots.Set
	// Failovers says how long ago a failover was last asked for in a shard. Two at
	// a time would only delay each other.
	Failovers map[int32]time.Duration
	// LossAccepted is true while the user has acknowledged that the data of shards
	// without a copy that answers is lost.
	LossAccepted bool
	// Claimed says of nodes that join, by name, which member of another cluster had
	// their address and may still be tried there.
	Claimed map[string]string
	// Unexposed says of shards why clients that are directed to outside names can't
	// reach them; empty unless names are in force.
	Unexposed map[int32]string
	// Unrouted says of shards why nobody answers yet at the outside port of their primary,
	// although clients may be directed there. A primary is routed to from its first slot on.
	Unrouted map[int32]string
	// Ending names, by shard, a pod of a node that was replaced and whose server may still
	// run: connections from outside that were opened before lead to it until it ends,
	// whoever its port leads to now.
	Ending map[int32]string
}

// Hold delays what failed before: the replacement of a node that died before it
// joined, or a migration.
type Hold struct {
	Remaining time.Duration
	Reason    string
}

// Kind names a kind of action.
type Kind string

// Kinds of actions, in the order in which a new cluster goes through them.
const (
	CreateNode     Kind = "CreateNode"
	SetConfigEpoch Kind = "SetConfigEpoch"
	AssignSlots    Kind = "AssignSlots"
	Introduce      Kind = "Introduce"
	Replicate      Kind = "Replicate"
	Activate       Kind = "Activate"
	Forget         Kind = "Forget"
	MoveSlots      Kind = "MoveSlots"
	Failover       Kind = "Failover"
	ReplaceLost    Kind = "ReplaceLost"
	Leave          Kind = "Leave"
	DeleteNode     Kind = "DeleteNode"
)

// FailoverMode says whose consent a failover needs.
type FailoverMode string

// Values of FailoverMode.
const (
	// Graceful asks the primary, which hands over without losing a write.
	Graceful FailoverMode = ""
	// Force asks the other primaries, for a primary that is proven dead.
	Force FailoverMode = "FORCE"
	// Takeover asks nobody, for when no majority of primaries is left to ask.
	Takeover FailoverMode = "TAKEOVER"
)

// Action is one step. Which fields are set depends on the kind.
type Action struct {
	Kind Kind
	// Node is the ValkeyNode that the command goes to, that is changed or that
	// is created.
	Node string
	// Position of a node to create.
	Position Position
	// JoinType of a node to create: a value of the join-type label.
	JoinType string
	// Predecessor is the dead node that a new one replaces.
	Predecessor string
	// Zone that a node to create should prefer: its predecessor's.
	Zone string
	// Target is the other ValkeyNode, if there is one.
	Target string
	// TargetID is a server's node ID, for Replicate and Forget.
	TargetID string
	// TargetIP is the pod IP to introduce.
	TargetIP string
	// Epoch to set.
	Epoch uint64
	// Slots to assign or to move.
	Slots slots.Set
	// Jobs is in how many migrations slots move, one after the other; 0 is one, too.
	Jobs int
	// Mode of a failover.
	Mode FailoverMode
	// Reason in words, for logs, conditions and people.
	Reason string
}

// Decision is what to do now.
type Decision struct {
	// Actions of one kind that can go together.
	Actions []Action
	// Waiting says what is waited for when there is nothing to do yet.
	Waiting string
	// Complete is true when the cluster is as wished: every node healthy by its
	// own word and all others', all slots assigned, every replica in sync.
	Complete bool
}

// NeedsLiveView reports whether the actions would do harm if they were decided from
// a cache that is behind: on what makes, deletes or forgets nodes, and on what gives
// slots to one that may be about to leave, the planner is asked again with objects
// from the API server itself.
func (d Decision) NeedsLiveView() bool {
	for _, a := range d.Actions {
		switch a.Kind {
		case CreateNode, DeleteNode, Forget, Leave, MoveSlots, ReplaceLost, AssignSlots:
			return true
		}
	}
	return false
}

// step is one rule: it returns actions, or what blocks all later rules.
type step func(*model) ([]Action, string)

// Next returns the next actions for a cluster.
func Next(s State) Decision {
	m := newModel(s)
	for _, rule := range []step{
		handOverTerminating,
		recall,
		promote,
		dropHung,
		dropSuperseded,
		dropObsolete,
		dropUnplaced,
		dropHollow,
		dropMisplaced,
		dropStrays,
		dropMisread,
		forgetDead,
		createNodes,
		setConfigEpochs,
		assignSlots,
		waitForNodes,
		introduce,
		replaceLost,
		replicate,
		waitForAgreement,
		activate,
		retireDead,
		rebalance,
		retireSurplus,
		waitForPositions,
		waitForPrimaries,
		roll,
	} {
		actions, waiting := rule(m)
		if len(actions) > 0 || waiting != "" {
			return Decision{Actions: actions, Waiting: waiting}
		}
	}
	return Decision{Complete: true}
}
