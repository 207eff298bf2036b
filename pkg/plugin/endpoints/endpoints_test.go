package endpoints

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

func building(f *plugintest.Fixture, dial func(context.Context, string) error) plugintest.Build {
	return func(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams) *cobra.Command {
		o := newOptions(access, flags, streams)
		// Only the custom resources, which is all that it may need.
		o.client = plugintest.Client(f.Cluster)
		for _, n := range f.Nodes {
			if err := o.client.Create(context.Background(), n.DeepCopy()); err != nil {
				panic(err)
			}
		}
		if dial != nil {
			o.dial = dial
		}
		return o.command()
	}
}

// outsideCluster is one with external access, as the manager leaves it.
func outsideCluster(access v1alpha1.ExternalAccess, directed bool, addresses ...string) *plugintest.Fixture {
	f := plugintest.Active("demo", 2, 1)
	access.Enabled = true
	f.Cluster.Spec.ExternalAccess = &access
	for shard := range int32(2) {
		e := v1alpha1.ExternalEndpoint{ShardIndex: shard, Service: "demo-shard-" + fmt.Sprint(shard), Ports: []int32{31000 + 2*shard, 31001 + 2*shard}, Addresses: addresses}
		if access.Domain != "" {
			e.Hostname = "shard-" + fmt.Sprint(shard) + "." + access.Domain
		}
		f.Cluster.Status.ExternalEndpoints = append(f.Cluster.Status.ExternalEndpoints, e)
	}
	f.Condition(v1alpha1.ConditionExternalAccessReady, true, v1alpha1.ReasonExternalReady, "every node has a port outside, by Services of type NodePort")
	for i, n := range f.Nodes {
		n.Spec.External = true
		// With a domain it has its name from the start, but clients are not given it yet.
		a := v1alpha1.Announcement{Hostname: f.Cluster.Status.ExternalEndpoints[i/2].Hostname, EndpointType: v1alpha1.EndpointIP}
		if directed {
			a = v1alpha1.Announcement{Hostname: f.Cluster.Status.ExternalEndpoints[i/2].Hostname, EndpointType: v1alpha1.EndpointHostname, ClientPort: 31000 + int32(i)}
		}
		n.Status.Applied = &v1alpha1.Applied{Announcement: &a}
	}
	return f
}

// P-12
func TestEndpoints(t *testing.T) {
	named := v1alpha1.ExternalAccess{Domain: "valkey.example.com"}
	tls := plugintest.Active("demo", 2, 1)
	tls.Cluster.Spec.TLS = &v1alpha1.TLS{SecretRef: "demo-tls"}
	six := outsideCluster(v1alpha1.ExternalAccess{ServiceType: corev1.ServiceTypeLoadBalancer}, false, "2001:db8::5")
	gateway := named
	gateway.Gateway = &v1alpha1.GatewayAccess{GatewayRef: v1alpha1.GatewayReference{Name: "public"}, BasePort: 31000}
	for golden, tc := range map[string]struct {
		f    *plugintest.Fixture
		args []string
		note string
	}{
		"inside.txt":            {f: plugintest.Active("demo", 2, 1)},
		"inside-tls.txt":        {f: tls},
		"inside-uri.txt":        {f: tls, args: []string{"-o", "uri"}},
		"nodeport-ip.txt":       {f: outsideCluster(v1alpha1.ExternalAccess{}, false)},
		"nodeport-host.txt":     {f: outsideCluster(v1alpha1.ExternalAccess{}, false), args: []string{"--host", "192.0.2.7", "-o", "wide"}},
		"nodeport-directed.txt": {f: outsideCluster(named, true)},
		"nodeport-env.txt":      {f: outsideCluster(named, true), args: []string{"-o", "env"}},
		"inside-env.txt":        {f: outsideCluster(named, true), args: []string{"-o", "env", "--from", "inside"}},
		"directed.json":         {f: outsideCluster(named, true), args: []string{"-o", "json"}},
		"balancer-six.txt":      {f: six},
		"balancer-pending.txt":  {f: outsideCluster(v1alpha1.ExternalAccess{ServiceType: corev1.ServiceTypeLoadBalancer, Domain: "valkey.example.com"}, false), note: "Service demo-shard-0 has no address yet"},
		"gateway.txt":           {f: outsideCluster(gateway, true, "203.0.113.9")},
	} {
		out, errOut, code := plugintest.Run(t, building(tc.f, nil), false, append(tc.args, "demo")...)
		if code != exit.OK || !strings.Contains(errOut, tc.note) || tc.note == "" && errOut != "" {
			t.Errorf("%s: exit %d with %q", golden, code, errOut)
		}
		plugintest.Golden(t, golden, out)
	}
}

func TestProbeConnectsToEveryNode(t *testing.T) {
	f := outsideCluster(v1alpha1.ExternalAccess{Domain: "valkey.example.com"}, true)
	dial := func(_ context.Context, address string) error {
		if strings.HasSuffix(address, ":31003") {
			return errors.New("connection refused")
		}
		return nil
	}
	out, errOut, code := plugintest.Run(t, building(f, dial), false, "demo", "--probe")
	if code != exit.Failed || !strings.Contains(errOut, "1 of 4 nodes were not reached") {
		t.Errorf("exit %d with %q", code, errOut)
	}
	if strings.Count(out, "reachable") != 3 || strings.Count(out, "connection refused") != 1 {
		t.Errorf("output:\n%s", out)
	}
}

func TestWrongUsageOfEndpoints(t *testing.T) {
	for _, args := range [][]string{{}, {"a", "b"}, {"demo", "-o", "xml"}, {"demo", "--from", "inside"}, {"demo", "-o", "env", "--from", "space"}, {"demo", "-o", "uri", "--probe"}} {
		if _, _, code := plugintest.Run(t, building(plugintest.Active("demo", 1, 0), nil), false, args...); code != exit.Usage {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}
