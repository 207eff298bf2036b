package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plan"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
)

// immutable remembers which directives servers of a version take only at their
// start. The servers say so themselves when they are asked to change one; after a
// restart of the manager they are asked once more.
type immutable struct {
	mu   sync.Mutex
	keys map[string]bool
}

func newImmutable() *immutable { return &immutable{keys: map[string]bool{}} }

func (i *immutable) add(version, key string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys[version+" "+key] = true
}

func (i *immutable) of(version string) func(string) bool {
	return func(key string) bool {
		i.mu.Lock()
		defer i.mu.Unlock()
		return i.keys[version+" "+key]
	}
}

// change compares a node with the wish. Without a usable configuration nothing is
// known to differ.
func (r *Reconciler) change(o *observation, n *v1alpha1.ValkeyNode) plan.Change {
	if len(o.config.problems) > 0 {
		return plan.Change{}
	}
	want := objects.Node(o.cluster, o.nodeInput())
	if o.turningOff() {
		want.Spec.External = n.Spec.External // first nobody may be directed to its port any more
	}
	var applied map[string]v1alpha1.SettingValue
	if n.Status.Applied != nil {
		applied = n.Status.Applied.Settings
	}
	return plan.Compare(n.Spec, applied, want.Spec, r.immutable.of(o.config.Version))
}

// nodeInput is what every node takes from the configuration. A reference that is
// missing stops no repair: a node is then made like those that there are.
func (o *observation) nodeInput() objects.NodeInput {
	if len(o.config.problems) > 0 && len(o.nodes) > 0 {
		return likeNode(o.nodes[0].Spec)
	}
	return objects.NodeInput{
		Image: o.config.Image, PullSecrets: o.config.PullSecrets,
		CPU: o.config.CPU, Memory: o.config.Memory, Settings: o.config.Valkey,
	}
}

func likeNode(spec v1alpha1.ValkeyNodeSpec) objects.NodeInput {
	in := objects.NodeInput{
		Image: spec.Image, PullSecrets: spec.ImagePullSecrets,
		CPU: spec.CPU, Memory: spec.Memory, Settings: map[string]string{},
	}
	for key, value := range spec.ValkeySettings {
		in.Settings[key] = string(value)
	}
	return in
}

// applySettings changes on running servers what they take at run time. Each
// setting goes by itself, so that one that is refused keeps no other back. It
// returns what was refused.
func (r *Reconciler) applySettings(ctx context.Context, o *observation) []settings.Problem {
	var mu sync.Mutex
	var refused []settings.Problem
	_ = together(len(o.nodes), func(i int) error {
		n := &o.nodes[i]
		seen, ok := o.view.Nodes[n.Name]
		if !ok || !seen.Reachable || n.Spec.Lifecycle == v1alpha1.LifecycleLeaving {
			return nil
		}
		live := r.change(o, n).Live
		if len(live) == 0 {
			return nil
		}
		problems, err := r.applyTo(ctx, o, n, live)
		if err != nil {
			problems = append(problems, settings.Problem{Reason: v1alpha1.ReasonSettingRejected, Message: err.Error()})
		}
		mu.Lock()
		defer mu.Unlock()
		refused = append(refused, problems...)
		return nil
	})
	slices.SortFunc(refused, func(a, b settings.Problem) int { return strings.Compare(a.Message, b.Message) })
	return slices.Compact(refused)
}

// applyTo changes the settings of one server and records those that took.
func (r *Reconciler) applyTo(ctx context.Context, o *observation, n *v1alpha1.ValkeyNode, live map[string]v1alpha1.SettingValue) ([]settings.Problem, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := r.dial(ctx, o, n.Name)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	told, err := tell(ctx, conn, live)
	for _, key := range told.atStart {
		r.immutable.add(o.config.Version, key)
	}
	for key := range told.took {
		log.FromContext(ctx).Info("setting applied", "node", n.Name, "setting", key)
	}
	return told.refused, errors.Join(err, r.recordSettings(ctx, o, n, told.took))
}

