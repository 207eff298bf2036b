//go:build api

package validation

import (
	"fmt"
	"strings"
	"testing"
)

func TestImage(t *testing.T) {
	field := func(name, value string) string { return fmt.Sprintf(`{spec: {%s: %q}}`, name, value) }
	const repositoryRule = "repository must be an image name without tag or digest, such as valkey/valkey"
	const tagRule = "tag must be an image tag such as 9.1.2, optionally followed by @sha256:"
	const versionRule = "version must be the Valkey version in the image, such as 9.1.2"
	digest := "@sha256:" + hash
	run(t, "ValkeyImage", []manifest{
		{intent: "an image is accepted", overlay: `{}`},
		{intent: "repository is required", overlay: `{spec: {repository: null}}`, refusal: refused("spec.repository: Required value")},
		{intent: "tag is required", overlay: `{spec: {tag: null}}`, refusal: refused("spec.tag: Required value")},
		{intent: "version is required", overlay: `{spec: {version: null}}`, refusal: refused("spec.version: Required value")},

		{intent: "a repository of one part is accepted", overlay: field("repository", "valkey")},
		{intent: "a repository of a registry with a port is accepted", overlay: field("repository", "registry.example.com:5000/team_a/valkey--x/valkey.9")},
		{intent: "a repository of an IPv6 registry is accepted", overlay: field("repository", "[fd00::1]:5000/valkey")},
		{intent: "a repository with a tag is refused", overlay: field("repository", "valkey/valkey:9.1.2"), refusal: refused("spec.repository", repositoryRule, "the tag has its own field")},
		{intent: "a repository with a digest is refused", overlay: field("repository", "valkey/valkey"+digest), refusal: refused("spec.repository", repositoryRule)},
		{intent: "a repository with a scheme is refused", overlay: field("repository", "https://example.com/valkey"), refusal: refused("spec.repository", repositoryRule)},
		{intent: "a repository with a space is refused", overlay: field("repository", "valkey valkey"), refusal: refused("spec.repository", repositoryRule)},
		{intent: "a repository that ends with a slash is refused", overlay: field("repository", "valkey/"), refusal: refused("spec.repository", repositoryRule)},

		{intent: "a tag with a digest is accepted", overlay: field("tag", "9.1.2"+digest)},
		{intent: "a tag of 128 characters is accepted", overlay: field("tag", strings.Repeat("t", 128))},
		{intent: "a tag of 129 characters is refused", overlay: field("tag", strings.Repeat("t", 129)), refusal: refused("spec.tag", tagRule)},
		{intent: "a tag with a colon is refused", overlay: field("tag", ":9.1.2"), refusal: refused("spec.tag", tagRule)},
		{intent: "a digest alone is refused", overlay: field("tag", digest), refusal: refused("spec.tag", tagRule)},
		{intent: "a short digest is refused", overlay: field("tag", "9.1.2@sha256:abc"), refusal: refused("spec.tag", tagRule)},

		{intent: "a version of two parts is accepted", overlay: field("version", "9.1")},
		{intent: "a version of one part is accepted", overlay: field("version", "9")},
		{intent: "a release candidate is accepted", overlay: field("version", "9.1.0-rc1")},
		{intent: "a distribution's version is accepted", overlay: field("version", "9.1.2+dfsg-1~deb13u1")},
		{intent: "a version older than 9 is accepted: the cluster reports it", overlay: field("version", "8.1.4")},
		{intent: "a version with a leading v is refused", overlay: field("version", "v9.1.2"), refusal: refused("spec.version", versionRule, "no leading v")},
		{intent: "a version of four parts is refused", overlay: field("version", "9.1.2.3"), refusal: refused("spec.version", versionRule)},
		{intent: "latest is refused as version", overlay: field("version", "latest"), refusal: refused("spec.version", versionRule)},
		{intent: "an empty version is refused", overlay: field("version", ""), refusal: refused("spec.version", "at least 1 chars")},

		{intent: "pull secrets are accepted", overlay: `{spec: {pullSecrets: [registry]}}`},
		{intent: "an empty pull secret is refused", overlay: `{spec: {pullSecrets: [""]}}`, refusal: refused("spec.pullSecrets[0]", "at least 1 chars")},
		{intent: "17 pull secrets are refused", overlay: `{spec: {pullSecrets: ` + list(17, func(i int) string { return fmt.Sprintf("s%d", i) }) + `}}`, refusal: refused("spec.pullSecrets", "must have at most 16 items")},
	})
}
