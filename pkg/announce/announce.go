// Package announce decides what a node tells clients of itself: which name, which
// port, and which of name and address they are to use.
//
// Only client-facing directives are used. Nodes reach each other at pod IP, 6379
// and 16379 whatever is announced, so cluster-announce-port and its kin are never
// set.
package announce

import (
	"fmt"
	"strconv"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// Directives of the server that carry an announcement.
const (
	directiveHostname      = "cluster-announce-hostname"
	directiveEndpointType  = "cluster-preferred-endpoint-type"
	directiveClientPort    = "cluster-announce-client-port"
	directiveClientTLSPort = "cluster-announce-client-tls-port"
	directiveNodename      = "cluster-announce-human-nodename"
)

// Values are what one node announces.
type Values struct {
	// Hostname, empty for none.
	Hostname string
	// EndpointType that the node gives to clients for every node that it lists.
	EndpointType v1alpha1.EndpointType
	// ClientPort, 0 for the port that the node listens on.
	ClientPort int32
	// HumanNodename that servers log, empty for none.
	HumanNodename string
}

// Input is what the announcement of a node follows from.
type Input struct {
	// TLS is whether the cluster has it.
	TLS bool
	// External is spec.externalAccess; nil and not enabled are the same.
	External *v1alpha1.ExternalAccess
	// NodeName of the ValkeyNode.
	NodeName string
	// PodDNSName is the per-pod name <pod>.<cluster>.<namespace>.svc.<domain>.
	PodDNSName string
	// ShardIndex of the node.
	ShardIndex int32
	// ExternalPort at which clients outside reach the node; 0 while that isn't
	// known.
	ExternalPort int32
}

// For is the announcement of a node. Names and ports of the outside are given to
// clients only together: while the port isn't known, a node with external access
// announces as if addresses were preferred.
//
// A node has one name, and clients inside have to verify it, so on a TLS cluster
// the per-pod name stays until clients are directed to the outside one.
func For(in Input) Values {
	v := Values{EndpointType: v1alpha1.EndpointIP}
	if in.TLS {
		v = Values{Hostname: in.PodDNSName, EndpointType: v1alpha1.EndpointHostname}
	}
	if in.External == nil || !in.External.Enabled {
		return v
	}
	v.HumanNodename = in.NodeName
	outside := ShardHostname(in.External, in.ShardIndex)
	if outside == "" {
		return v
	}
	directed := in.External.PreferredEndpointType == v1alpha1.EndpointHostname && in.ExternalPort != 0
	if directed || !in.TLS {
		v.Hostname = outside
	}
	if directed {
		v.EndpointType = v1alpha1.EndpointHostname
		v.ClientPort = in.ExternalPort
	}
	return v
}

// ShardHostname is the outside name of a shard, <prefix>-<shard>.<domain>. It is
// empty without a domain.
func ShardHostname(external *v1alpha1.ExternalAccess, shard int32) string {
	if external == nil || external.Domain == "" {
		return ""
	}
	prefix := external.HostnamePrefix
	if prefix == "" {
		prefix = v1alpha1.DefaultHostnamePrefix
	}
	return fmt.Sprintf("%s-%d.%s", prefix, shard, external.Domain)
}

// Directives are the lines of valkey.conf, name and value: only what differs from
// the server's defaults, so that nothing to announce renders nothing.
func (v Values) Directives(tls bool) [][2]string {
	var lines [][2]string
	for _, line := range v.Assignments(tls) {
		switch value := line[1]; {
		case value == "", value == "0", line[0] == directiveEndpointType && value == string(v1alpha1.EndpointIP):
		default:
			lines = append(lines, line)
		}
	}
	return lines
}

// Assignments are the arguments of CONFIG SET, name and value: every directive, so
// that what is no longer wished is cleared. They belong into one command, since a
// client must never see the name of one announcement with the port of another.
func (v Values) Assignments(tls bool) [][2]string {
	endpointType := v.EndpointType
	if endpointType == "" {
		endpointType = v1alpha1.EndpointIP
	}
	port := directiveClientPort
	if tls {
		port = directiveClientTLSPort
	}
	return [][2]string{
		{directiveHostname, v.Hostname},
		{directiveEndpointType, string(endpointType)},
		{port, strconv.Itoa(int(v.ClientPort))},
		{directiveNodename, v.HumanNodename},
	}
}

// Read turns a server's answer to CONFIG GET of DirectiveNames into values. It is
// false when the answer lacks a directive.
func Read(answer map[string]string, tls bool) (Values, bool) {
	for _, name := range DirectiveNames(tls) {
		if _, ok := answer[name]; !ok {
			return Values{}, false
		}
	}
	portName := directiveClientPort
	if tls {
		portName = directiveClientTLSPort
	}
	port, err := strconv.ParseInt(answer[portName], 10, 32)
	if err != nil {
		return Values{}, false
	}
	return Values{
		Hostname: answer[directiveHostname], EndpointType: v1alpha1.EndpointType(answer[directiveEndpointType]),
		ClientPort: int32(port), HumanNodename: answer[directiveNodename],
	}, true
}
