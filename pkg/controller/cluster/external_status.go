package cluster

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
)

// setOutside writes endpoints and condition of external access. A cluster that has
// nothing of it shows nothing.
func setOutside(s *v1alpha1.ValkeyClusterStatus, o *observation, out outcome) {
	if !o.outside.inPlay {
		s.ExternalEndpoints = nil
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionExternalAccessReady)
		return
	}
	switch {
	case objects.ExternalEnabled(o.cluster):
		s.ExternalEndpoints = o.outside.endpoints
	case len(o.outside.services) == 0:
		s.ExternalEndpoints = nil
	}
	reach.SetCondition(o.cluster, s, outsideCondition(o, out))
}

// outsideCondition says whether clients outside reach the cluster as wished.
func outsideCondition(o *observation, out outcome) metav1.Condition {
	kind := v1alpha1.ConditionExternalAccessReady
	x := o.outside
	no := func(reason, format string, args ...any) metav1.Condition {
		return condition(kind, false, reason, fmt.Sprintf(format, args...))
	}
	if problems := out.outside.problems; len(problems) > 0 {
		var messages []string
		for _, p := range problems {
			messages = append(messages, p.Message)
		}
		return no(problems[0].Reason, "%s", join(messages))
	}
	announcing := x.step.Waiting
	if len(x.step.Set) > 0 {
		announcing = x.step.Reason
	}
	switch {
	case !objects.ExternalEnabled(o.cluster) && announcing != "":
		return no(v1alpha1.ReasonExternalDisabled, "external access is being turned off: %s", announcing)
	case !objects.ExternalEnabled(o.cluster):
		return no(v1alpha1.ReasonExternalDisabled, "external access is off; nodes that have a port outside are being replaced")
	case o.outside.gateway.Missing != "":
		return no(v1alpha1.ReasonGatewayMissing, "%s", o.outside.gateway.Missing)
	case len(x.pending) > 0:
		var messages []string
		for _, shard := range slices.Sorted(maps.Keys(x.pending)) {
			messages = append(messages, fmt.Sprintf("shard %d: %s", shard, x.pending[shard]))
		}
		return no(v1alpha1.ReasonExternalPending, "%s", join(messages))
	}
	waiting := o.withoutPort()
	for _, name := range out.outside.unlisted {
		waiting = append(waiting, fmt.Sprintf("the Service does not lead to node %s yet", name))
	}
	if len(waiting) > 0 {
		return no(v1alpha1.ReasonExternalWaiting, "%s", join(waiting))
	}
	if announcing != "" {
		return no(v1alpha1.ReasonExternalAnnouncing, "%s", announcing)
	}
	return condition(kind, true, v1alpha1.ReasonExternalReady, o.reachedBy())
}

// withoutPort lists the nodes that no port outside leads to yet.
func (o *observation) withoutPort() []string {
	var out []string
	led := map[[2]int32]bool{}
	for _, n := range o.planNodes() {
		if n.External.Labelled && !n.Dead() {
			led[[2]int32{n.Position.Shard, n.Position.Index}] = true
		}
	}
	old := 0
	for i := range o.nodes {
		n := &o.nodes[i]
		switch {
		case !n.Spec.External:
			old++
		case !led[[2]int32{n.Spec.ShardIndex, n.Spec.NodeIndex}]:
			out = append(out, fmt.Sprintf("no port leads to node %s yet", n.Name))
		}
	}
	if old > 0 {
		out = append(out, fmt.Sprintf("nodes that were made before external access was turned on are being replaced, %d more", old))
	}
	return out
}

// reachedBy says how clients reach the cluster, and what to beware of.
func (o *observation) reachedBy() string {
	external := o.cluster.Spec.ExternalAccess
	text := fmt.Sprintf("every node has a port outside, by Services of type %s", objects.ExternalServiceType(external))
	if external.Gateway != nil {
		text = fmt.Sprintf("every node has a port at Gateway %s", external.Gateway.GatewayRef.Name)
	}
	if o.outside.situation.InForce() {
		text += "; clients are directed to the outside names"
	} else {
		text += "; clients are directed to the addresses inside"
	}
	for _, warning := range objects.ExternalWarnings(o.cluster) {
		text += "; " + warning
	}
	return text
}
