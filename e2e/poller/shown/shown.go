// Package shown is what the poller has to say in the end.
package shown

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Node is a server of the cluster, as the poller is told of it.
type Node struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	IP   string `json:"ip"`
	// ServerName is what its certificate has to be for, with TLS.
	ServerName string `json:"serverName,omitempty"`
	// Active is whether it serves clients: one that joins or leaves is not asked, and what
	// is said of it does not count.
	Active bool `json:"active"`
}

// Shown is what a server told clients.
type Shown struct {
	// Viewer is the node that answered, Question what it was asked.
	Viewer   string `json:"viewer"`
	Question string `json:"question"`
	// Subject is the ID of the node that it spoke of, or "slot N" in a redirect, which
	// names no node.
	Subject  string `json:"subject"`
	Endpoint string `json:"endpoint"`
	Port     int    `json:"port"`
	// Times it was said.
	Times int `json:"times"`
}

// Address is where the client is sent, host:port.
func (s Shown) Address() string { return net.JoinHostPort(s.Endpoint, strconv.Itoa(s.Port)) }

// Report sums up a run.
type Report struct {
	Answers int     `json:"answers"`
	Shown   []Shown `json:"shown"`
}

// Questions that a poller puts to every server. Beside them it reads keys, for the
// redirects.
const (
	Slots  = "CLUSTER SLOTS"
	Shards = "CLUSTER SHARDS"
	Moved  = "MOVED"
)

// Read finds what one reply shows. Other replies than those to questions, and what can't
// be read, show nothing: an error text of a server that starts or ends.
func Read(question string, reply any) []Shown {
	var out []Shown
	switch question {
	case Slots:
		for _, r := range list(reply) {
			for _, entry := range list(r)[min(2, len(list(r))):] {
				if node := list(entry); len(node) >= 3 {
					out = append(out, Shown{Question: question, Subject: text(node[2]), Endpoint: text(node[0]), Port: number(node[1])})
				}
			}
		}
	case Shards:
		for _, shard := range list(reply) {
			for _, entry := range list(fields(shard)["nodes"]) {
				node := fields(entry)
				port := max(number(node["port"]), number(node["tls-port"]))
				out = append(out, Shown{Question: question, Subject: text(node["id"]), Endpoint: text(node["endpoint"]), Port: port})
			}
		}
	case Moved:
		words := strings.Fields(text(reply))
		if len(words) != 3 || words[0] != "MOVED" {
			return nil
		}
		at := strings.LastIndex(words[2], ":")
		port, err := strconv.Atoi(words[2][at+1:])
		if err != nil {
			port = 0 // which is wrong, and will be said
		}
		out = append(out, Shown{Question: question, Subject: "slot " + words[1], Endpoint: words[2][:max(at, 0)], Port: port})
	}
	return out
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// fields reads a map as it was before RESP3: names and values in turn.
func fields(v any) map[string]any {
	flat := list(v)
	out := map[string]any{}
	for i := 0; i+1 < len(flat); i += 2 {
		out[text(flat[i])] = flat[i+1]
	}
	return out
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func number(v any) int {
	n, _ := v.(int64)
	return int(n)
}

// Wrong returns what of it is wrong: a name that is none, port 0, or an address that the
// subject does not have. Right are the addresses by subject; what a server says of one
// that has none there is only held to be an address.
func Wrong(shown []Shown, right map[string]map[string]bool) []string {
	var wrong []string
	for _, s := range shown {
		allowed, known := right[s.Subject]
		bad := s.Endpoint == "" || s.Endpoint == "?" || s.Port == 0
		if bad || known && !allowed[s.Address()] {
			wrong = append(wrong, fmt.Sprintf("%s: %s gave %q for %.12s, %d times", s.Question, s.Viewer, s.Address(), s.Subject, s.Times))
		}
	}
	slices.Sort(wrong)
	return wrong
}
