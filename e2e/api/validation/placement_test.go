//go:build api

package validation

import (
	"fmt"
	"strings"
	"testing"
)

func TestPlacement(t *testing.T) {
	placement := func(text string) string { return fmt.Sprintf(`{spec: {placement: %s}}`, text) }
	run(t, "ValkeyCluster", []manifest{
		{intent: "every placement field is accepted", overlay: placement(`{
			zones: [a, b], zoneSpread: required, nodeSelector: {node.example.com/pool: cache, disk: "", rack: a_1.b-C}, priorityClassName: high,
			tolerations: [{key: example.com/dedicated, value: cache, effect: NoSchedule}, {operator: Exists}, {key: x, operator: Exists, effect: NoExecute, tolerationSeconds: 60}]}`)},
		{intent: "an empty placement is accepted", overlay: placement(`{}`)},
		{intent: "zoneSpread bestEffort is accepted", overlay: placement(`{zoneSpread: bestEffort}`)},
		{intent: "another zoneSpread is refused", overlay: placement(`{zoneSpread: strict}`), refusal: refused("spec.placement.zoneSpread", `"bestEffort", "required"`)},
		{intent: "an empty zone is refused", overlay: placement(`{zones: [""]}`), refusal: refused("spec.placement.zones[0]", "at least 1 chars")},
		{intent: "a zone that is no label value is refused", overlay: placement(`{zones: [a, "eu west"]}`), refusal: refused("spec.placement.zones[1]", "topology.kubernetes.io/zone")},
		{intent: "32 zones are accepted", overlay: placement(`{zones: ` + list(32, func(i int) string { return fmt.Sprintf("z%d", i) }) + `}`)},
		{
			intent: "33 zones are refused", overlay: placement(`{zones: ` + list(33, func(i int) string { return fmt.Sprintf("z%d", i) }) + `}`),
			refusal: refused("spec.placement.zones", "must have at most 32 items"),
		},
		{
			intent: "a node selector key that is no label is refused", overlay: placement(`{nodeSelector: {"my pool": cache}}`),
			refusal: refused("spec.placement.nodeSelector", "each key must be that of a node label"),
		},
		{
			intent: "a node selector value of 64 characters is refused", overlay: placement(fmt.Sprintf(`{nodeSelector: {pool: %s}}`, strings.Repeat("v", 64))),
			refusal: refused("spec.placement.nodeSelector.pool", "may not be more than 63"),
		},
		{
			intent: "a node selector value that no label can have is refused", overlay: placement(`{nodeSelector: {pool: "two words"}}`),
			refusal: refused("spec.placement.nodeSelector[pool]", "each value must be that of a node label"),
		},
		{
			intent: "a node selector value that begins with a hyphen is refused", overlay: placement(`{nodeSelector: {pool: "-cache"}}`),
			refusal: refused("spec.placement.nodeSelector[pool]", "a letter or digit at both ends"),
		},
		{
			intent: "a node selector value that ends with a dot is refused", overlay: placement(`{nodeSelector: {pool: "cache."}}`),
			refusal: refused("spec.placement.nodeSelector[pool]", "a letter or digit at both ends"),
		},
		{
			intent: "a toleration with an unknown operator is refused", overlay: placement(`{tolerations: [{key: a, operator: In}]}`),
			refusal: refused("spec.placement.tolerations", "operator must be Equal or Exists"),
		},
		{
			intent: "a toleration with an unknown effect is refused", overlay: placement(`{tolerations: [{key: a, effect: Never}]}`),
			refusal: refused("spec.placement.tolerations", "effect NoSchedule, PreferNoSchedule or NoExecute"),
		},
		{
			intent: "a toleration that exists with a value is refused", overlay: placement(`{tolerations: [{key: a, operator: Exists, value: b}]}`),
			refusal: refused("spec.placement.tolerations", "operator Exists takes no value"),
		},
		{
			intent: "a toleration of nothing is refused", overlay: placement(`{tolerations: [{effect: NoSchedule}]}`),
			refusal: refused("spec.placement.tolerations", "needs a key"),
		},
		{
			intent: "tolerationSeconds without NoExecute is refused", overlay: placement(`{tolerations: [{key: a, effect: NoSchedule, tolerationSeconds: 5}]}`),
			refusal: refused("spec.placement.tolerations", "tolerationSeconds needs effect NoExecute"),
		},
		{intent: "an unknown placement field is refused", overlay: placement(`{affinity: {}}`), refusal: refused(`unknown field "spec.placement.affinity"`)},
	})
}
