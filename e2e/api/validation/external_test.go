//go:build api

package validation

import (
	"fmt"
	"strings"
	"testing"
)

func external(text string) string { return fmt.Sprintf(`{spec: {externalAccess: %s}}`, text) }

// domainOf writes a domain of n characters.
func domainOf(n int) string {
	label := strings.Repeat("d", 62) + "."
	return strings.Repeat(label, n/63) + strings.Repeat("e", n%63)
}

func TestExternalAccess(t *testing.T) {
	run(t, "ValkeyCluster", []manifest{
		{intent: "an empty block is accepted", overlay: external(`{}`)},
		{intent: "enabled alone is accepted", overlay: external(`{enabled: true}`)},
		{intent: "a load balancer with local traffic is accepted", overlay: external(`{enabled: true, serviceType: LoadBalancer, externalTrafficPolicy: Local}`)},
		{intent: "a ClusterIP is accepted", overlay: external(`{serviceType: ClusterIP}`)},
		{intent: "another service type is refused", overlay: external(`{serviceType: ExternalName}`), refusal: refused("spec.externalAccess.serviceType", `"NodePort", "LoadBalancer", "ClusterIP"`)},
		{intent: "another traffic policy is refused", overlay: external(`{externalTrafficPolicy: Zone}`), refusal: refused("spec.externalAccess.externalTrafficPolicy", `"Cluster", "Local"`)},
		{intent: "NodePort numbers can't be set", overlay: external(`{nodePorts: [30000]}`), refusal: refused(`unknown field "spec.externalAccess.nodePorts"`)},

		{intent: "service annotations with placeholders are accepted", overlay: external(`{serviceAnnotations: {dns.example.com/hostname: "{hostname}", shard: "{shard}"}}`)},
		{
			intent: "service annotations of the manager are refused", overlay: external(`{serviceAnnotations: {valkey.gomomento.com/x: "1"}}`),
			refusal: refused("spec.externalAccess.serviceAnnotations", "must not use keys under valkey.gomomento.com/"),
		},
		{
			intent: "a service annotation that is no annotation key is refused", overlay: external(`{serviceAnnotations: {"{shard}": "1"}}`),
			refusal: refused("spec.externalAccess.serviceAnnotations", "each key must be an annotation key"),
		},

		{intent: "endpoint type ip is accepted", overlay: external(`{preferredEndpointType: ip}`)},
		{
			intent: "endpoint type hostname without a domain is refused", overlay: external(`{preferredEndpointType: hostname}`),
			refusal: refused("spec.externalAccess.domain", "required when preferredEndpointType is hostname: set the DNS domain"),
		},
		{intent: "endpoint type hostname with a domain is accepted", overlay: external(`{preferredEndpointType: hostname, domain: valkey.example.com}`)},
		{intent: "another endpoint type is refused", overlay: external(`{preferredEndpointType: unknown-endpoint}`), refusal: refused("spec.externalAccess.preferredEndpointType", `"ip", "hostname"`)},
	})
}

