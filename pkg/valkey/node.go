package valkey

import (
	"context"
	"crypto/tls"
	"fmt"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/topology"
)

// Target is one server.
type Target struct {
	// Node is the name of the ValkeyNode; errors and observations carry it.
	Node string
	// Address is host:port. On TLS clusters the host is the pod's DNS name, which
	// the certificate is verified for.
	Address string
	// PodIP, if set, is dialled while the host of Address has no DNS record yet.
	// The name that is verified stays that of Address.
	PodIP string
	// TLS, if set, encrypts and verifies. ServerName defaults to the host of
	// Address.
	TLS *tls.Config
	// KnownLeaves are fingerprints of certificates (SHA-256 in lower-case hex) that the
	// server may present although they have expired. Chain and name are verified all
	// the same, at a time at which the certificate was valid.
	KnownLeaves []string
}

// Credentials log in. They print as a placeholder.
type Credentials struct {
	Username, Password string
}

// Format keeps the password out of logs and errors, whatever the verb.
func (c Credentials) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "%s:[redacted]", c.Username) }

// MarshalJSON keeps the password out of structured logs.
func (c Credentials) MarshalJSON() ([]byte, error) { return []byte(`"[redacted]"`), nil }

// Dialer connects to servers.
type Dialer interface {
	// Dial returns a connection that is logged in. It fails within seconds, and
	// when ctx ends.
	Dial(ctx context.Context, target Target, credentials Credentials) (Node, error)
}

// FailoverMode says whom a failover asks.
type FailoverMode string

// Values of FailoverMode.
const (
	// FailoverGraceful asks the primary, which hands over without loss.
	FailoverGraceful FailoverMode = ""
	// FailoverForce asks the other primaries, for when this one is dead.
	FailoverForce FailoverMode = "FORCE"
	// FailoverTakeover asks nobody, for when no majority of primaries is left.
	FailoverTakeover FailoverMode = "TAKEOVER"
)

// Node is the connection to one server. Commands end when their context does,
// and after 5 s at the latest. IsReply tells an answer that is an error from no
// answer. A connection that breaks is made anew by the next command.
type Node interface {
	// Observe asks all that a topology.Reply holds, in one round trip.
	Observe(ctx context.Context) (topology.Reply, error)
	// Ping succeeds when the server runs commands.
	Ping(ctx context.Context) error
	// MyID is the server's node ID.
	MyID(ctx context.Context) (string, error)
	// SetConfigEpoch gives a new node, which knows no other, its epoch.
	SetConfigEpoch(ctx context.Context, epoch uint64) error
	// BumpEpoch gives the node the highest epoch of the cluster without a vote.
	BumpEpoch(ctx context.Context) error
	// AddSlots assigns unassigned slots to the node.
	AddSlots(ctx context.Context, set slots.Set) error
	// DeleteSlots makes the node take slots, which it knows to have an owner, for
	// unassigned.
	DeleteSlots(ctx context.Context, set slots.Set) error
	// Meet introduces the node to the one at a pod IP.
	Meet(ctx context.Context, ip string) error
	// Replicate makes the node a replica of the primary with an ID.
	Replicate(ctx context.Context, primaryID string) error
	// Forget removes the node with an ID from the node's table. That it isn't in
	// the table is success.
	Forget(ctx context.Context, id string) error
	// Failover makes the node, a replica, try to take over from its primary.
	Failover(ctx context.Context, mode FailoverMode) error
	// ConfigSet sets all directives or none.
	ConfigSet(ctx context.Context, directives ...[2]string) error
	// ConfigGet returns directives by name; unknown ones are missing.
	ConfigGet(ctx context.Context, names ...string) (map[string]string, error)
	// ACLLoad makes the server read its users from disk.
	ACLLoad(ctx context.Context) error
	// ACLList returns the users in force, one line each.
	ACLList(ctx context.Context) ([]string, error)
	// Vocabulary asks which categories there are and which of some commands exist.
	Vocabulary(ctx context.Context, commands []string) (acl.Vocabulary, error)
	// MigrateSlots queues the export of slots to other primaries; that it succeeds
	// means only that they are queued.
	MigrateSlots(ctx context.Context, exports ...Export) error
	// SlotMigrations are the node's migrations since it started, those of the newest
	// command first, and of each command in the order that it gave.
	SlotMigrations(ctx context.Context) ([]topology.Migration, error)
	// Close gives the connection back.
	Close()
}
