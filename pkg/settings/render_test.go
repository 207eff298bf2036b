package settings

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/announce"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func servers() map[string]Server {
	user := map[string]string{"timeout": "60", "maxmemory": "100mb", "Client-Output-Buffer-Limit": "normal 0 0 0", "notify-keyspace-events": ""}
	return map[string]Server{
		"plaintext": {Settings: user, Announce: announce.Values{EndpointType: "ip"}},
		"tls": {
			Settings: user,
			TLS:      &objects.TLSFiles{CA: "ca-1.crt", Certificate: "tls-2.crt", Key: "tls-3.key"},
			Announce: announce.Values{Hostname: "c-1a2b3.c.n.svc.cluster.local", EndpointType: "hostname"},
		},
		"external-ipv6": {
			IPv6:     true,
			Announce: announce.Values{Hostname: "shard-0.example.com", EndpointType: "hostname", ClientPort: 30080, HumanNodename: "c-1a2b3"},
		},
	}
}

func TestValkeyConfIsRenderedAsReviewed(t *testing.T) {
	for name, s := range servers() {
		path := filepath.Join("testdata", name+".conf")
		got := Render(s)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", path, diff)
		}
	}
}

// last is the value that each directive has in the end.
func last(conf string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(conf) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		values[strings.ToLower(key)] = value
	}
	return values
}

func TestForcedValuesWinOverWhateverTheUserSets(t *testing.T) {
	for name, s := range servers() {
		want := last(Render(Server{TLS: s.TLS, Announce: s.Announce, IPv6: s.IPv6}))
		s.Settings = map[string]string{"timeout": "60\nport 7000", "hz": "10"}
		for key := range want {
			s.Settings[key] = "evil"
			s.Settings[strings.ToUpper(key)] = "evil"
		}
		got := last(Render(s))
		if got["hz"] != "10" {
			t.Errorf("%s: the user's own setting is lost", name)
		}
		delete(got, "hz")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestExactlyOneListenerIsOpenAndItSpeaksTheClustersProtocol(t *testing.T) {
	for name, s := range servers() {
		s.Settings = map[string]string{"port": "7000", "tls-port": "7001"}
		values := last(Render(s))
		plain, encrypted := values["port"], values["tls-port"]
		if s.TLS == nil && (plain != "6379" || encrypted != "") || s.TLS != nil && (plain != "0" || encrypted != "6379") {
			t.Errorf("%s: port %s, tls-port %s", name, plain, encrypted)
		}
	}
}

// B-08, R-03, E-01 and the rule that passwords are in no ConfigMap.
func TestNothingThatBelongsToTheServerOrToASecretIsRendered(t *testing.T) {
	for name, s := range servers() {
		conf := Render(s)
		for _, unwanted := range []string{"shard-id", "cluster-announce-ip", "cluster-announce-port", "cluster-announce-tls-port", "cluster-announce-bus-port", "$", "primaryauth ", "requirepass", "tls-auto-reload-interval"} {
			if strings.Contains(conf, unwanted) {
				t.Errorf("%s renders %s", name, unwanted)
			}
		}
	}
}

// L-09
func TestTheThreeTLSFilesAreNamedTogether(t *testing.T) {
	want := [][2]string{
		{"tls-cert-file", "/etc/valkey/tls/c"}, {"tls-key-file", "/etc/valkey/tls/k"}, {"tls-ca-cert-file", "/etc/valkey/tls/a"},
	}
	if diff := cmp.Diff(want, TLSDirectives(objects.TLSFiles{CA: "a", Certificate: "c", Key: "k"})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func FuzzRender(f *testing.F) {
	f.Add("maxmemory", "100mb")
	f.Add("PORT", "7000")
	f.Add("timeout", "60\r\nport 7000")
	f.Add("a\nport", "1")
	f.Add("save", `"`)
	forcedOnly := Render(Server{})
	f.Fuzz(func(t *testing.T, key, value string) {
		conf := Render(Server{Settings: map[string]string{key: value}})
		extra := strings.Count(conf, "\n") - strings.Count(forcedOnly, "\n")
		refused := len(Check(Resolved{Valkey: map[string]string{key: value}})) > 0
		if refused && extra != 0 || !refused && extra != 1 {
			t.Errorf("%q=%q (refused: %v) adds %d lines", key, value, refused, extra)
		}
		got := last(conf)
		if !refused {
			delete(got, strings.ToLower(key))
		}
		if !maps.Equal(got, last(forcedOnly)) {
			t.Errorf("%q=%q changes %v", key, value, slices.Sorted(maps.Keys(got)))
		}
	})
}