func TestExternalNames(t *testing.T) {
	prefix := func(p string) string { return external(fmt.Sprintf(`{hostnamePrefix: %q}`, p)) }
	domain := func(d string) string { return external(fmt.Sprintf(`{domain: %q}`, d)) }
	shards := func(n int, block string) string {
		return fmt.Sprintf(`{spec: {shards: %d, externalAccess: %s}}`, n, block)
	}
	const prefixRule, domainRule = "hostnamePrefix must be a DNS label", "domain must be a DNS name such as valkey.example.com"
	const length = "must stay within 253 characters; shorten domain or hostnamePrefix"
	run(t, "ValkeyCluster", []manifest{
		{intent: "a prefix of 58 characters is accepted", overlay: prefix(strings.Repeat("p", 58))},
		{intent: "a prefix of 59 characters is refused", overlay: prefix(strings.Repeat("p", 59)), refusal: refused("spec.externalAccess.hostnamePrefix", "58")},
		{intent: "an empty prefix is refused", overlay: prefix(""), refusal: refused("spec.externalAccess.hostnamePrefix", prefixRule)},
		{intent: "a prefix in upper case is refused", overlay: prefix("Shard"), refusal: refused("spec.externalAccess.hostnamePrefix", prefixRule)},
		{intent: "a prefix with a dot is refused", overlay: prefix("my.shard"), refusal: refused("spec.externalAccess.hostnamePrefix", prefixRule)},
		{intent: "a prefix with an underscore is refused", overlay: prefix("my_shard"), refusal: refused("spec.externalAccess.hostnamePrefix", prefixRule)},
		{intent: "a prefix that starts with a hyphen is refused", overlay: prefix("-shard"), refusal: refused("spec.externalAccess.hostnamePrefix", prefixRule)},
		{intent: "a prefix that ends with a hyphen is refused", overlay: prefix("shard-"), refusal: refused("spec.externalAccess.hostnamePrefix", prefixRule)},

		{intent: "a domain of one label is accepted", overlay: domain("lan")},
		{intent: "an empty domain is refused", overlay: domain(""), refusal: refused("spec.externalAccess.domain", "at least 1 chars")},
		{intent: "a domain with an underscore is refused", overlay: domain("valkey_prod.example.com"), refusal: refused("spec.externalAccess.domain", domainRule)},
		{intent: "a domain with a trailing dot is refused", overlay: domain("valkey.example.com."), refusal: refused("spec.externalAccess.domain", domainRule, "no trailing dot")},
		{intent: "a wildcard domain is refused", overlay: domain("*.example.com"), refusal: refused("spec.externalAccess.domain", domainRule)},
		{intent: "a domain with a placeholder is refused", overlay: domain("{shard}.example.com"), refusal: refused("spec.externalAccess.domain", domainRule)},
		{intent: "a domain in upper case is refused", overlay: domain("Example.com"), refusal: refused("spec.externalAccess.domain", domainRule)},
		{intent: "a domain with an empty label is refused", overlay: domain("valkey..com"), refusal: refused("spec.externalAccess.domain", domainRule)},
		{intent: "a domain with a label of 64 characters is refused", overlay: domain(strings.Repeat("d", 64) + ".com"), refusal: refused("spec.externalAccess.domain", domainRule)},

		{intent: "a domain that just fits the highest of 10 shards is accepted", overlay: shards(10, fmt.Sprintf(`{domain: %s}`, domainOf(245)))},
		{intent: "a domain that fits shard 0 but not shard 10 is refused", overlay: shards(11, fmt.Sprintf(`{domain: %s}`, domainOf(245))), refusal: refused("spec.externalAccess.domain", length)},
		{intent: "a domain too long for one shard is refused", overlay: shards(1, fmt.Sprintf(`{domain: %s}`, domainOf(246))), refusal: refused("spec.externalAccess.domain", length)},
		{intent: "the prefix counts towards the length", overlay: shards(1, fmt.Sprintf(`{domain: %s, hostnamePrefix: sixsix}`, domainOf(245))), refusal: refused("spec.externalAccess.domain", length)},
		{intent: "a shorter prefix leaves room for a longer domain", overlay: shards(1, fmt.Sprintf(`{domain: %s, hostnamePrefix: s}`, domainOf(249)))},
	})
}

func TestGateway(t *testing.T) {
	gateway := func(shards, replicas, port int) string {
		return fmt.Sprintf(`{spec: {shards: %d, replicasPerShard: %d, externalAccess: {gateway: {gatewayRef: {name: public}, basePort: %d}}}}`, shards, replicas, port)
	}
	const portRule = "basePort + shards * (replicasPerShard + 1) - 1 must stay within 65535"
	run(t, "ValkeyCluster", []manifest{
		{intent: "a gateway is accepted", overlay: gateway(3, 1, 30000)},
		{intent: "a gateway beside a NodePort is accepted", overlay: external(`{serviceType: NodePort, gateway: {gatewayRef: {name: g}, basePort: 30000}}`)},
		{intent: "gatewayRef is required", overlay: external(`{gateway: {basePort: 30000}}`), refusal: refused("spec.externalAccess.gateway.gatewayRef: Required value")},
		{intent: "the gateway's name is required", overlay: external(`{gateway: {gatewayRef: {}, basePort: 30000}}`), refusal: refused("gatewayRef.name: Required value")},
		{intent: "basePort is required", overlay: external(`{gateway: {gatewayRef: {name: g}}}`), refusal: refused("spec.externalAccess.gateway.basePort: Required value")},
		{intent: "basePort 0 is refused", overlay: gateway(3, 1, 0), refusal: refused("spec.externalAccess.gateway.basePort", "greater than or equal to 1")},
		{intent: "a highest port of 65535 is accepted", overlay: gateway(3, 1, 65530)},
		{intent: "a highest port of 65536 is refused", overlay: gateway(3, 1, 65531), refusal: refused("spec.externalAccess.gateway.basePort", portRule)},
		{intent: "ports of 1000 shards with 5 replicas are counted", overlay: gateway(1000, 5, 59537), refusal: refused("spec.externalAccess.gateway.basePort", portRule)},
		{intent: "a gateway in another namespace is accepted", overlay: external(`{gateway: {gatewayRef: {name: g, namespace: infra}, basePort: 1}}`)},
		{
			intent: "a gateway of what is no name is refused", overlay: external(`{gateway: {gatewayRef: {name: infra/g}, basePort: 1}}`),
			refusal: refused("gatewayRef.name", "must be the name of a Gateway"),
		},
		{
			intent: "a gateway in what is no namespace is refused", overlay: external(`{gateway: {gatewayRef: {name: g, namespace: Infra.x}, basePort: 1}}`),
			refusal: refused("gatewayRef.namespace", "must be the name of a namespace"),
		},
	})
}
