package external

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/operation"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// As a kernel wrote them: a listener, a client, the node as a client of another one, a
// client that is gone, and clients over IPv6, one of them with an IPv4 address.
const sockets = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000   999        0 1 1 0000000000000000 100 0 0 10 0
   1: 0501F40A:18EB 0B071EAC:D431 01 00000000:00000000 00:00000000 00000000   999        0 2 1 0000000000000000 20 4 30 10 -1
   2: 0501F40A:9C40 0602F40A:18EB 01 00000000:00000000 00:00000000 00000000   999        0 3 1 0000000000000000 20 4 30 10 -1
   3: 0501F40A:18EB 0B071EAC:D432 06 00000000:00000000 00:00000000 00000000   999        0 4 1 0000000000000000 20 4 30 10 -1
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: B80D0120000000000000000005000000:18EB B80D0120000000000000000009000000:0050 01 00000000:00000000 00:00000000 00000000   999        0 5
   1: 0000000000000000FFFF00000501F40A:18EB 0000000000000000FFFF00000C071EAC:0051 01 00000000:00000000 00:00000000 00000000   999        0 6
`

func TestTheKernelSaysWhoIsConnected(t *testing.T) {
	want := []netip.AddrPort{
		netip.MustParseAddrPort("172.30.7.11:54321"), netip.MustParseAddrPort("[2001:db8::9]:80"), netip.MustParseAddrPort("172.30.7.12:81"),
	}
	if diff := cmp.Diff(want, parseSockets(sockets), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"", "0501F40A", "0501F40A:1", "0501F4:18EB", "x:18EB", "0501F40A0501F40A:18EB"} {
		if got, err := parseSocket(text); err == nil {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}

// line is how the kernel writes a client's connection, from 10.9.0.<host>.
func line(host, port int) string {
	return fmt.Sprintf(" 1: 0501F40A:18EB %02X00090A:%04X 01 0\n", host, port)
}

// asking is a runner that gives these tables, the later ones for later rounds over all
// pods.
func asking(t *testing.T, pods int, tables ...string) kube.Runner {
	asked := make(chan int, 1)
	asked <- 0
	return func(_ context.Context, c kube.Command) error {
		if strings.Join(c.Argv, " ") != "cat /proc/net/tcp" || c.Container != "valkey" {
			t.Errorf("ran %v in %s", c.Argv, c.Container)
		}
		n := <-asked
		asked <- n + 1
		_, err := io.WriteString(c.Stdout, tables[min(n/pods, len(tables)-1)])
		return err
	}
}

func disablingWith(runner kube.Runner) func(operation.Options) *Options {
	return func(o operation.Options) *Options {
		d := disabling(o)
		d.runner = runner
		return d
	}
}

// directed is a cluster whose clients are directed outside, with a manager.
func directed(endpoint v1alpha1.EndpointType) *plugintest.Fixture {
	f := plugintest.Active("demo", 2, 0)
	f.Cluster.Spec.ExternalAccess = &v1alpha1.ExternalAccess{Enabled: true, Domain: "example.com", PreferredEndpointType: endpoint}
	f.Condition(v1alpha1.ConditionExternalAccessReady, true, v1alpha1.ReasonExternalReady, "clients are directed outside")
	for i := range f.Pods {
		f.Pods[i].Status.PodIPs = []corev1.PodIP{{IP: fmt.Sprintf("10.9.0.%d", 101+i)}}
	}
	return f
}

// Clients that are connected since before the first step are listed after it, by
// address; new ones, other nodes and the manager are not.
func TestClientsThatMayHoldTheOldNamesAreListed(t *testing.T) {
	f := directed(v1alpha1.EndpointHostname)
	s := serve(t, f)
	manager := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: kube.ManagerNamespace, Name: "manager", Labels: map[string]string{"app": kube.ManagerDeployment}},
		Status:     corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.9.0.200"}}},
	}
	if err := s.Create(t.Context(), manager); err != nil {
		t.Fatal(err)
	}
	others := line(101, 7) + line(200, 8)
	before := line(1, 1000) + line(1, 1001) + line(2, 1000) + others
	after := line(1, 1000) + line(2, 1001) + line(3, 1000) + others
	_, errOut, code := plugintest.Run(t, building(s, disablingWith(asking(t, 2, before, after))), false, "demo", "--yes")
	if code != exit.OK {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	const want = `Clients that are connected since before and may still hold the outside names (addresses as the nodes see them):
  10.9.0.1: 2 connections to 2 nodes
They learn the addresses inside when they refresh what they know of the cluster, or connect anew.
`
	if !strings.Contains(errOut, want) || strings.Count(errOut, "10.9.0.") != 1 {
		t.Errorf("want\n%s\nin\n%s", want, errOut)
	}
}

func TestThatNoClientHoldsTheOldNamesIsSaid(t *testing.T) {
	s := serve(t, directed(v1alpha1.EndpointHostname))
	_, errOut, code := plugintest.Run(t, building(s, disablingWith(asking(t, 2, line(1, 1000), line(1, 1001)))), false, "demo", "--yes")
	if code != exit.OK || !strings.Contains(errOut, "may still hold the outside names: none.") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}

// Taken up between the steps, the command doesn't know who was there before.
func TestClientsAreListedWhenTheWalkIsTakenUpBetweenTheSteps(t *testing.T) {
	s := serve(t, directed(v1alpha1.EndpointIP))
	_, errOut, code := plugintest.Run(t, building(s, disablingWith(asking(t, 2, line(1, 1000)))), false, "demo", "--yes")
	for _, words := range []string{"those that connected before may still hold", "10.9.0.1: 2 connections to 2 nodes", "The manager's own may be among them"} {
		if code != exit.OK || !strings.Contains(errOut, words) {
			t.Errorf("exit %d, %q is missing in %s", code, words, errOut)
		}
	}
}

// Who may not look into pods turns access off all the same, and is told what is missing.
func TestAccessIsTurnedOffWithoutThePermissionToListClients(t *testing.T) {
	s := serve(t, directed(v1alpha1.EndpointHostname))
	refused := func(context.Context, kube.Command) error {
		return errors.New("user jane may not create pods/exec in namespace team-a")
	}
	_, errOut, code := plugintest.Run(t, building(s, disablingWith(refused)), false, "demo", "--yes")
	if code != exit.OK || !strings.Contains(errOut, "not all can be listed: list the connections of pod demo-") || !strings.Contains(errOut, "may not create pods/exec") || len(s.specs) != 2 {
		t.Errorf("exit %d after %d changes: %s", code, len(s.specs), errOut)
	}
}
