package acl

import (
	"slices"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// The manager's own users.
const (
	// OperatorUser is who the manager logs in as.
	OperatorUser = v1alpha1.SystemUserPrefix + "operator"
	// ReplicationUser is who replicas and nodes that migrate slots log in as.
	ReplicationUser = settings.ReplicationUser
)

// operatorCommands are what the manager sends, and nothing else: neither cluster
// reset nor cluster flushslot, which lose data. acl cat and command info check the
// names in roles before a file is published.
var operatorCommands = []string{
	"ping", "info", "config|get", "config|set", "acl|load", "acl|list", "acl|cat", "command|info",
	"cluster|myid", "cluster|nodes", "cluster|info",
	"cluster|meet", "cluster|forget", "cluster|addslotsrange", "cluster|delslotsrange",
	"cluster|replicate", "cluster|failover", "cluster|bumpepoch", "cluster|set-config-epoch",
	"cluster|migrateslots", "cluster|getslotmigrations",
}

// OperatorCommands lists what OperatorUser may run, as ACL rules name it. Logging
// in needs no grant.
func OperatorCommands() []string { return slices.Clone(operatorCommands) }

func operatorRules() string {
	return "resetkeys resetchannels -@all +" + strings.Join(operatorCommands, " +")
}

// replicationRules are what a replica asks of its primary (sync with dual-channel
// replication only), and what a node that imports slots lets the exporting one do:
// cluster syncslots, select, and every write. Commands of @write that neither needs
// are taken away again.
const replicationRules = "~* resetchannels -@all +psync +sync +replconf +ping +cluster|syncslots +select +@write" +
	" -flushall -flushdb -swapdb -function -migrate"
