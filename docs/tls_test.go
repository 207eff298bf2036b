package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/announce"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

var quoted = regexp.MustCompile("`([a-z-]+)( [^`]*)?`")

// forcedByTLS are the directives that a node has because of TLS, with their values;
// those that name files of the moment or the node itself without.
func forcedByTLS() []string {
	plain := strings.Split(settings.Render(settings.Server{Announce: announce.Values{EndpointType: "ip"}}), "\n")
	encrypted := settings.Render(settings.Server{
		TLS:      &objects.TLSFiles{CA: "ca", Certificate: "crt", Key: "key"},
		Announce: announce.Values{Hostname: "pod.service", EndpointType: "hostname"},
	})
	var names []string
	for line := range strings.Lines(encrypted) {
		line = strings.TrimSpace(line)
		name, value, _ := strings.Cut(line, " ")
		if slices.Contains(plain, line) {
			continue
		}
		if strings.Contains(value, "/") || value == "pod.service" {
			line = name
		}
		names = append(names, line)
	}
	slices.Sort(names)
	return names
}

func TestTheTLSPageListsEverySettingThatTLSForces(t *testing.T) {
	_, section, ok := strings.Cut(read(t, "docs/tls.md"), "\n## What is set on the servers\n")
	if !ok {
		t.Fatal("docs/tls.md has no section of settings")
	}
	var listed []string
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		first, _, _ := strings.Cut(line[2:], "|")
		for _, match := range quoted.FindAllStringSubmatch(first, -1) {
			listed = append(listed, match[1]+match[2])
		}
	}
	slices.Sort(listed)
	if diff := cmp.Diff(forcedByTLS(), listed); diff != "" {
		t.Errorf("settings (-rendered +in docs/tls.md):\n%s", diff)
	}
}
