package settings

import (
	"strings"
	"testing"
)

// V-03
func TestTheClusterDomainIsNormalisedOrRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":               "cluster.local",
		"  ":             "cluster.local",
		"cluster.local":  "cluster.local",
		"kube.prod":      "kube.prod",
		"kube.prod.":     "kube.prod",
		"Kube.PROD":      "kube.prod",
		" kube.prod. \n": "kube.prod",
		"local":          "local",
	} {
		if got, err := ParseClusterDomain(text); err != nil || got != want {
			t.Errorf("ParseClusterDomain(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{".", "kube.prod..", ".kube.prod", "kube_prod", "*.prod", "kube prod", "-kube.prod", "https://kube.prod", strings.Repeat("a", 64) + ".prod", strings.Repeat("a.", 130) + "prod"} {
		got, err := ParseClusterDomain(text)
		if err == nil {
			t.Errorf("ParseClusterDomain(%q) = %q, want an error", text, got)
			continue
		}
		if !strings.Contains(err.Error(), "cluster domain") {
			t.Errorf("error %q doesn't name the setting", err)
		}
	}
}
