package objects

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// preferredZoneWeight is the greatest there is, so that a replacement's zone
// outweighs the soft spread over hosts.
const preferredZoneWeight = 100

// armToleration lets pods run on arm64 nodes of mixed clusters, which platforms
// taint so.
var armToleration = corev1.Toleration{
	Key:      corev1.LabelArchStable,
	Operator: corev1.TolerationOpEqual,
	Value:    "arm64",
	Effect:   corev1.TaintEffectNoSchedule,
}

// place fills in where a pod may run.
func place(spec *corev1.PodSpec, node *v1alpha1.ValkeyNode, defaultSpread v1alpha1.ZoneSpread) {
	wish := v1alpha1.Placement{}
	if node.Spec.Placement != nil {
		wish = *node.Spec.Placement.DeepCopy()
	}
	spread := wish.ZoneSpread
	if spread == "" {
		spread = defaultSpread
	}
	spec.NodeSelector = retyped[string](wish.NodeSelector)
	spec.PriorityClassName = wish.PriorityClassName
	spec.Tolerations = tolerations(wish.Tolerations)
	spec.Affinity = zoneAffinity(wish.Zones, node.Spec.PreferredZone)
	spec.TopologySpreadConstraints = spreadConstraints(node.Spec.ClusterName, node.Spec.ShardIndex, spread)
}

func tolerations(wished []corev1.Toleration) []corev1.Toleration {
	all := []corev1.Toleration{armToleration}
	for _, t := range wished {
		same := func(o corev1.Toleration) bool { return equality.Semantic.DeepEqual(o, t) }
		if !slices.ContainsFunc(all, same) {
			all = append(all, t)
		}
	}
	return all
}

// zoneAffinity requires one of the zones, if any, and prefers the zone that the
// node's predecessor ran in. It is nil for neither.
func zoneAffinity(zones []string, preferred string) *corev1.Affinity {
	var affinity corev1.NodeAffinity
	if len(zones) > 0 {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{inZones(zones...)},
		}
	}
	if preferred != "" {
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{
			Weight:     preferredZoneWeight,
			Preference: inZones(preferred),
		}}
	}
	if len(zones) == 0 && preferred == "" {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &affinity}
}

func inZones(zones ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
		Key:      corev1.LabelTopologyZone,
		Operator: corev1.NodeSelectorOpIn,
		Values:   zones,
	}}}
}

// spreadConstraints spread the nodes of a shard over zones and hosts. With a
// required spread the zone constraint of the shard is hard; the soft one over the
// whole cluster keeps the primaries of many small shards from gathering in one
// zone. (A pod may have one constraint for each pair of topology key and
// strictness, so a soft cluster-wide one only fits beside a hard one.)
func spreadConstraints(cluster string, shard int32, spread v1alpha1.ZoneSpread) []corev1.TopologySpreadConstraint {
	ofShard := ShardSelector(cluster, shard)
	soft, hard := corev1.ScheduleAnyway, corev1.DoNotSchedule
	if spread != v1alpha1.ZoneSpreadRequired {
		return []corev1.TopologySpreadConstraint{
			spreadConstraint(corev1.LabelTopologyZone, soft, ofShard),
			spreadConstraint(corev1.LabelHostname, soft, ofShard),
		}
	}
	return []corev1.TopologySpreadConstraint{
		spreadConstraint(corev1.LabelTopologyZone, hard, ofShard),
		spreadConstraint(corev1.LabelHostname, soft, ofShard),
		spreadConstraint(corev1.LabelTopologyZone, soft, PodSelector(cluster)),
	}
}

// spreadConstraint honors taints: a cordoned or dedicated node would otherwise
// count as an empty place that no pod can take, and a hard spread would wait for
// it for ever.
func spreadConstraint(key string, unsatisfiable corev1.UnsatisfiableConstraintAction, selector map[string]string) corev1.TopologySpreadConstraint {
	honor := corev1.NodeInclusionPolicyHonor
	return corev1.TopologySpreadConstraint{
		MaxSkew:           1,
		TopologyKey:       key,
		WhenUnsatisfiable: unsatisfiable,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: selector},
		MatchLabelKeys:    []string{v1alpha1.LabelGeneration},
		NodeTaintsPolicy:  &honor,
	}
}
