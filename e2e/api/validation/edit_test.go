//go:build api

package validation

import (
	"testing"
)

// Whether TLS is on is fixed at creation, in both directions (L-16).
func TestClusterEdits(t *testing.T) {
	const plain, encrypted = `{}`, `{spec: {tls: {secretRef: one}}}`
	tls := refused("spec.tls", "fixed at creation", "create a new cluster instead")
	runEdits(t, "ValkeyCluster", []edit{
		{intent: "adding TLS is refused", before: plain, change: encrypted, refusal: tls},
		{intent: "removing TLS is refused", before: encrypted, change: `{spec: {tls: null}}`, refusal: tls},
		{intent: "the name of the TLS Secret may change", before: encrypted, change: `{spec: {tls: {secretRef: two}}}`},
		{
			intent: "the name of the TLS Secret may not become the manager's", before: `{metadata: {name: edited}, spec: {tls: {secretRef: one}}}`, change: `{spec: {tls: {secretRef: edited-operator-tls}}}`,
			refusal: refused("spec.tls.secretRef", "must not be <cluster>-operator-tls"),
		},
		{intent: "a plaintext cluster may change elsewhere", before: plain, change: `{spec: {paused: true}}`},
		{intent: "a TLS cluster may change elsewhere", before: encrypted, change: `{spec: {paused: true}}`},

		{intent: "shards may change", before: plain, change: `{spec: {shards: 5}}`},
		{intent: "shards may not become 0", before: plain, change: `{spec: {shards: 0}}`, refusal: refused("spec.shards", "greater than or equal to 1")},
		{intent: "replicas may change", before: plain, change: `{spec: {replicasPerShard: 0}}`},
		{intent: "the config may change", before: plain, change: `{spec: {configRef: large}}`},
		{
			intent: "shards may not push the gateway's ports too high", before: `{spec: {externalAccess: {gateway: {gatewayRef: {name: g}, basePort: 65530}}}}`, change: `{spec: {shards: 4}}`,
			refusal: refused("spec.externalAccess.gateway.basePort", "lower basePort or the number of nodes"),
		},
		{
			intent: "a domain that is in use may not be removed", before: `{spec: {externalAccess: {domain: example.com, preferredEndpointType: hostname}}}`, change: `{spec: {externalAccess: {domain: null}}}`,
			refusal: refused("spec.externalAccess.domain", "required when preferredEndpointType is hostname"),
		},
		{intent: "external access may be removed as a whole", before: `{spec: {externalAccess: {domain: example.com, preferredEndpointType: hostname}}}`, change: `{spec: {externalAccess: null}}`},
		{
			intent: "an annotation of the manager may not be added", before: `{spec: {podAnnotations: {a: b}}}`, change: `{spec: {podAnnotations: {valkey.gomomento.com/a: b}}}`,
			refusal: refused("spec.podAnnotations", "must not use keys under valkey.gomomento.com/"),
		},
	})
}

