//go:build api

package validation

import (
	"fmt"
	"strings"
	"testing"
)

var hash = strings.Repeat("0a", 32)

// binding writes a whole binding; parts replace its fields.
func binding(parts ...string) string {
	fields := map[string]string{
		"username":       "app",
		"passwordHashes": "[" + hash + "]",
		"permissions":    `[{roleRef: read-only, keys: [{pattern: "app:*", access: read}]}]`,
	}
	for _, p := range parts {
		name, value, _ := strings.Cut(p, ": ")
		fields[name] = value
	}
	var b strings.Builder
	for _, name := range []string{"username", "passwordHashes", "permissions"} {
		if fields[name] != "-" {
			fmt.Fprintf(&b, "%s: %s, ", name, fields[name])
		}
	}
	return "{" + strings.TrimSuffix(b.String(), ", ") + "}"
}

func bindings(b ...string) string {
	return `{spec: {acl: [` + strings.Join(b, ", ") + `]}}`
}

// aclManifests hold for the bindings of clusters and of configs alike.
func aclManifests() []manifest {
	permission := func(text string) string { return bindings(binding("permissions: [" + text + "]")) }
	pattern := func(p string) string {
		return permission(fmt.Sprintf(`{roleRef: r, keys: [{pattern: %s, access: read}]}`, p))
	}
	channel := func(p string) string { return permission(fmt.Sprintf(`{roleRef: r, keys: [], channels: [%s]}`, p)) }
	const patternRule = "pattern must not hold spaces, quotes or control characters"
	const hashRule = "the SHA-256 of the password as 64 lower-case hex digits; kubectl valkey hash-password prints it"
	return []manifest{
		{intent: "an empty list of bindings is accepted", overlay: bindings()},
		{intent: "a binding is accepted", overlay: bindings(binding())},
		{intent: "64 bindings are accepted", overlay: `{spec: {acl: ` + list(64, func(i int) string { return binding(fmt.Sprintf("username: u%d", i)) }) + `}}`},
		{
			intent: "65 bindings are refused", overlay: `{spec: {acl: ` + list(65, func(i int) string { return binding(fmt.Sprintf("username: u%d", i)) }) + `}}`,
			refusal: refused("spec.acl", "must have at most 64 items"),
		},
		{
			intent: "a username bound twice is refused", overlay: bindings(binding(), binding("username: b"), binding()),
			refusal: refused("spec.acl[2]", "Duplicate value", `"username":"app"`),
		},
		{intent: "the default user can be bound", overlay: bindings(binding("username: default"))},
		{intent: "a username of letters, digits, underscores and hyphens is accepted", overlay: bindings(binding("username: _App-1"))},
		{intent: "a username is required", overlay: bindings(binding("username: -")), refusal: refused("spec.acl[0].username: Required value")},
		{intent: "an empty username is refused", overlay: bindings(binding(`username: ""`)), refusal: refused("spec.acl[0].username", "at least 1 chars")},
		{intent: "a username with a space is refused", overlay: bindings(binding("username: my app")), refusal: refused("spec.acl[0].username", "only letters, digits, '_' and '-'")},
		{intent: "a username with a line break is refused", overlay: bindings(binding(`username: "app\n"`)), refusal: refused("spec.acl[0].username", "only letters, digits, '_' and '-'")},
		{intent: "a username of 128 characters is accepted", overlay: bindings(binding("username: " + strings.Repeat("u", 128)))},
		{intent: "a username of 129 characters is refused", overlay: bindings(binding("username: " + strings.Repeat("u", 129))), refusal: refused("spec.acl[0].username", "128")},
		{
			intent: "a username of the manager is refused", overlay: bindings(binding("username: _momento_x")),
			refusal: refused("spec.acl[0].username", "start with _momento_ belong to the manager; choose another username"),
		},

		{intent: "8 password hashes are accepted", overlay: bindings(binding("passwordHashes: " + list(8, func(int) string { return hash })))},
		{intent: "9 password hashes are refused", overlay: bindings(binding("passwordHashes: " + list(9, func(int) string { return hash }))), refusal: refused("spec.acl[0].passwordHashes", "must have at most 8 items")},
		{intent: "no password hash is refused", overlay: bindings(binding("passwordHashes: []")), refusal: refused("spec.acl[0].passwordHashes", "should have at least 1 items")},
		{intent: "password hashes are required", overlay: bindings(binding("passwordHashes: -")), refusal: refused("spec.acl[0].passwordHashes: Required value")},
		{intent: "a hash of 63 characters is refused", overlay: bindings(binding("passwordHashes: [" + hash[1:] + "]")), refusal: refused("spec.acl[0].passwordHashes[0]", hashRule)},
		{intent: "a hash of 65 characters is refused", overlay: bindings(binding("passwordHashes: [" + hash + "a]")), refusal: refused("spec.acl[0].passwordHashes[0]", hashRule)},
		{intent: "a hash in upper case is refused", overlay: bindings(binding("passwordHashes: [" + strings.ToUpper(hash) + "]")), refusal: refused("spec.acl[0].passwordHashes[0]", hashRule)},
		{intent: "a hash that is not hex is refused", overlay: bindings(binding("passwordHashes: [g" + hash[1:] + "]")), refusal: refused("spec.acl[0].passwordHashes[0]", hashRule)},
		{intent: "a clear password is refused", overlay: bindings(binding(`passwordHashes: ['p@ss w"rd']`)), refusal: refused("spec.acl[0].passwordHashes[0]", hashRule)},
		{intent: "a SHA-512 is refused as a hash", overlay: bindings(binding("passwordHashes: [" + hash + hash + "]")), refusal: refused("spec.acl[0].passwordHashes[0]", hashRule)},

		{intent: "16 permissions are accepted", overlay: permission(strings.Repeat(`{roleRef: r, keys: []}, `, 15) + `{roleRef: r, keys: []}`)},
		{intent: "17 permissions are refused", overlay: permission(strings.Repeat(`{roleRef: r, keys: []}, `, 16) + `{roleRef: r, keys: []}`), refusal: refused("spec.acl[0].permissions", "must have at most 16 items")},
		{intent: "no permission is refused", overlay: permission(""), refusal: refused("spec.acl[0].permissions", "should have at least 1 items")},
		{intent: "roleRef is required", overlay: permission(`{keys: []}`), refusal: refused("spec.acl[0].permissions[0].roleRef: Required value")},
		{intent: "keys is required", overlay: permission(`{roleRef: r}`), refusal: refused("spec.acl[0].permissions[0].keys: Required value")},
		{intent: "an empty list of keys is accepted", overlay: permission(`{roleRef: r, keys: []}`)},
		{intent: "every key access is accepted", overlay: permission(`{roleRef: r, keys: [{pattern: a, access: read}, {pattern: b, access: write}, {pattern: c, access: readwrite}]}`)},
		{intent: "another key access is refused", overlay: permission(`{roleRef: r, keys: [{pattern: a, access: rw}]}`), refusal: refused("spec.acl[0].permissions[0].keys[0].access", `"read", "write", "readwrite"`)},
		{intent: "key access is required", overlay: permission(`{roleRef: r, keys: [{pattern: a}]}`), refusal: refused("keys[0].access: Required value")},
		{intent: "17 keys are refused", overlay: permission(`{roleRef: r, keys: ` + list(17, func(int) string { return `{pattern: a, access: read}` }) + `}`), refusal: refused("permissions[0].keys", "must have at most 16 items")},

		{intent: "a glob pattern is accepted", overlay: pattern(`"{app}:[a-z]?\\*"`)},
		{intent: "an empty pattern is refused", overlay: pattern(`""`), refusal: refused("keys[0].pattern", "at least 1 chars")},
		{intent: "a pattern with a space is refused", overlay: pattern(`"a b"`), refusal: refused("keys[0].pattern", patternRule)},
		{intent: "a pattern with a no-break space is refused", overlay: pattern(`"a\u00a0b"`), refusal: refused("keys[0].pattern", patternRule)},
		{intent: "a pattern with a double quote is refused", overlay: pattern(`'a"b'`), refusal: refused("keys[0].pattern", patternRule)},
		{intent: "a pattern with a single quote is refused", overlay: pattern(`"a'b"`), refusal: refused("keys[0].pattern", patternRule)},
		{intent: "a pattern with a line break is refused", overlay: pattern(`"a\nuser root on nopass ~* +@all"`), refusal: refused("keys[0].pattern", patternRule)},
		{intent: "a pattern with a control character is refused", overlay: pattern(`"a\u0007"`), refusal: refused("keys[0].pattern", patternRule)},
		{intent: "a pattern of 256 characters is accepted", overlay: pattern(strings.Repeat("k", 256))},
		{intent: "a pattern of 257 characters is refused", overlay: pattern(strings.Repeat("k", 257)), refusal: refused("keys[0].pattern", "256")},

		{intent: "a channel is accepted", overlay: channel(`"news:*"`)},
		{intent: "an empty channel is refused", overlay: channel(`""`), refusal: refused("channels[0]", "at least 1 chars")},
		{intent: "a channel with a space is refused", overlay: channel(`"a b"`), refusal: refused("channels[0]", patternRule)},
		{intent: "a channel of 128 characters is accepted", overlay: channel(strings.Repeat("c", 128))},
		{intent: "a channel of 129 characters is refused", overlay: channel(strings.Repeat("c", 129)), refusal: refused("channels[0]", "128")},
		{intent: "17 channels are refused", overlay: channel(strings.TrimSuffix(strings.Repeat("c, ", 17), ", ")), refusal: refused("permissions[0].channels", "must have at most 16 items")},
	}
}

func TestACLOfCluster(t *testing.T) { run(t, "ValkeyCluster", aclManifests()) }

func TestACLOfConfig(t *testing.T) { run(t, "ValkeyConfig", aclManifests()) }
