package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// Change is how a node differs from the wish.
type Change struct {
	// Replace says in words what only a replacement mends; empty for nothing.
	Replace string
	// Live are the settings that the running server is to be given.
	Live map[string]v1alpha1.SettingValue
}

// Compare compares a node with the wish. Applied are the settings that were
// changed at run time, over those of the node's spec; immutable tells a setting
// that a server takes only at its start. A setting that is no longer wished needs
// a new server: nobody can say what its default was.
//
// Only what users wish is compared, never what the manager renders from it, so
// that a new manager replaces no node.
func Compare(have v1alpha1.ValkeyNodeSpec, applied map[string]v1alpha1.SettingValue, want v1alpha1.ValkeyNodeSpec, immutable func(string) bool) Change {
	var reasons []string
	differ := func(what string, same bool, from, to any) {
		if !same {
			reasons = append(reasons, fmt.Sprintf("%s %v is to be %v", what, from, to))
		}
	}
	differ("image", have.Image == want.Image, have.Image, want.Image)
	differ("cpu", sameQuantity(have.CPU, want.CPU), quantity(have.CPU), quantity(want.CPU))
	differ("memory", sameQuantity(have.Memory, want.Memory), quantity(have.Memory), quantity(want.Memory))
	differ("external access", have.External == want.External, onOff(have.External), onOff(want.External))
	reasons = append(reasons, placementChanges(have.Placement, want.Placement)...)
	change := Change{Live: map[string]v1alpha1.SettingValue{}}
	inForce := maps.Clone(have.ValkeySettings)
	if inForce == nil {
		inForce = map[string]v1alpha1.SettingValue{}
	}
	maps.Copy(inForce, applied)
	for _, key := range slices.Sorted(maps.Keys(want.ValkeySettings)) {
		value, ok := inForce[key]
		switch {
		case ok && value == want.ValkeySettings[key]:
		case immutable(key):
			reasons = append(reasons, fmt.Sprintf("setting %s is taken only at start", key))
		default:
			change.Live[key] = want.ValkeySettings[key]
		}
	}
	for _, key := range slices.Sorted(maps.Keys(inForce)) {
		if _, ok := want.ValkeySettings[key]; !ok {
			reasons = append(reasons, fmt.Sprintf("setting %s is no longer wished", key))
		}
	}
	change.Replace = strings.Join(reasons, ", ")
	return change
}

// placementChanges lists what of a placement makes nodes roll. How strictly nodes
// are spread holds for future pods only.
func placementChanges(have, want *v1alpha1.Placement) []string {
	if have == nil {
		have = &v1alpha1.Placement{}
	}
	if want == nil {
		want = &v1alpha1.Placement{}
	}
	var reasons []string
	if !slices.Equal(sorted(have.Zones), sorted(want.Zones)) {
		reasons = append(reasons, "other zones are wished")
	}
	if !maps.Equal(have.NodeSelector, want.NodeSelector) {
		reasons = append(reasons, "another nodeSelector is wished")
	}
	if !equality.Semantic.DeepEqual(have.Tolerations, want.Tolerations) {
		reasons = append(reasons, "other tolerations are wished")
	}
	if have.PriorityClassName != want.PriorityClassName {
		reasons = append(reasons, "another priority class is wished")
	}
	return reasons
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

func sameQuantity(a, b *resource.Quantity) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Cmp(*b) == 0
}

func quantity(q *resource.Quantity) string {
	if q == nil {
		return "unlimited"
	}
	return q.String()
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