func TestNodeEdits(t *testing.T) {
	immutable := func(field string) []string {
		return refused("spec."+field, field+" of a ValkeyNode is immutable; change the ValkeyCluster or its ValkeyConfig")
	}
	const full = `{spec: {
		cpu: 100m, memory: 256Mi, valkeySettings: {maxmemory: 192mb}, tlsSecret: cache-operator-tls, external: true, preferredZone: a,
		imagePullSecrets: [registry], placement: {zones: [a], nodeSelector: {pool: cache}, tolerations: [{key: a, operator: Exists}]}}}`
	runEdits(t, "ValkeyNode", []edit{
		{intent: "the lifecycle may change", before: full, change: `{spec: {lifecycle: Active}}`},
		{intent: "the lifecycle of a small node may change", before: `{}`, change: `{spec: {lifecycle: Leaving}}`},
		{intent: "another lifecycle is refused", before: full, change: `{spec: {lifecycle: Gone}}`, refusal: refused("spec.lifecycle", `"Joining", "Active", "Leaving"`)},
		{intent: "labels may change", before: full, change: `{metadata: {labels: {a: b}}}`},

		{intent: "clusterName may not change", before: full, change: `{spec: {clusterName: other}}`, refusal: immutable("clusterName")},
		{intent: "image may not change", before: full, change: `{spec: {image: "valkey/valkey:9.1.3"}}`, refusal: immutable("image")},
		{intent: "shardIndex may not change", before: full, change: `{spec: {shardIndex: 1}}`, refusal: immutable("shardIndex")},
		{intent: "nodeIndex may not change", before: full, change: `{spec: {nodeIndex: 1}}`, refusal: immutable("nodeIndex")},

		{intent: "cpu may not change", before: full, change: `{spec: {cpu: 200m}}`, refusal: immutable("cpu")},
		{intent: "cpu may not be set", before: `{}`, change: `{spec: {cpu: 200m}}`, refusal: immutable("cpu")},
		{intent: "cpu may not be unset", before: full, change: `{spec: {cpu: null}}`, refusal: immutable("cpu")},
		{intent: "memory may not change", before: full, change: `{spec: {memory: 512Mi}}`, refusal: immutable("memory")},
		{intent: "memory may not be set", before: `{}`, change: `{spec: {memory: 512Mi}}`, refusal: immutable("memory")},
		{intent: "memory may not be unset", before: full, change: `{spec: {memory: null}}`, refusal: immutable("memory")},
		{intent: "a setting may not change", before: full, change: `{spec: {valkeySettings: {maxmemory: 1gb}}}`, refusal: immutable("valkeySettings")},
		{intent: "a setting may not be added", before: full, change: `{spec: {valkeySettings: {maxclients: "10"}}}`, refusal: immutable("valkeySettings")},
		{intent: "settings may not be set", before: `{}`, change: `{spec: {valkeySettings: {maxmemory: 1gb}}}`, refusal: immutable("valkeySettings")},
		{intent: "settings may not be unset", before: full, change: `{spec: {valkeySettings: null}}`, refusal: immutable("valkeySettings")},
		{intent: "tlsSecret may not change", before: full, change: `{spec: {tlsSecret: other}}`, refusal: immutable("tlsSecret")},
		{intent: "tlsSecret may not be set", before: `{}`, change: `{spec: {tlsSecret: other}}`, refusal: immutable("tlsSecret")},
		{intent: "tlsSecret may not be unset", before: full, change: `{spec: {tlsSecret: null}}`, refusal: immutable("tlsSecret")},
		{intent: "external may not be turned on", before: `{}`, change: `{spec: {external: true}}`, refusal: immutable("external")},
		{intent: "external may not be turned off", before: full, change: `{spec: {external: false}}`, refusal: immutable("external")},
		{intent: "external may not be unset", before: full, change: `{spec: {external: null}}`, refusal: immutable("external")},
		{intent: "writing out that external is off changes nothing", before: `{}`, change: `{spec: {external: false}}`},
		{intent: "a part of the placement may not change", before: full, change: `{spec: {placement: {zones: [b]}}}`, refusal: immutable("placement")},
		{intent: "placement may not be set", before: `{}`, change: `{spec: {placement: {}}}`, refusal: immutable("placement")},
		{intent: "placement may not be unset", before: full, change: `{spec: {placement: null}}`, refusal: immutable("placement")},
		{intent: "preferredZone may not change", before: full, change: `{spec: {preferredZone: b}}`, refusal: immutable("preferredZone")},
		{intent: "preferredZone may not be set", before: `{}`, change: `{spec: {preferredZone: b}}`, refusal: immutable("preferredZone")},
		{intent: "preferredZone may not be unset", before: full, change: `{spec: {preferredZone: null}}`, refusal: immutable("preferredZone")},
		{intent: "imagePullSecrets may not change", before: full, change: `{spec: {imagePullSecrets: []}}`, refusal: immutable("imagePullSecrets")},
		{intent: "imagePullSecrets may not be set", before: `{}`, change: `{spec: {imagePullSecrets: [a]}}`, refusal: immutable("imagePullSecrets")},
		{intent: "imagePullSecrets may not be unset", before: full, change: `{spec: {imagePullSecrets: null}}`, refusal: immutable("imagePullSecrets")},
	})
}

func TestNode(t *testing.T) {
	run(t, "ValkeyNode", []manifest{
		{intent: "a node is accepted", overlay: `{}`},
		{intent: "a node without a cluster is refused", overlay: `{spec: {clusterName: null}}`, refusal: refused("spec.clusterName: Required value")},
		{intent: "a node without an image is refused", overlay: `{spec: {image: null}}`, refusal: refused("spec.image: Required value")},
		{intent: "a node without a lifecycle is refused", overlay: `{spec: {lifecycle: null}}`, refusal: refused("spec.lifecycle: Required value")},
		{intent: "a negative shard index is refused", overlay: `{spec: {shardIndex: -1}}`, refusal: refused("spec.shardIndex", "greater than or equal to 0")},
		{intent: "a negative node index is refused", overlay: `{spec: {nodeIndex: -1}}`, refusal: refused("spec.nodeIndex", "greater than or equal to 0")},
		{intent: "a setting with a line break is refused", overlay: `{spec: {valkeySettings: {save: "1\n2"}}}`, refusal: refused("spec.valkeySettings[save]", "must not hold line breaks")},
	})
}
