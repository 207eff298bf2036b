package settings

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/announce"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// TLSDirectives name the three files. They belong into one CONFIG SET: the server
// then either loads CA, certificate and key as they are on disk, or keeps all it
// has.
func TLSDirectives(f objects.TLSFiles) [][2]string {
	return [][2]string{
		{"tls-cert-file", objects.TLSDir + "/" + f.Certificate},
		{"tls-key-file", objects.TLSDir + "/" + f.Key},
		{"tls-ca-cert-file", objects.TLSDir + "/" + f.CA},
	}
}

// Server is what one node's valkey.conf is made from. cluster-announce-ip is not
// in it: the pod's IP is known only to the pod, which passes it as an argument.
type Server struct {
	// Settings are the user's directives. What Check would refuse is left out.
	Settings map[string]string
	// TLS files; nil on a plaintext cluster.
	TLS *objects.TLSFiles
	// Announce is the announcement at the moment of rendering.
	Announce announce.Values
	// IPv6 is whether the pod has an IPv6 address. Without one the server could
	// not bind the wildcard address and would not start.
	IPv6 bool
}

// Render writes valkey.conf: the user's settings sorted by name, then the
// manager's, which win because they come last. Equal input gives equal text.
func Render(s Server) string {
	var b strings.Builder
	b.WriteString("# Written by the Valkey operator: changes are overwritten.\n")
	for _, key := range slices.SortedFunc(maps.Keys(s.Settings), byDirective) {
		if refusal(key, s.Settings[key]) == "" {
			writeLine(&b, strings.ToLower(key), s.Settings[key])
		}
	}
	b.WriteString("# Set by the operator.\n")
	for _, line := range s.directives() {
		writeLine(&b, line[0], line[1])
	}
	writeLine(&b, "include", primaryAuthFile)
	return b.String()
}

// byDirective sorts by the name that the server reads, so that spellings of one
// name come together, and always in the same order.
func byDirective(a, b string) int {
	return cmp.Or(cmp.Compare(strings.ToLower(a), strings.ToLower(b)), cmp.Compare(a, b))
}

func writeLine(b *strings.Builder, key, value string) {
	if value == "" {
		value = `""`
	}
	b.WriteString(key + " " + value + "\n")
}

func (s Server) directives() [][2]string {
	port := strconv.Itoa(int(objects.ClientPort))
	bind := "0.0.0.0"
	if s.IPv6 {
		bind += " ::"
	}
	lines := slices.Clone(forced)
	lines = append(lines, [2]string{"bind", bind})
	if s.TLS == nil {
		// No tls-port 0, though it is the default: a server built without TLS doesn't
		// know the directive.
		lines = append(lines, [2]string{"port", port})
	} else {
		lines = append(lines, [2]string{"port", "0"}, [2]string{"tls-port", port},
			[2]string{"tls-cluster", "yes"}, [2]string{"tls-replication", "yes"}, [2]string{"tls-auth-clients", "no"})
		lines = append(lines, TLSDirectives(*s.TLS)...)
	}
	return append(lines, s.Announce.Directives(s.TLS != nil)...)
}
