package settings

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// DefaultClusterDomain is Kubernetes' own default.
const DefaultClusterDomain = "cluster.local"

// ParseClusterDomain reads the DNS domain of the Kubernetes cluster as every name
// is built from it: lower case, without a dot at its end. Empty means
// DefaultClusterDomain.
func ParseClusterDomain(s string) (string, error) {
	domain := strings.ToLower(strings.TrimSuffix(strings.TrimSpace(s), "."))
	if domain == "" && strings.TrimSpace(s) == "" {
		return DefaultClusterDomain, nil
	}
	if reasons := validation.IsDNS1123Subdomain(domain); len(reasons) > 0 {
		return "", fmt.Errorf("cluster domain %q is no DNS domain, want one such as %s: %s", s, DefaultClusterDomain, strings.Join(reasons, "; "))
	}
	for label := range strings.SplitSeq(domain, ".") {
		if len(label) > validation.DNS1123LabelMaxLength {
			return "", fmt.Errorf("cluster domain %q has a label of %d characters: at most %d are allowed", s, len(label), validation.DNS1123LabelMaxLength)
		}
	}
	return domain, nil
}
