// Package request is how the plugin asks the manager for an operation: an
// annotation of the cluster, <prefix><verb> = "<id> <args>", which the manager
// answers in status.requests under the same ID. Both sides read and write it here.
package request

import (
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// Verbs of requests.
const (
	// Failover makes a replica the primary of its shard: <shard> [<node>].
	Failover = "failover"
	// Restart replaces all nodes that are older than a time: <RFC 3339 time>.
	Restart = "restart"
	// Acknowledge accepts that data is lost which no copy is left of, or none that
	// answers; it has no arguments.
	Acknowledge = "acknowledge"
	// RotateCredentials gives the system users new passwords; it has no arguments.
	RotateCredentials = "rotate-credentials" //nolint:gosec // the name of a request, not a credential
)

// States of an answer.
const (
	Running = "Running"
	Done    = "Done"
	Failed  = "Failed"
)

// Request is an operation that somebody asked for.
type Request struct {
	Verb string
	// ID that the answer repeats.
	ID   string
	Args []string
}

// Noun is what a request asks for, in words: "the failover".
func Noun(verb string) string {
	switch verb {
	case Acknowledge:
		return "acknowledgement"
	case RotateCredentials:
		return "credential rotation"
	}
	return verb
}

// NewID returns an ID from random, 8 hex digits.
func NewID(random io.Reader) (string, error) {
	id := make([]byte, 4)
	if _, err := io.ReadFull(random, id); err != nil {
		return "", fmt.Errorf("make an ID for the request: %w", err)
	}
	return hex.EncodeToString(id), nil
}

// NewFailover asks for a failover of a shard to a node, or to the best replica
// when node is empty.
func NewFailover(id string, shard int32, node string) Request {
	args := []string{strconv.Itoa(int(shard))}
	if node != "" {
		args = append(args, node)
	}
	return Request{Verb: Failover, ID: id, Args: args}
}

// NewRestart asks for the replacement of all nodes older than a time of the API
// server's clock, which dates the nodes too.
func NewRestart(id string, moment time.Time) Request {
	return Request{Verb: Restart, ID: id, Args: []string{moment.UTC().Format(time.RFC3339)}}
}

// NewAcknowledge accepts the loss of what is lost.
func NewAcknowledge(id string) Request { return Request{Verb: Acknowledge, ID: id} }

// NewRotateCredentials asks for new passwords of the system users.
func NewRotateCredentials(id string) Request { return Request{Verb: RotateCredentials, ID: id} }

// Key of the annotation of a verb.
func Key(verb string) string { return v1alpha1.AnnotationRequestPrefix + verb }

// Value of the request's annotation.
func (r Request) Value() string { return strings.Join(append([]string{r.ID}, r.Args...), " ") }

// Shard and node of a failover; node is empty when any replica will do.
func (r Request) Shard() (shard int32, node string, err error) {
	if len(r.Args) == 0 {
		return 0, "", fmt.Errorf("the request names no shard: <id> <shard> [<node>]")
	}
	n, err := strconv.ParseInt(r.Args[0], 10, 32)
	if err != nil || n < 0 {
		return 0, "", fmt.Errorf("%q is no shard index", r.Args[0])
	}
	if len(r.Args) > 1 {
		node = r.Args[1]
	}
	return int32(n), node, nil
}

// Moment of a restart: nodes made before it are to be replaced.
func (r Request) Moment() (time.Time, error) {
	if len(r.Args) > 0 {
		if moment, err := time.Parse(time.RFC3339, r.Args[0]); err == nil {
			return moment, nil
		}
	}
	return time.Time{}, fmt.Errorf("the request names no time: <id> <RFC 3339 time>")
}

// Of returns the requests that a cluster carries, by verb. A value without an ID
// asks for nothing.
func Of(c *v1alpha1.ValkeyCluster) []Request {
	var out []Request
	for key, value := range c.Annotations {
		verb, ok := strings.CutPrefix(key, v1alpha1.AnnotationRequestPrefix)
		words := strings.Fields(value)
		if !ok || len(words) == 0 {
			continue
		}
		out = append(out, Request{Verb: verb, ID: words[0], Args: words[1:]})
	}
	slices.SortFunc(out, func(a, b Request) int { return strings.Compare(a.Verb, b.Verb) })
	return out
}

// Answer returns what the manager says to a request, if it has said anything yet.
func (r Request) Answer(c *v1alpha1.ValkeyCluster) (v1alpha1.RequestStatus, bool) {
	for _, a := range c.Status.Requests {
		if a.Verb == r.Verb && a.ID == r.ID {
			return a, true
		}
	}
	return v1alpha1.RequestStatus{}, false
}

// Open returns the request of a verb unless it was answered for good.
func Open(c *v1alpha1.ValkeyCluster, verb string) (Request, bool) {
	for _, r := range Of(c) {
		if r.Verb != verb {
			continue
		}
		if a, answered := r.Answer(c); answered && a.State != Running {
			return Request{}, false
		}
		return r, true
	}
	return Request{}, false
}
