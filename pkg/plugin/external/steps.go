package external

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// step is one change of the spec, and what shows that it has taken effect.
type step struct {
	// title says what is done, means what that means for clients.
	title, means string
	// change makes the change in a spec; a spec that it leaves alone has it already.
	change func(*v1alpha1.ValkeyClusterSpec)
	// takesBack is whether clients may hold on to what it takes from them.
	takesBack bool
	// leads is whether clients are led to the names outside from then on.
	leads bool
	// done returns what its effect still waits for; empty when it is there.
	done func(*v1alpha1.ValkeyCluster, []v1alpha1.ValkeyNode) string
}

// pending reports whether the spec is still to be changed.
func (s step) pending(c *v1alpha1.ValkeyCluster) bool {
	changed := c.Spec.DeepCopy()
	s.change(changed)
	return !equality.Semantic.DeepEqual(changed, &c.Spec)
}

// wish is what enable is to lead to.
type wish struct {
	access v1alpha1.ExternalAccess
	// set names the fields that the command line sets; others stay as they are.
	set map[string]bool
}

// enableSteps lead clients outside: ports, then names, then redirects.
func enableSteps(w wish, current *v1alpha1.ExternalAccess) []step {
	domain := w.access.Domain
	if domain == "" && current != nil {
		domain = current.Domain
	}
	steps := []step{{
		title: "Give every node a port outside",
		means: "Services are made and every node is replaced once; clients are directed as before",
		change: func(s *v1alpha1.ValkeyClusterSpec) {
			if s.ExternalAccess == nil {
				s.ExternalAccess = &v1alpha1.ExternalAccess{}
			}
			s.ExternalAccess.Enabled = true
			w.apply(s.ExternalAccess)
		},
		done: portsOpen,
	}}
	if domain == "" || w.set["preferred-endpoint-type"] && w.access.PreferredEndpointType != v1alpha1.EndpointHostname {
		return steps
	}
	return append(steps, step{
		title: "Direct clients to the names under " + domain,
		means: "every redirect leads to an outside name and port from now on, also for clients in Kubernetes; the names must resolve before (kubectl valkey endpoints lists the records)",
		change: func(s *v1alpha1.ValkeyClusterSpec) {
			if s.ExternalAccess != nil {
				s.ExternalAccess.PreferredEndpointType = v1alpha1.EndpointHostname
			}
		},
		leads: true,
		done:  announced,
	})
}

// apply sets what the command line sets, but for the endpoint type, which is the last
// step.
func (w wish) apply(a *v1alpha1.ExternalAccess) {
	if w.set["service-type"] {
		a.ServiceType = w.access.ServiceType
	}
	if w.set["external-traffic-policy"] {
		a.ExternalTrafficPolicy = w.access.ExternalTrafficPolicy
	}
	if w.set["hostname-prefix"] {
		a.HostnamePrefix = w.access.HostnamePrefix
	}
	if w.set["domain"] {
		a.Domain = w.access.Domain
	}
	if w.set["gateway"] {
		a.Gateway = w.access.Gateway.DeepCopy()
	}
}

// disableSteps take clients back inside before the ports go.
func disableSteps() []step {
	return []step{
		{
			title: "Direct clients to the addresses inside",
			means: "no redirect leads outside any more; clients outside fail at their next redirect, and those that hold the old names go on using them until they refresh",
			change: func(s *v1alpha1.ValkeyClusterSpec) {
				if a := s.ExternalAccess; a != nil && a.PreferredEndpointType == v1alpha1.EndpointHostname {
					a.PreferredEndpointType = v1alpha1.EndpointIP
				}
			},
			takesBack: true,
			done:      withdrawn,
		},
		{
			title: "Close the ports outside",
			means: "the Services are deleted and every node is replaced once",
			change: func(s *v1alpha1.ValkeyClusterSpec) {
				if s.ExternalAccess != nil {
					s.ExternalAccess.Enabled = false
				}
			},
			done: closed,
		},
	}
}

// named reports whether the nodes of a cluster may have had names outside.
func named(c *v1alpha1.ValkeyCluster) bool {
	return objects.ExternalEnabled(c) && c.Spec.ExternalAccess.Domain != ""
}

// seen returns what the manager still has to do before its status is about the spec.
func seen(c *v1alpha1.ValkeyCluster) string {
	if c.Status.ObservedGeneration < c.Generation {
		return "the manager has not seen the change yet"
	}
	return ""
}

func outsideCondition(c *v1alpha1.ValkeyCluster) *metav1.Condition {
	return meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionExternalAccessReady)
}

// portsOpen is when every node has its port outside.
func portsOpen(c *v1alpha1.ValkeyCluster, _ []v1alpha1.ValkeyNode) string {
	if why := seen(c); why != "" {
		return why
	}
	cond := outsideCondition(c)
	switch {
	case cond == nil:
		return "the manager says nothing of external access yet"
	case cond.Status != metav1.ConditionTrue && cond.Reason != v1alpha1.ReasonExternalAnnouncing:
		return cond.Message
	}
	return ""
}

// announced is when every node directs clients outside and all have seen it.
func announced(c *v1alpha1.ValkeyCluster, nodes []v1alpha1.ValkeyNode) string {
	if why := seen(c); why != "" {
		return why
	}
	if cond := outsideCondition(c); cond == nil || cond.Status != metav1.ConditionTrue {
		if cond == nil {
			return "the manager says nothing of external access yet"
		}
		return cond.Message
	}
	return tellsOutside(nodes, true)
}

// withdrawn is when no node directs clients outside.
func withdrawn(c *v1alpha1.ValkeyCluster, nodes []v1alpha1.ValkeyNode) string {
	if why := seen(c); why != "" {
		return why
	}
	if cond := outsideCondition(c); cond != nil && cond.Reason == v1alpha1.ReasonExternalAnnouncing {
		return cond.Message
	}
	return tellsOutside(nodes, false)
}

func tellsOutside(nodes []v1alpha1.ValkeyNode, want bool) string {
	var others []string
	for i := range nodes {
		a := nodes[i].Status.Applied
		if tells := a != nil && a.Announcement != nil && a.Announcement.ClientPort != 0; tells != want {
			others = append(others, nodes[i].Name)
		}
	}
	switch {
	case len(others) == 0:
		return ""
	case want:
		return "not yet directing clients outside: " + strings.Join(others, ", ")
	}
	return "still directing clients outside: " + strings.Join(others, ", ")
}

// closed is when nothing is left of external access.
func closed(c *v1alpha1.ValkeyCluster, nodes []v1alpha1.ValkeyNode) string {
	if why := seen(c); why != "" {
		return why
	}
	if objects.ExternalEnabled(c) {
		return "external access is on"
	}
	if cond := outsideCondition(c); cond != nil {
		return cond.Message
	}
	for i := range nodes {
		if nodes[i].Spec.External {
			return fmt.Sprintf("node %s is still to be replaced", nodes[i].Name)
		}
	}
	return ""
}