// told is what has become of settings that a server was told.
type told struct {
	took map[string]v1alpha1.SettingValue
	// atStart are those that it takes only when it starts, so that a new one is needed.
	atStart []string
	refused []settings.Problem
}

// tell changes the settings of one server, each by itself.
func tell(ctx context.Context, conn valkey.Node, live map[string]v1alpha1.SettingValue) (told, error) {
	out := told{took: map[string]v1alpha1.SettingValue{}}
	for _, key := range slices.Sorted(maps.Keys(live)) {
		value := string(live[key])
		switch err := set(ctx, conn, key, value); {
		case err == nil:
			out.took[key] = live[key]
		case valkey.IsReply(err) && onlyAtStart(key, err.Error()):
			out.atStart = append(out.atStart, key)
		case valkey.IsReply(err):
			out.refused = append(out.refused, settings.Problem{
				Reason:  v1alpha1.ReasonSettingRejected,
				Message: fmt.Sprintf("the server refuses valkey.%s %q: %s; correct it in the config", key, value, serverSays(err)),
			})
		default:
			return out, err
		}
	}
	return out, nil
}

// onlyAtStart reports whether a server that refuses a setting would take it from its
// file. It says so of what is immutable and of what is protected ("can't set
// protected config"); two directives of the file are no settings, so that it does not
// know them at run time. Whatever else it does not know would keep a new server from
// starting: that is reported and rolls nothing.
func onlyAtStart(key, answer string) bool {
	switch strings.ToLower(key) {
	case "loadmodule", "include":
		return strings.Contains(answer, "Unknown option")
	}
	return strings.Contains(answer, "immutable config") || strings.Contains(answer, "protected config")
}

// serverSays is the server's own part of an error, which is the same for each node.
func serverSays(err error) string {
	text := err.Error()
	if i := strings.Index(text, "ERR "); i >= 0 {
		return text[i+len("ERR "):]
	}
	return text
}

// set changes one setting and reads it back.
func set(ctx context.Context, conn valkey.Node, key, value string) error {
	if err := conn.ConfigSet(ctx, [2]string{key, settings.Plain(value)}); err != nil {
		return err
	}
	got, err := conn.ConfigGet(ctx, key)
	if err != nil {
		return err
	}
	if _, known := got[key]; !known {
		return fmt.Errorf("the server says nothing of %s after it was set", key)
	}
	return nil
}

// recordSettings writes what a node has in force, and gives its pod the label of
// what it has become, or later replacements would not be spread against it.
func (r *Reconciler) recordSettings(ctx context.Context, o *observation, n *v1alpha1.ValkeyNode, took map[string]v1alpha1.SettingValue) error {
	if len(took) == 0 {
		return nil
	}
	before := n.DeepCopy()
	if n.Status.Applied == nil {
		n.Status.Applied = &v1alpha1.Applied{}
	}
	if n.Status.Applied.Settings == nil {
		n.Status.Applied.Settings = map[string]v1alpha1.SettingValue{}
	}
	maps.Copy(n.Status.Applied.Settings, took)
	if err := r.Client.Status().Patch(ctx, n, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("record settings of node %s: %w", n.Name, err))
	}
	pod := o.pods[n.Name]
	if pod == nil {
		return nil
	}
	overlaid := *n.Spec.DeepCopy()
	if overlaid.ValkeySettings == nil {
		overlaid.ValkeySettings = map[string]v1alpha1.SettingValue{}
	}
	maps.Copy(overlaid.ValkeySettings, n.Status.Applied.Settings)
	labelled := pod.DeepCopy()
	labelled.Labels[v1alpha1.LabelGeneration] = objects.Generation(overlaid)
	return client.IgnoreNotFound(r.Client.Patch(ctx, labelled, client.MergeFrom(pod)))
}
