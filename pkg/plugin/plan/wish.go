package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// wish is the cluster as it is to be.
type wish struct {
	// cluster has the spec that is wished.
	cluster *v1alpha1.ValkeyCluster
	changes []Change
	// node is what every node is to be; nil when the config is of no use, so that
	// nothing is known to differ.
	node *v1alpha1.ValkeyNodeSpec
	// problems keep the config from being used, notes are worth knowing.
	problems, notes []string
}

// newWish lays the change over the cluster's spec.
func newWish(c *v1alpha1.ValkeyCluster, ch change) *wish {
	w := &wish{cluster: c.DeepCopy(), changes: []Change{}}
	spec := &w.cluster.Spec
	differ := func(field string, from, to any) {
		if from != to {
			w.changes = append(w.changes, Change{Field: field, From: fmt.Sprint(from), To: fmt.Sprint(to)})
		}
	}
	if ch.byShards {
		differ("shards", spec.Shards, ch.shards)
		spec.Shards = ch.shards
	}
	if ch.byReplicas {
		differ("replicasPerShard", spec.ReplicasPerShard, ch.replicas)
		spec.ReplicasPerShard = ch.replicas
	}
	if ch.byConfig {
		differ("configRef", spec.ConfigRef, ch.config)
		spec.ConfigRef = ch.config
	}
	if len(w.changes) == 0 && (ch.byShards || ch.byReplicas || ch.byConfig) {
		w.notes = append(w.notes, "the cluster's spec says so already: it would not change")
	}
	return w
}

// resolve follows the config to what nodes are made of. A config that is to be
// tried has to be usable; what is wrong with the present one is only told.
func (w *wish) resolve(catalog settings.Catalog, readErr error) error {
	tried := slices.ContainsFunc(w.changes, func(c Change) bool { return c.Field == "configRef" })
	if readErr != nil {
		if tried {
			return fmt.Errorf("what config %q would change can't be told: %w", w.cluster.Spec.ConfigRef, readErr)
		}
		w.notes = append(w.notes, "whether nodes differ from their config is not known: "+readErr.Error())
		return nil
	}
	resolved, problems := settings.Resolve(catalog, w.cluster.Spec.ConfigRef)
	if len(problems) == 0 {
		problems = settings.Check(resolved)
	}
	if len(problems) > 0 {
		var errs []error
		for _, p := range problems {
			w.problems = append(w.problems, p.Message)
			errs = append(errs, errors.New(p.Message))
		}
		if tried {
			return errors.Join(errs...)
		}
		return nil
	}
	w.node = &objects.Node(w.cluster, objects.NodeInput{
		Image: resolved.Image, PullSecrets: resolved.PullSecrets,
		CPU: resolved.CPU, Memory: resolved.Memory, Settings: resolved.Valkey,
	}).Spec
	if tried {
		w.noteUsers(catalog, resolved)
	}
	return nil
}

// noteUsers tells when another config binds other users.
func (w *wish) noteUsers(catalog settings.Catalog, resolved settings.Resolved) {
	former := w.changes[slices.IndexFunc(w.changes, func(c Change) bool { return c.Field == "configRef" })].From
	before, problems := settings.Resolve(catalog, former)
	if len(problems) == 0 && !equality.Semantic.DeepEqual(before.ACL, resolved.ACL) {
		w.notes = append(w.notes, "the config's users change; that replaces no node")
	}
}

// difference says what a node needs to be as wished.
func (w *wish) difference(n *v1alpha1.ValkeyNode) plan.Change {
	var d plan.Change
	if w.node != nil {
		var applied map[string]v1alpha1.SettingValue
		if n.Status.Applied != nil {
			applied = n.Status.Applied.Settings
		}
		d = plan.Compare(n.Spec, applied, *w.node, startOnly)
	}
	if r, open := request.Open(w.cluster, request.Restart); open && d.Replace == "" {
		if moment, err := r.Moment(); err == nil && n.CreationTimestamp.Time.Before(moment) {
			d.Replace = "a restart was asked for"
		}
	}
	return d
}

// live lists the settings that running servers are to be given.
func (w *wish) live(s *inspect.Snapshot) []LiveSetting {
	byKey := map[string]*LiveSetting{}
	for i := range s.Nodes.Items {
		n := &s.Nodes.Items[i]
		d := w.difference(n)
		if d.Replace != "" || n.Spec.Lifecycle == v1alpha1.LifecycleLeaving {
			continue // its successor is born with them
		}
		for key, value := range d.Live {
			if byKey[key] == nil {
				byKey[key] = &LiveSetting{Setting: key, From: []string{}, To: string(value)}
			}
			l := byKey[key]
			l.Nodes++
			if from := inForce(n, key); !slices.Contains(l.From, from) {
				l.From = append(l.From, from)
			}
		}
	}
	out := []LiveSetting{}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		slices.Sort(byKey[key].From)
		out = append(out, *byKey[key])
	}
	return out
}

// inForce is the value of a setting on a node; empty when it has the server's own.
func inForce(n *v1alpha1.ValkeyNode, key string) string {
	if n.Status.Applied != nil {
		if value, ok := n.Status.Applied.Settings[key]; ok {
			return string(value)
		}
	}
	return string(n.Spec.ValkeySettings[key])
}
