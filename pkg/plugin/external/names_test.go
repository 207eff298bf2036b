package external

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/operation"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

func TestNamesThatDoNotResolveAreNamedBeforeClientsAreLedToThem(t *testing.T) {
	for name, tt := range map[string]struct {
		known []string
		want  string
	}{
		"none":     {nil, "the outside name shard-0.example.com (and 2 more) can't be resolved from here"},
		"all but":  {[]string{"shard-0.example.com", "shard-2.example.com"}, "the outside name shard-1.example.com can't be resolved from here"},
		"all":      {[]string{"shard-0.example.com", "shard-1.example.com", "shard-2.example.com"}, ""},
		"no name":  {nil, ""},
		"only off": {nil, ""},
	} {
		f := plugintest.Active("demo", 3, 0)
		for shard, host := range []string{"shard-0.example.com", "shard-1.example.com", "shard-2.example.com"} {
			if name == "no name" {
				host = ""
			}
			f.Cluster.Status.ExternalEndpoints = append(f.Cluster.Status.ExternalEndpoints, v1alpha1.ExternalEndpoint{ShardIndex: int32(shard), Hostname: host})
		}
		kind := func(o operation.Options) *Options {
			out := enabling(o)
			if name == "only off" {
				out = disabling(o)
			}
			out.resolve = func(_ context.Context, host string) error {
				for _, known := range tt.known {
					if host == known {
						return nil
					}
				}
				return errors.New("no such host")
			}
			return out
		}
		args := []string{"demo", "--yes"}
		if name != "only off" {
			args = append(args, "--domain", "example.com")
		}
		_, errOut, code := plugintest.Run(t, building(serve(t, f), kind), false, args...)
		if code != exit.OK || tt.want == "" == strings.Contains(errOut, "can't be resolved") || !strings.Contains(errOut, tt.want) {
			t.Errorf("%s: exit %d with %q, want %q", name, code, errOut, tt.want)
		}
	}
}
