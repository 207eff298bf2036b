package report

import (
	"regexp"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// removed stands where a secret was.
const removed = "(removed)"

// A pattern is one way in which a secret can be told from other text. What the
// groups before and after hold stays.
type pattern struct {
	find    *regexp.Regexp
	replace string
}

// patterns are applied in this order to everything that goes into a report. They
// rather remove too much: a report is sent around.
var patterns = []pattern{
	// Private keys; certificates are public.
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`), removed},
	// Directives of valkey.conf, and arguments, that hold a password. The value may
	// be quoted, or the value of a map in YAML or JSON.
	{regexp.MustCompile(`(?i)(\b[a-z0-9_.-]*(?:requirepass|primaryauth|masterauth|key-file-pass|password|passwd|passphrase|secret-?key|api-?key|access-?key|token)\b["']?[ \t]*[:= \t][ \t]*)("[^"\n]*"|'[^'\n]*'|[^\s,;}"']+)`), "${1}" + removed},
	{regexp.MustCompile(`(?i)(--?(?:pass|a|auth)[ =])(\S+)`), "${1}" + removed},
	{regexp.MustCompile(`(?i)(\bAUTH[ \t]+(?:[^\s"']+[ \t]+)?)([^\s"']+)`), "${1}" + removed},
	// Passwords of an ACL file, plain and hashed, set and taken back.
	{regexp.MustCompile(`(^|[\s"'])([<>])(\S+)`), "${1}${2}" + removed},
	{regexp.MustCompile(`(^|[\s"'])([#!])[0-9a-fA-F]{2,}`), "${1}${2}" + removed},
	// Credentials in addresses and headers.
	{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^\s/@"']+@`), "${1}" + removed + "@"},
	{regexp.MustCompile(`(?i)(\b(?:bearer|basic)[ \t]+)[A-Za-z0-9._~+/=-]{8,}`), "${1}" + removed},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`), removed},
}

// hex finds hashes of passwords (64 digits) and the system users' passwords (128).
// Digests of images are 64 too, and say what they are.
var hex = regexp.MustCompile(`(sha256:)?\b[0-9a-fA-F]{64,}\b`)

// redact removes every secret from a text.
func redact(text string) string {
	for _, p := range patterns {
		text = p.find.ReplaceAllString(text, p.replace)
	}
	return hex.ReplaceAllStringFunc(text, func(s string) string {
		if strings.HasPrefix(s, "sha256:") {
			return s
		}
		return removed
	})
}

// secretKeys are names of settings and of keys of a map whose value is a secret,
// whatever it looks like.
var secretKeys = regexp.MustCompile(`(?i)(pass|auth$|secret|token|credential|apikey|api-key)`)

// scrub removes secrets from an object by where they stand, before it is text.
func scrub(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			switch key {
			case "annotations", "podAnnotations", "serviceAnnotations":
				v[key] = scrubAnnotations(value)
			case "managedFields":
				delete(v, key)
			case "passwordHashes":
				v[key] = removed
			case "env":
				v[key] = scrubEnv(value)
			default:
				if text, ok := value.(string); ok && secretKeys.MatchString(key) && text != "" && !reference(key) {
					v[key] = removed
					continue
				}
				v[key] = scrub(value)
			}
		}
		return v
	case []any:
		for i := range v {
			v[i] = scrub(v[i])
		}
		return v
	}
	return v
}

// reference is whether a key that sounds like a secret's names one.
func reference(key string) bool {
	return strings.HasSuffix(key, "Ref") || key == "secretName" || key == "tlsSecret"
}

// scrubAnnotations keeps what annotations there are, and the values of our own:
// anything may stand in the others, a whole object in that of kubectl apply.
func scrubAnnotations(v any) any {
	annotations, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for key := range annotations {
		if !strings.HasPrefix(key, v1alpha1.Group+"/") {
			annotations[key] = removed
		}
	}
	return annotations
}

func scrubEnv(v any) any {
	vars, ok := v.([]any)
	if !ok {
		return v
	}
	for _, one := range vars {
		if m, ok := one.(map[string]any); ok && m["value"] != nil {
			m["value"] = removed
		}
	}
	return vars
}
