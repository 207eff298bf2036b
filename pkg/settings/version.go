package settings

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// MinVersion is the oldest Valkey that can be run. Older servers refuse to start
// with directives that are always rendered (shutdown-on-sigterm failover), don't
// know the announced client ports and can't migrate slots atomically.
const MinVersion = "9.0.0"

var minVersion = version.MustParseGeneric(MinVersion)

// ParseVersion reads ValkeyImage.spec.version, such as 9.1.2, 9.1 or 9.2.0-rc1. A
// release candidate counts as its release: it knows the same directives.
func ParseVersion(s string) (*version.Version, error) {
	text := s
	if !strings.Contains(text, ".") {
		digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
		text = text[:digits] + ".0" + text[digits:]
	}
	v, err := version.ParseGeneric(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no version, want one such as 9.1.2: %w", s, err)
	}
	return v, nil
}
