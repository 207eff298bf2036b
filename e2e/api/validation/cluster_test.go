//go:build api

package validation

import (
	"fmt"
	"strings"
	"testing"
)

func TestCluster(t *testing.T) {
	name := func(s string) string { return fmt.Sprintf(`{metadata: {name: %q}}`, s) }
	const nameRule = "metadata.name must be a DNS-1035 label of at most 53 characters"
	run(t, "ValkeyCluster", []manifest{
		{intent: "the smallest cluster is accepted", overlay: `{}`},
		{intent: "a name of 53 characters is accepted", overlay: name(strings.Repeat("a", 53))},
		{intent: "a name of 54 characters is refused", overlay: name(strings.Repeat("a", 54)), refusal: refused("metadata: Invalid value", nameRule)},
		{intent: "a name that starts with a digit is refused", overlay: name("1cache"), refusal: refused("metadata: Invalid value", nameRule)},
		{intent: "a name with a dot is refused", overlay: name("my.cache"), refusal: refused("metadata: Invalid value", nameRule)},
		{intent: "a name that ends with a hyphen is refused", overlay: name("cache-"), refusal: refused("metadata.name", "RFC 1123")},
		{intent: "a name in upper case is refused", overlay: name("Cache"), refusal: refused("metadata.name", "RFC 1123")},
		{intent: "a name of one letter is accepted", overlay: name("a")},

		{intent: "a cluster without spec is refused", overlay: `{spec: null}`, refusal: refused("spec: Required value")},
		{intent: "configRef is required", overlay: `{spec: {configRef: null}}`, refusal: refused("spec.configRef: Required value")},
		{intent: "an empty configRef is refused", overlay: `{spec: {configRef: ""}}`, refusal: refused("spec.configRef", "at least 1 chars")},
		{intent: "a configRef that is no name is refused", overlay: `{spec: {configRef: [standard]}}`, refusal: refused("spec.configRef", "must be of type string")},

		{intent: "shards is required", overlay: `{spec: {shards: null}}`, refusal: refused("spec.shards: Required value")},
		{intent: "0 shards are refused", overlay: `{spec: {shards: 0}}`, refusal: refused("spec.shards", "greater than or equal to 1")},
		{intent: "1 shard is accepted", overlay: `{spec: {shards: 1}}`},
		{intent: "1000 shards are accepted", overlay: `{spec: {shards: 1000}}`},
		{intent: "1001 shards are refused", overlay: `{spec: {shards: 1001}}`, refusal: refused("spec.shards", "less than or equal to 1000")},
		{intent: "half a shard is refused", overlay: `{spec: {shards: 1.5}}`, refusal: refused("spec.shards", "must be of type integer")},
		{intent: "shards as text is refused", overlay: `{spec: {shards: "3"}}`, refusal: refused("spec.shards", "must be of type integer")},

		{intent: "replicasPerShard is required", overlay: `{spec: {replicasPerShard: null}}`, refusal: refused("spec.replicasPerShard: Required value")},
		{intent: "-1 replicas are refused", overlay: `{spec: {replicasPerShard: -1}}`, refusal: refused("spec.replicasPerShard", "greater than or equal to 0")},
		{intent: "0 replicas are accepted", overlay: `{spec: {replicasPerShard: 0}}`},
		{intent: "5 replicas are accepted", overlay: `{spec: {replicasPerShard: 5}}`},
		{intent: "6 replicas are refused", overlay: `{spec: {replicasPerShard: 6}}`, refusal: refused("spec.replicasPerShard", "less than or equal to 5")},

		{intent: "an unknown field is refused", overlay: `{spec: {replicas: 1}}`, refusal: refused(`unknown field "spec.replicas"`)},
		{intent: "a paused cluster is accepted", overlay: `{spec: {paused: true}}`},

		{intent: "a TLS Secret is accepted", overlay: `{spec: {tls: {secretRef: my-tls}}}`},
		{intent: "tls without secretRef is refused", overlay: `{spec: {tls: {}}}`, refusal: refused("spec.tls.secretRef: Required value")},
		{intent: "an empty secretRef is refused", overlay: `{spec: {tls: {secretRef: ""}}}`, refusal: refused("spec.tls.secretRef", "at least 1 chars")},
		{
			intent: "a secretRef that is no Secret's name is refused", overlay: `{spec: {tls: {secretRef: team-a/my-tls}}}`,
			refusal: refused("spec.tls.secretRef", "must be the name of a Secret"),
		},
		{intent: "a secretRef with dots is accepted", overlay: `{spec: {tls: {secretRef: my.tls-1}}}`},
		{
			intent: "the manager's own Secret is refused as secretRef", overlay: `{metadata: {name: own}, spec: {tls: {secretRef: own-operator-tls}}}`,
			refusal: refused("spec.tls.secretRef", "must not be <cluster>-operator-tls", "name the Secret that you maintain"),
		},
		{intent: "the copy of another cluster is accepted as secretRef", overlay: `{metadata: {name: other}, spec: {tls: {secretRef: own-operator-tls}}}`},
	})
}

func TestClusterAnnotations(t *testing.T) {
	annotations := func(text string) string { return fmt.Sprintf(`{spec: {podAnnotations: %s}}`, text) }
	run(t, "ValkeyCluster", []manifest{
		{intent: "pod annotations with and without a prefix are accepted", overlay: annotations(`{team: payments, Example.com/Scrape: "true"}`)},
		{
			intent: "pod annotations of the manager are refused", overlay: annotations(`{valkey.gomomento.com/refresh: "1"}`),
			refusal: refused("spec.podAnnotations", "must not use keys under valkey.gomomento.com/"),
		},
		{
			intent: "a pod annotation with a space in its key is refused", overlay: annotations(`{"my key": "1"}`),
			refusal: refused("spec.podAnnotations", "each key must be an annotation key"),
		},
		{
			intent: "a pod annotation with an empty prefix is refused", overlay: annotations(`{"/key": "1"}`),
			refusal: refused("spec.podAnnotations", "each key must be an annotation key"),
		},
		{
			intent: "a pod annotation key with 64 characters is refused", overlay: annotations(fmt.Sprintf(`{%s: "1"}`, strings.Repeat("k", 64))),
			refusal: refused("spec.podAnnotations", "at most 63"),
		},
		{intent: "64 pod annotations are accepted", overlay: annotations(mapping(64, func(i int) string { return fmt.Sprintf("k%d: v", i) }))},
		{
			intent: "65 pod annotations are refused", overlay: annotations(mapping(65, func(i int) string { return fmt.Sprintf("k%d: v", i) })),
			refusal: refused("spec.podAnnotations", "must have at most 64 items"),
		},
		{intent: "a pod annotation that is a number is refused", overlay: annotations(`{team: 7}`), refusal: refused("spec.podAnnotations.team", "must be of type string")},
	})
}
