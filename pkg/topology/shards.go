package topology

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// ErrHostnameNotAnnounced means that nodes prefer host names as endpoints and this
// node announces none: clients get "?", which must never be dialled.
var ErrHostnameNotAnnounced = errors.New("the node prefers host names but announces none: set cluster-announce-hostname or prefer ip")

// unknownEndpoint is what servers print for a preferred host name that isn't set.
const unknownEndpoint = "?"

// Shard is one entry of CLUSTER SHARDS: what a client is told.
type Shard struct {
	// ID of the shard, empty from servers that don't print it.
	ID string
	// Slots that the shard serves; a failed one may have none.
	Slots slots.Set
	// Nodes of the shard.
	Nodes []ShardNode
}

// ShardNode is one node of a Shard, as clients are told it.
type ShardNode struct {
	ID, IP, Hostname string
	// Endpoint is what clients are to dial: empty means the address that they
	// asked, "?" that there is none.
	Endpoint string
	// Port and TLSPort; 0 for a listener that isn't there.
	Port, TLSPort int
	Role          Role
	// Health is online, failed or loading.
	Health string
	// Offset of the replication stream.
	Offset int64
}

// DialAddress is the host:port that a client of the server at asked (a host or IP
// without port) dials.
func (n ShardNode) DialAddress(asked string, tls bool) (string, error) {
	host, port := n.Endpoint, n.Port
	if tls {
		port = n.TLSPort
	}
	switch host {
	case unknownEndpoint:
		return "", ErrHostnameNotAnnounced
	case "":
		host = asked
	}
	if host == "" || port == 0 {
		return "", fmt.Errorf("node %s has no address for this kind of connection", n.ID)
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// ParseShards decodes the reply of CLUSTER SHARDS: nested values of type []any,
// map[string]any, string, int64 and nil. Maps may come as such (RESP3) or as flat
// lists of keys and values (RESP2), with keys in any order and unknown ones among
// them.
func ParseShards(reply any) ([]Shard, error) {
	list, err := asList(reply)
	if err != nil {
		return nil, fmt.Errorf("read CLUSTER SHARDS: %w", err)
	}
	shards := make([]Shard, 0, len(list))
	for i, entry := range list {
		shard, err := parseShard(entry)
		if err != nil {
			return nil, fmt.Errorf("read CLUSTER SHARDS entry %d: %w", i, err)
		}
		shards = append(shards, shard)
	}
	return shards, nil
}

func parseShard(entry any) (Shard, error) {
	values, err := asMap(entry)
	if err != nil {
		return Shard{}, err
	}
	shard := Shard{ID: asText(values["id"])}
	bounds, err := asList(values["slots"])
	if err != nil {
		return Shard{}, fmt.Errorf("slots: %w", err)
	}
	if shard.Slots, err = parseBounds(bounds); err != nil {
		return Shard{}, fmt.Errorf("slots: %w", err)
	}
	nodes, err := asList(values["nodes"])
	if err != nil {
		return Shard{}, fmt.Errorf("nodes: %w", err)
	}
	for _, entry := range nodes {
		node, err := asMap(entry)
		if err != nil {
			return Shard{}, fmt.Errorf("nodes: %w", err)
		}
		shard.Nodes = append(shard.Nodes, ShardNode{
			ID: asText(node["id"]), IP: asText(node["ip"]), Hostname: asText(node["hostname"]),
			Endpoint: asText(node["endpoint"]), Health: asText(node["health"]),
			Port: int(asNumber(node["port"])), TLSPort: int(asNumber(node["tls-port"])),
			Role: asRole(asText(node["role"])), Offset: asNumber(node["replication-offset"]),
		})
	}
	return shard, nil
}

// parseBounds reads start, end, start, end…
func parseBounds(bounds []any) (slots.Set, error) {
	if len(bounds)%2 != 0 {
		return slots.Set{}, fmt.Errorf("%d bounds, want pairs", len(bounds))
	}
	ranges := make([]slots.Range, 0, len(bounds)/2)
	for i := 0; i < len(bounds); i += 2 {
		start, end := asNumber(bounds[i]), asNumber(bounds[i+1])
		if start < 0 || end < start || end >= slots.Count {
			return slots.Set{}, fmt.Errorf("%d to %d is no slot range", start, end)
		}
		ranges = append(ranges, slots.Range{Start: uint16(start), End: uint16(end)})
	}
	return slots.FromRanges(ranges...), nil
}

func asList(v any) ([]any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		return v, nil
	default:
		return nil, fmt.Errorf("got %T, want a list", v)
	}
}

func asMap(v any) (map[string]any, error) {
	switch v := v.(type) {
	case map[string]any:
		return v, nil
	case []any:
		if len(v)%2 != 0 {
			return nil, fmt.Errorf("a flat map has %d elements, want pairs", len(v))
		}
		m := make(map[string]any, len(v)/2)
		for i := 0; i < len(v); i += 2 {
			key, ok := v[i].(string)
			if !ok {
				return nil, fmt.Errorf("a flat map has a key of type %T", v[i])
			}
			m[key] = v[i+1]
		}
		return m, nil
	default:
		return nil, fmt.Errorf("got %T, want a map", v)
	}
}

// asText is empty for nil: servers answer null for what isn't set.
func asText(v any) string {
	s, _ := v.(string)
	return s
}

// asNumber is -1 for what is there but is no number, 0 for nil.
func asNumber(v any) int64 {
	switch v := v.(type) {
	case nil:
		return 0
	case int64:
		return v
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n
		}
	}
	return -1
}

func asRole(s string) Role {
	switch s {
	case "master", "primary":
		return RolePrimary
	case "slave", "replica":
		return RoleReplica
	default:
		return RoleUnknown
	}
}
