package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// generationDigits of the hash are enough to tell the generations of one cluster
// apart.
const generationDigits = 10

// Generation is a short hash of what makes nodes roll. Pods carry it as a label,
// and spread constraints match on it, so that the pods of a roll are spread among
// themselves and not against those that they replace.
//
// What isn't in it is applied in place (annotations, ACL, certificates), holds for
// future pods only (zoneSpread, preferredZone, pull secrets) or is a node's place
// and not its kind (indices, lifecycle).
//
// A setting that was changed at run time belongs to a node's generation too: the
// caller passes the spec with status.applied laid over it, and labels the running
// pod anew, or a later replacement would not be spread against it.
func Generation(spec v1alpha1.ValkeyNodeSpec) string {
	hash := sha256.New()
	// Equal wishes have to be equal bytes: 500m of CPU is 0.5, and the order of
	// zones and tolerations means nothing.
	fmt.Fprintf(hash, "image %q tls %t external %t\n", spec.Image, spec.TLSSecret != "", spec.External)
	if spec.CPU != nil {
		fmt.Fprintf(hash, "cpu %d\n", spec.CPU.MilliValue())
	}
	if spec.Memory != nil {
		fmt.Fprintf(hash, "memory %d\n", spec.Memory.Value())
	}
	writeMap(hash, "setting", spec.ValkeySettings)
	if p := spec.Placement; p != nil {
		for _, zone := range slices.Compact(slices.Sorted(slices.Values(p.Zones))) {
			fmt.Fprintf(hash, "zone %q\n", zone)
		}
		writeMap(hash, "node selector", p.NodeSelector)
		for _, t := range canonicalTolerations(p.Tolerations) {
			fmt.Fprintf(hash, "toleration %s\n", t)
		}
		if p.PriorityClassName != "" {
			fmt.Fprintf(hash, "priority class %q\n", p.PriorityClassName)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:generationDigits]
}

func writeMap[V ~string](w io.Writer, kind string, m map[string]V) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(w, "%s %q %q\n", kind, key, string(m[key]))
	}
}

// canonicalTolerations are the tolerations in words, sorted, each once. Equal is
// what the API server reads into an empty operator.
func canonicalTolerations(tolerations []corev1.Toleration) []string {
	words := make([]string, 0, len(tolerations))
	for _, t := range tolerations {
		operator := t.Operator
		if operator == "" {
			operator = corev1.TolerationOpEqual
		}
		seconds := "for ever"
		if t.TolerationSeconds != nil {
			seconds = fmt.Sprint(*t.TolerationSeconds)
		}
		words = append(words, fmt.Sprintf("%q %q %q %q %s", t.Key, operator, t.Value, t.Effect, seconds))
	}
	slices.Sort(words)
	return slices.Compact(words)
}
