package settings

import (
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// ReplicationUser is who replicas and migrating nodes log in as.
const ReplicationUser = v1alpha1.SystemUserPrefix + "repl"

// Files of a pod that directives name. The replication password is in a Secret and
// valkey.conf in a ConfigMap, so the one includes the other.
const (
	aclFile         = objects.ACLDir + "/" + objects.ACLFile
	primaryAuthFile = objects.AuthDir + "/" + objects.AuthKeyPrimaryAuth
)

// forced are the directives of every node, in the order in which they are
// rendered. docs list them with their reasons.
var forced = [][2]string{
	{"cluster-enabled", "yes"},
	{"cluster-config-file", objects.DataDir + "/nodes.conf"},
	{"cluster-node-timeout", "5000"},
	// Replicas stay with their shard, and a shard that gives its last slot away
	// doesn't turn into replicas of another.
	{"cluster-allow-replica-migration", "no"},
	// A manual failover is decided before SIGTERM follows the preStop sleep.
	{"cluster-manual-failover-timeout", "2000"},
	{"shutdown-on-sigterm", "failover"},
	{"dir", objects.DataDir},
	{"protected-mode", "no"},
	{"aclfile", aclFile},
	{"primaryuser", ReplicationUser},
	// Replicas are few: waiting for more of them costs each 5 s.
	{"repl-diskless-sync-delay", "0"},
	// The disk is an emptyDir: a final RDB would delay the handover, a BGSAVE holds
	// slot migrations.
	{"save", ""},
	{"appendonly", "no"},
}

// unforced are directives that the manager doesn't render, but that would break
// what it relies on.
var unforced = []string{
	// Rendered by mode, see Render.
	"port", "tls-port", "tls-cluster", "tls-replication", "tls-auth-clients",
	"tls-cert-file", "tls-key-file", "tls-ca-cert-file", "bind",
	// Given as an argument or included from a Secret.
	"primaryauth", "include",
	// Other names of the above.
	"masterauth", "masteruser",
	// Would give nodes another identity, port or listener than the manager dials.
	"cluster-port", "replica-announce-ip", "replica-announce-port", "slave-announce-ip", "slave-announce-port",
	"rdma-bind", "rdma-port",
	// The cluster decides who replicates whom; the server refuses to start with it.
	"replicaof", "slaveof",
	// The process would leave its container.
	"daemonize", "supervised",
	// Users and command names come from the ACL file alone.
	"requirepass", "user", "rename-command",
	// Other certificates than the ones that were checked; the reload would race
	// the manager's.
	"tls-ca-cert-dir", "tls-client-cert-file", "tls-client-key-file", "tls-client-key-file-pass",
	"tls-key-file-pass", "tls-auto-reload-interval",
	// What clients are told.
	"cluster-preferred-endpoint-type",
}

// announcePrefix starts the directives by which a node tells of itself.
const announcePrefix = "cluster-announce-"

var managed = func() map[string]bool {
	keys := map[string]bool{}
	for _, line := range forced {
		keys[line[0]] = true
	}
	for _, key := range unforced {
		keys[key] = true
	}
	return keys
}()

// IsManaged is whether a directive is the manager's own, so that a ValkeyConfig
// can't set it. As for the server, case doesn't matter.
func IsManaged(key string) bool {
	key = strings.ToLower(key)
	return managed[key] || strings.HasPrefix(key, announcePrefix)
}
