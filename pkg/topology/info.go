package topology

import (
	"fmt"
	"strconv"
	"strings"
)

// ClusterInfo is the part of CLUSTER INFO that decisions need.
type ClusterInfo struct {
	// State is ok or fail, in the node's own opinion.
	State string
	// SlotsAssigned of slots.Count. KnownNodes counts rows of CLUSTER NODES. Size
	// counts primaries that own slots.
	SlotsAssigned, KnownNodes, Size int
	// CurrentEpoch of the cluster and MyEpoch of the node or of its primary.
	CurrentEpoch, MyEpoch uint64
}

// StateOK is the State of a node that serves its slots and sees all others served.
const StateOK = "ok"

// ParseClusterInfo reads the reply of CLUSTER INFO.
func ParseClusterInfo(text string) (ClusterInfo, error) {
	f := parseFields(text)
	info := ClusterInfo{
		State:         f.required("cluster_state"),
		SlotsAssigned: int(f.number("cluster_slots_assigned")),
		KnownNodes:    int(f.number("cluster_known_nodes")),
		Size:          int(f.number("cluster_size")),
		CurrentEpoch:  f.unsigned("cluster_current_epoch"),
		MyEpoch:       f.unsigned("cluster_my_epoch"),
	}
	if f.err != nil {
		return ClusterInfo{}, fmt.Errorf("read CLUSTER INFO: %w", f.err)
	}
	return info, nil
}

// Replication is the part of INFO replication that decisions need.
type Replication struct {
	// Role in which the node replicates.
	Role Role
	// PrimaryHost and PrimaryPort that a replica dials: the internal ones, whatever
	// clients are told.
	PrimaryHost string
	PrimaryPort int
	// LinkUp is whether a replica is connected and streaming.
	LinkUp bool
	// SyncInProgress is whether a full sync is being received. Between two
	// attempts it is false for a moment: it alone proves nothing.
	SyncInProgress bool
	// LinkDownSeconds since the link was last up; -1 if it never was or the server
	// doesn't say. The server prints the field only while the link is down, and
	// HasLinkDownSeconds tells whether it did.
	LinkDownSeconds    int64
	HasLinkDownSeconds bool
	// Offset of the replication stream: what a primary has written, what a replica
	// has applied. A replica that never synced shows 1.
	Offset int64
	// Replicas that are connected to this node.
	Replicas []ReplicaLink
}

// ReplicaLink is a replica as its primary sees it.
type ReplicaLink struct {
	// IP and Port that the replica announces for replication.
	IP   string
	Port int
	// State is online once the replica streams.
	State string
	// Offset that the replica has acknowledged. Lag is the age of that in seconds.
	Offset, Lag int64
}

// ParseReplication reads the reply of INFO replication.
func ParseReplication(text string) (Replication, error) {
	f := parseFields(text)
	r := Replication{LinkDownSeconds: -1}
	switch role := f.required("role"); role {
	case "master", "primary":
		r.Role = RolePrimary
		r.Offset = f.number("master_repl_offset")
	case "slave", "replica":
		r.Role = RoleReplica
		r.PrimaryHost = f.values["master_host"]
		r.PrimaryPort = int(f.number("master_port"))
		r.LinkUp = f.values["master_link_status"] == "up"
		r.SyncInProgress = f.number("master_sync_in_progress") != 0
		r.Offset = f.number("slave_repl_offset")
		if _, r.HasLinkDownSeconds = f.values["master_link_down_since_seconds"]; r.HasLinkDownSeconds {
			r.LinkDownSeconds = f.number("master_link_down_since_seconds")
		}
	default:
		f.fail(fmt.Errorf("role %q is unknown", role))
	}
	for i := range int(f.number("connected_slaves")) {
		line, ok := f.values["slave"+strconv.Itoa(i)]
		if !ok {
			break
		}
		link, err := parseReplicaLink(line)
		if err != nil {
			f.fail(err)
			break
		}
		r.Replicas = append(r.Replicas, link)
	}
	if f.err != nil {
		return Replication{}, fmt.Errorf("read INFO replication: %w", f.err)
	}
	return r, nil
}

// parseReplicaLink reads ip=10.0.0.1,port=6379,state=online,offset=14,lag=1,type=replica.
func parseReplicaLink(line string) (ReplicaLink, error) {
	f := fields{values: map[string]string{}}
	for pair := range strings.SplitSeq(line, ",") {
		key, value, _ := strings.Cut(pair, "=")
		f.values[key] = value
	}
	link := ReplicaLink{
		IP:     f.required("ip"),
		Port:   int(f.number("port")),
		State:  f.required("state"),
		Offset: f.number("offset"),
		Lag:    f.number("lag"),
	}
	if f.err != nil {
		return ReplicaLink{}, fmt.Errorf("replica %q: %w", line, f.err)
	}
	return link, nil
}

// InSync is whether a replica holds its primary's data and follows it now.
func (r Replication) InSync() bool {
	return r.Role == RoleReplica && r.LinkUp && !r.SyncInProgress
}

// HasCopy is whether a replica holds a whole copy of its primary's data, be its
// link up or not: it has finished a sync once and no other has begun since. This
// is what a promotion may rely on when the primary is gone; the offset is no sign
// of it.
func (r Replication) HasCopy() bool {
	if r.Role != RoleReplica || r.SyncInProgress {
		return false
	}
	return r.LinkUp || r.HasLinkDownSeconds && r.LinkDownSeconds >= 0
}

// ParseKeyspace reads the reply of INFO keyspace and returns the number of keys in
// all databases.
func ParseKeyspace(text string) (int64, error) {
	total := int64(0)
	for db, line := range parseFields(text).values {
		if !strings.HasPrefix(db, "db") {
			continue
		}
		keysPart, _, _ := strings.Cut(line, ",")
		keys, err := strconv.ParseInt(strings.TrimPrefix(keysPart, "keys="), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read INFO keyspace: %s:%s: %w", db, line, err)
		}
		total += keys
	}
	return total, nil
}

// fields are the key:value lines of an INFO reply. The first error sticks.
type fields struct {
	values map[string]string
	err    error
}

func parseFields(text string) *fields {
	f := &fields{values: map[string]string{}}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if key, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") {
			f.values[key] = value
		}
	}
	return f
}

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *fields) required(key string) string {
	value, ok := f.values[key]
	if !ok {
		f.fail(fmt.Errorf("%s is missing", key))
	}
	return value
}

// number is 0 for a field that isn't there: versions differ in what they print.
func (f *fields) number(key string) int64 {
	value, ok := f.values[key]
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		f.fail(fmt.Errorf("%s: %w", key, err))
	}
	return n
}

func (f *fields) unsigned(key string) uint64 {
	value, ok := f.values[key]
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		f.fail(fmt.Errorf("%s: %w", key, err))
	}
	return n
}
