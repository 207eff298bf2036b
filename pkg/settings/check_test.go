package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

//
func TestWhatTheManagerSetsIsRefusedInAnyCaseAndNamed(t *testing.T) {
	keys := []string{
		"port", "PORT", "tls-port", "Cluster-Enabled", "cluster-config-file", "cluster-announce-ip", "cluster-announce-hostname",
		"CLUSTER-ANNOUNCE-CLIENT-PORT", "cluster-announce-bus-port", "cluster-preferred-endpoint-type", "aclfile", "requirepass", "bind", "dir",
		"rename-command", "user", "include", "primaryauth", "masterauth", "primaryuser", "masteruser", "replicaof", "slaveof",
		"save", "appendonly", "protected-mode", "tls-auto-reload-interval", "tls-cert-file", "tls-auth-clients", "daemonize",
		"cluster-node-timeout", "cluster-allow-replica-migration", "cluster-manual-failover-timeout", "shutdown-on-sigterm", "repl-diskless-sync-delay",
	}
	for _, key := range keys {
		problems := Check(Resolved{Valkey: map[string]string{key: "x"}})
		if len(problems) != 1 || problems[0].Reason != v1alpha1.ReasonSettingRefused || !strings.Contains(problems[0].Message, `"`+key+`"`) {
			t.Errorf("%s: %v", key, problems)
		}
		if !IsManaged(key) {
			t.Errorf("IsManaged(%q) = false", key)
		}
	}
	for _, key := range []string{"maxmemory-policy", "timeout", "cluster-require-full-coverage", "cluster-databases", "tls-protocols", "tls-ciphersuites", "io-threads", "loadmodule", "notify-keyspace-events"} {
		if IsManaged(key) {
			t.Errorf("IsManaged(%q) = true", key)
		}
	}
}

func TestEveryDirectiveThatIsRenderedIsManaged(t *testing.T) {
	for _, s := range servers() {
		for line := range strings.Lines(Render(Server{TLS: s.TLS, Announce: s.Announce, IPv6: s.IPv6})) {
			if key, _, _ := strings.Cut(line, " "); key != "#" && !IsManaged(key) {
				t.Errorf("%s is rendered, but a config could set it too", key)
			}
		}
	}
}

func TestValuesThatCouldInjectADirectiveOrStopTheServerAreRefused(t *testing.T) {
	for value, refused := range map[string]bool{
		"a\nport 1": true, "a\rport 1": true, "a\x00b": true, "\x1b[0m": true, "a\x7f": true,
		`"`: true, `K"E`: true, `'a`: true, `"a\"`: true, `'a\'`: true, `a\"b`: true,
		" ": true, "\t": true,
		"": false, "normal 0 0 0 pubsub 32mb 8mb 60": false, `""`: false, `"eu 1"`: false, `K"E"`: false, `'a\'b'`: false, `"a\"b"`: false,
		"a\tb": false, `KE\`: false, "é": false, "# no comment": false, `'"'`: false,
	} {
		problems := Check(Resolved{Valkey: map[string]string{"client-output-buffer-limit": value}})
		if (len(problems) == 1) != refused || len(problems) > 1 {
			t.Errorf("%q: %v", value, problems)
		}
	}
	for _, key := range []string{"", "a b", "a\nport", "#x", "-x", "1x", "a\"b"} {
		if problems := Check(Resolved{Valkey: map[string]string{key: "x"}}); len(problems) != 1 {
			t.Errorf("key %q: %v", key, problems)
		}
	}
}

func TestMaxmemoryMustBeReadableAndFitTheMemoryLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		memory, maxmemory, reason string
	}{
		"equal":             {"1Gi", "1gb", ""},
		"below":             {"1Gi", "1g", ""},
		"above":             {"1G", "1gb", v1alpha1.ReasonMemoryExceeded},
		"above by one":      {"1Gi", "1073741825", v1alpha1.ReasonMemoryExceeded},
		"quoted and above":  {"1G", `"1gb"`, v1alpha1.ReasonMemoryExceeded},
		"fractional limit":  {"1.5Gi", "1610612736", ""},
		"no limit":          {"", "100gb", ""},
		"Kubernetes' units": {"1Gi", "512Mi", v1alpha1.ReasonSettingRefused},
		"a fraction":        {"1Gi", "1.5gb", v1alpha1.ReasonSettingRefused},
		"negative":          {"", "-1", v1alpha1.ReasonSettingRefused},
	} {
		t.Run(name, func(t *testing.T) {
			r := Resolved{Valkey: map[string]string{"maxmemory": tc.maxmemory}}
			if tc.memory != "" {
				r.Memory = ptr.To(resource.MustParse(tc.memory))
			}
			var reasons []string
			for _, p := range Check(r) {
				reasons = append(reasons, p.Reason)
				if !strings.Contains(p.Message, "maxmemory") {
					t.Errorf("message %q doesn't name the key", p.Message)
				}
			}
			if got := strings.Join(reasons, " "); got != tc.reason {
				t.Errorf("reasons %q, want %q", got, tc.reason)
			}
		})
	}
}

func TestAProblemNamesWhereTheUserWroteIt(t *testing.T) {
	c := catalog(map[string]v1alpha1.ValkeyConfigSpec{
		"base":  {ImageRef: "valkey-9", Valkey: map[string]v1alpha1.SettingValue{"PORT": "7000", "maxmemory": "2gb"}},
		"child": {BaseRef: "base", Resources: resources("", "1Gi")},
	})
	r, problems := Resolve(c, "child")
	if len(problems) != 0 {
		t.Fatal(problems)
	}
	want := []Problem{
		{v1alpha1.ReasonSettingRefused, `ValkeyConfig "base": valkey key "PORT" is set by the manager and can't be overridden: remove it`},
		{v1alpha1.ReasonMemoryExceeded, `ValkeyConfig "base": valkey key "maxmemory" is 2gb, which is above the memory limit of 1Gi: the pod would be killed before the server evicts; lower it or raise resources.memory`},
	}
	if diff := cmp.Diff(want, Check(r)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
