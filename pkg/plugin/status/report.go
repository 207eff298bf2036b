package status

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

// maxEvents is how many events are shown, the latest.
const maxEvents = 8

// stateUnanswered is the state of a request that the manager has said nothing to.
const stateUnanswered = "Unanswered"

// Summary is one line of the list of clusters. Its JSON form is stable.
type Summary struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// State is Creating, Active, Updating, Invalid, or empty while no manager
	// has seen the cluster.
	State string `json:"state"`
	// Healthy: ready as wished at the moment. Reason and Message say why not.
	Healthy bool   `json:"healthy"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Paused  bool   `json:"paused"`
	// Ready counts nodes in sync of nodes wished, for example 5/6.
	Ready            string      `json:"ready"`
	Shards           int32       `json:"shardCount"`
	ReplicasPerShard int32       `json:"replicasPerShard"`
	Config           string      `json:"config"`
	TLS              bool        `json:"tls"`
	Endpoint         string      `json:"endpoint,omitempty"`
	CreatedAt        metav1.Time `json:"createdAt"`
}

// List is what "status" prints of several clusters as JSON or YAML.
type List struct {
	Clusters []Summary `json:"clusters"`
}

// Report is what "status NAME" prints as JSON or YAML. Its form is stable: fields
// are added, never renamed or removed.
type Report struct {
	Summary
	// Generation of the spec, and the one that the status is about.
	Generation         int64 `json:"generation"`
	ObservedGeneration int64 `json:"observedGeneration"`
	// Resolved is what the config comes to; unset when it can't be read.
	Resolved *Resolved `json:"resolved,omitempty"`
	// Images that the nodes run, sorted; several while a roll is under way.
	Images []string `json:"images"`
	// Certificate that the nodes serve; unset without TLS.
	Certificate *Certificate `json:"certificate,omitempty"`
	Users       Users        `json:"users"`
	// Shard list, by index.
	ShardList []Shard `json:"shards"`
	// Nodes by shard and index.
	Nodes []inspect.Node `json:"nodes"`
	// Conditions are all conditions of the cluster.
	Conditions []metav1.Condition `json:"conditions"`
	// Events about the cluster and warnings about its nodes, the latest last.
	Events []Event `json:"events"`
	// DataLoss says which slots lost their data, until that is acknowledged.
	DataLoss string `json:"dataLoss,omitempty"`
	// AwaitedCopies says which nodes are waited for because only they may still hold
	// the data of a shard.
	AwaitedCopies string `json:"awaitedCopies,omitempty"`
	// ManagerSilent says that no manager seems to be at work, so that all the rest
	// may be old. It is empty also when that could not be found out.
	ManagerSilent string `json:"managerSilent,omitempty"`
	// Requests to the manager, the last of each verb, with its answers.
	Requests []Request `json:"requests"`
	// NextAction is what the manager does, waits for, or is stopped by.
	NextAction string `json:"nextAction,omitempty"`
	// Unavailable says what could not be read, and what reading it would need.
	Unavailable []Unavailable `json:"unavailable,omitempty"`
}

// Resolved is a config chain, followed to its end.
type Resolved struct {
	// Chain of config names, the cluster's own first.
	Chain   []string `json:"chain"`
	Image   string   `json:"image"`
	Version string   `json:"version"`
	// Problems keep the config from being used.
	Problems []string `json:"problems,omitempty"`
}

// Certificate is the leaf of the cluster's TLS Secret.
type Certificate struct {
	Secret      string       `json:"secret"`
	Fingerprint string       `json:"fingerprint,omitempty"`
	NotAfter    *metav1.Time `json:"notAfter,omitempty"`
	// DaysLeft until NotAfter, rounded down; negative once it is over.
	DaysLeft *int `json:"daysLeft,omitempty"`
	// ServedBy counts the nodes that serve it.
	ServedBy int `json:"servedBy"`
}

// Users says who may use the cluster.
type Users struct {
	// Open: nobody is bound, the default user may do everything without a
	// password. Unset when that could not be found out.
	Open *bool `json:"open,omitempty"`
	// Bound usernames, sorted.
	Bound []string `json:"bound"`
}

// Shard is one shard as its servers see it.
type Shard struct {
	Index     int32    `json:"index"`
	Slots     string   `json:"slots"`
	SlotCount int32    `json:"slotCount"`
	Primary   string   `json:"primary"`
	Replicas  []string `json:"replicas"`
}

// Event is one event, or several alike.
type Event struct {
	LastSeen metav1.Time `json:"lastSeen"`
	Type     string      `json:"type"`
	Reason   string      `json:"reason"`
	// Object is the kind and name, for example Pod/demo-3fa2c.
	Object  string `json:"object"`
	Message string `json:"message"`
	Count   int32  `json:"count"`
}

// Request is an operation that somebody asked the manager for.
type Request struct {
	Verb string `json:"verb"`
	ID   string `json:"id"`
	// State is Running, Done or Failed, or Unanswered.
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
}

// Unavailable is one part of a report that could not be read.
type Unavailable struct {
	// Part is nodes, pods, events, users, menu or zones.
	Part  string `json:"part"`
	Error string `json:"error"`
}

// summarize reads a cluster's own status.
func summarize(c *v1alpha1.ValkeyCluster, now time.Time) Summary {
	health := inspect.HealthOf(c, now)
	return Summary{
		Namespace: c.Namespace, Name: c.Name, State: string(c.Status.State),
		Healthy: health.Healthy, Reason: health.Reason, Message: output.Clean(health.Message),
		Paused: c.Spec.Paused, Ready: c.Status.Ready,
		Shards: c.Spec.Shards, ReplicasPerShard: c.Spec.ReplicasPerShard, Config: c.Spec.ConfigRef,
		TLS: c.Spec.TLS != nil, Endpoint: c.Status.Endpoint, CreatedAt: c.CreationTimestamp,
	}
}

// newReport draws a report from a snapshot, as it looks now.
func newReport(s *inspect.Snapshot, now time.Time) *Report {
	c := s.Cluster
	r := &Report{
		Summary:            summarize(c, now),
		Generation:         c.Generation,
		ObservedGeneration: c.Status.ObservedGeneration,
		Images:             []string{},
		Certificate:        certificate(c, now),
		Users:              users(s.Users),
		ShardList:          []Shard{},
		Nodes:              append([]inspect.Node{}, s.NodeList()...),
		Conditions:         append([]metav1.Condition{}, c.Status.Conditions...),
		Events:             events(s),
		DataLoss:           inspect.DataLoss(c),
		AwaitedCopies:      inspect.AwaitedCopies(c),
		ManagerSilent:      s.ManagerSilent,
		Requests:           requests(c),
		NextAction:         output.Clean(inspect.NextAction(c)),
		Unavailable:        unavailable(s),
	}
	if s.Menu != nil && s.Menu.Err == nil {
		r.Resolved = &Resolved{Chain: s.Menu.Resolved.Chain, Image: s.Menu.Resolved.Image, Version: s.Menu.Resolved.Version}
		for _, p := range s.Menu.Problems {
			r.Resolved.Problems = append(r.Resolved.Problems, p.Message)
		}
	}
	for _, n := range r.Nodes {
		if n.Image != "" && !slices.Contains(r.Images, n.Image) {
			r.Images = append(r.Images, n.Image)
		}
	}
	slices.Sort(r.Images)
	for _, sh := range c.Status.Shards {
		r.ShardList = append(r.ShardList, Shard{
			Index: sh.Index, Slots: sh.Slots, SlotCount: sh.SlotCount, Primary: sh.Primary,
			Replicas: append([]string{}, sh.Replicas...),
		})
	}
	return r
}

// requests are those that the cluster carries with what the manager says to them,
// and last answers to such as were taken away since.
func requests(c *v1alpha1.ValkeyCluster) []Request {
	list := []Request{}
	for _, r := range request.Of(c) {
		if _, answered := r.Answer(c); !answered {
			list = append(list, Request{Verb: r.Verb, ID: r.ID, State: stateUnanswered})
		}
	}
	for _, a := range c.Status.Requests {
		if slices.ContainsFunc(list, func(r Request) bool { return r.Verb == a.Verb }) {
			continue // of a former request
		}
		if _, open := request.Open(c, a.Verb); a.State == request.Running && !open {
			continue // it was taken back
		}
		list = append(list, Request{Verb: a.Verb, ID: a.ID, State: a.State, Message: output.Clean(a.Message)})
	}
	slices.SortFunc(list, func(a, b Request) int { return cmp.Compare(a.Verb, b.Verb) })
	return list
}

func certificate(c *v1alpha1.ValkeyCluster, now time.Time) *Certificate {
	if c.Spec.TLS == nil {
		return nil
	}
	cert := &Certificate{Secret: c.Spec.TLS.SecretRef}
	if t := c.Status.TLS; t != nil {
		cert.Fingerprint, cert.NotAfter, cert.ServedBy = t.Fingerprint, t.NotAfter, len(t.Nodes)
		if t.NotAfter != nil {
			days := int(math.Floor(t.NotAfter.Sub(now).Hours() / 24))
			cert.DaysLeft = &days
		}
	}
	return cert
}

func users(u inspect.Users) Users {
	out := Users{Bound: append([]string{}, u.Bound...)}
	if u.Known {
		out.Open = &u.Open
	}
	return out
}

// events picks what a person wants to know: everything about the cluster, and of
// its nodes and pods only the warnings.
func events(s *inspect.Snapshot) []Event {
	picked := []Event{}
	for i := range s.Events.Items {
		e := &s.Events.Items[i]
		if e.InvolvedObject.Kind != "ValkeyCluster" && e.Type != corev1.EventTypeWarning {
			continue
		}
		count := max(e.Count, 1)
		if e.Series != nil {
			count = max(count, e.Series.Count)
		}
		picked = append(picked, Event{
			LastSeen: metav1.NewTime(inspect.EventTime(e)), Type: e.Type, Reason: e.Reason,
			Object: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, Message: output.Clean(e.Message), Count: count,
		})
	}
	slices.SortFunc(picked, func(a, b Event) int {
		return cmp.Or(a.LastSeen.Compare(b.LastSeen.Time), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Reason, b.Reason))
	})
	return picked[max(0, len(picked)-maxEvents):]
}

// unavailable collects the errors of all parts.
func unavailable(s *inspect.Snapshot) []Unavailable {
	var all []Unavailable
	add := func(part string, err error) {
		if err != nil {
			all = append(all, Unavailable{Part: part, Error: output.Clean(err.Error())})
		}
	}
	add("nodes", s.Nodes.Err)
	add("pods", s.Pods.Err)
	add("events", s.Events.Err)
	add("users", s.Users.Err)
	if s.Menu != nil {
		add("menu", s.Menu.Err)
	}
	add("zones", s.ZonesErr)
	return all
}

// shown are the conditions that need a reader: those not at rest, Ready, and with TLS
// whether every node serves the certificate.
func (r *Report) shown() []metav1.Condition {
	var all []metav1.Condition
	for _, c := range r.Conditions {
		if c.Type == v1alpha1.ConditionReady || c.Type == v1alpha1.ConditionTLSReady && r.TLS || !inspect.AtRest(c) {
			all = append(all, c)
		}
	}
	return all
}

// failure is the error that an unhealthy cluster exits with.
func (s Summary) failure() error {
	if s.Healthy {
		return nil
	}
	return fmt.Errorf("cluster %s in namespace %s is not healthy: %s", s.Name, s.Namespace, because(s.Reason, s.Message))
}

func because(reason, message string) string {
	switch {
	case message == "":
		return reason
	case reason == "":
		return message
	}
	return reason + ": " + message
}
