//go:build api

package validation

import (
	"fmt"
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	valkey := func(text string) string { return fmt.Sprintf(`{spec: {valkey: %s}}`, text) }
	resources := func(text string) string { return fmt.Sprintf(`{spec: {resources: %s}}`, text) }
	const keyRule = "each key must be one server directive"
	const valueRule = "must not hold line breaks: give each directive a key of its own"
	settings := func(i int) string { return fmt.Sprintf(`key-%d: "1"`, i) }
	run(t, "ValkeyConfig", []manifest{
		{intent: "an empty config is accepted", overlay: `{spec: {imageRef: null}}`},
		{intent: "a config without spec is refused", overlay: `{spec: null}`, refusal: refused("spec: Required value")},
		{intent: "every field together is accepted", overlay: `{spec: {imageRef: valkey-9, baseRef: standard, resources: {cpu: 500m, memory: 2Gi}, valkey: {maxmemory: 1500mb}, acl: []}}`},
		{intent: "an empty imageRef is refused", overlay: `{spec: {imageRef: ""}}`, refusal: refused("spec.imageRef", "at least 1 chars")},
		{intent: "an empty baseRef is refused", overlay: `{spec: {baseRef: ""}}`, refusal: refused("spec.baseRef", "at least 1 chars")},

		{intent: "cpu as a number is accepted", overlay: resources(`{cpu: 2}`)},
		{intent: "memory in decimal units is accepted", overlay: resources(`{memory: 500M}`)},
		{intent: "memory with a part is accepted", overlay: resources(`{memory: 1.5Gi}`)},
		{intent: "negative memory is refused", overlay: resources(`{memory: "-1"}`), refusal: refused("spec.resources.memory", "memory must be a quantity above 0, such as 512Mi or 2Gi")},
		{intent: "negative memory as a number is refused", overlay: resources(`{memory: -1}`), refusal: refused("spec.resources.memory", "memory must be a quantity above 0, such as 512Mi or 2Gi")},
		{intent: "memory in the server's units is refused", overlay: resources(`{memory: 2gb}`), refusal: refused("spec.resources.memory", "memory must be a quantity above 0, such as 512Mi or 2Gi")},
		{intent: "an unknown unit is refused", overlay: resources(`{memory: 2Gib}`), refusal: refused("spec.resources.memory", "memory must be a quantity above 0, such as 512Mi or 2Gi")},
		{intent: "no cpu is refused", overlay: resources(`{cpu: "0"}`), refusal: refused("spec.resources.cpu", "cpu must be a quantity above 0, such as 500m or 2")},
		{intent: "limits are not a field", overlay: resources(`{limits: {cpu: 1}}`), refusal: refused(`unknown field "spec.resources.limits"`)},

		{intent: "directives are accepted", overlay: valkey(`{maxmemory-policy: allkeys-lru, notify-keyspace-events: "", search.threads: "2", Save: "900 1 300 10"}`)},
		{intent: "256 directives are accepted", overlay: valkey(mapping(256, settings))},
		{intent: "257 directives are refused", overlay: valkey(mapping(257, settings)), refusal: refused("spec.valkey", "must have at most 256 items")},
		{intent: "a directive with a space is refused", overlay: valkey(`{"maxmemory 1gb": ""}`), refusal: refused("spec.valkey", keyRule)},
		{intent: "a directive with a line break is refused", overlay: valkey(`{"save\nrequirepass": x}`), refusal: refused("spec.valkey", keyRule)},
		{intent: "an empty directive is refused", overlay: valkey(`{"": x}`), refusal: refused("spec.valkey", keyRule)},
		{intent: "a comment as directive is refused", overlay: valkey(`{"#maxmemory": x}`), refusal: refused("spec.valkey", keyRule)},
		{intent: "a value with a line feed is refused", overlay: valkey(`{maxmemory: "1gb\nrequirepass x"}`), refusal: refused("spec.valkey[maxmemory]", valueRule)},
		{intent: "a value with a carriage return is refused", overlay: valkey(`{maxmemory: "1gb\rrequirepass x"}`), refusal: refused("spec.valkey[maxmemory]", valueRule)},
		{intent: "a value of 4096 characters is accepted", overlay: valkey(fmt.Sprintf(`{x: %s}`, strings.Repeat("v", 4096)))},
		{intent: "a value of 4097 characters is refused", overlay: valkey(fmt.Sprintf(`{x: %s}`, strings.Repeat("v", 4097))), refusal: refused("spec.valkey.x", "4096")},
		{intent: "a value that is a number is refused", overlay: valkey(`{maxclients: 100}`), refusal: refused("spec.valkey.maxclients", "must be of type string")},
	})
}
