package node

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
)

func testNode(t *testing.T) layout.Node {
	t.Helper()
	n, err := layout.NodeNamed("node2")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestKubeletLivesInItsNodesCgroup(t *testing.T) {
	text, err := kubeletConfig(testNode(t))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Kind, CgroupRoot, CgroupDriver string
		FailCgroupV1                   *bool
		NodeStatusUpdateFrequency      string
		ClusterDNS                     []string
		Authentication                 struct{ Anonymous struct{ Enabled bool } }
	}
	if err := yaml.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Kind != "KubeletConfiguration" || got.CgroupRoot != "/kubectl-valkey/node2" || got.CgroupDriver != "cgroupfs" {
		t.Errorf("got %+v", got)
	}
	if got.FailCgroupV1 == nil || *got.FailCgroupV1 {
		t.Error("the kubelet refuses cgroup v1")
	}
	if got.NodeStatusUpdateFrequency != "4s" {
		t.Errorf("the node's status is updated every %q", got.NodeStatusUpdateFrequency)
	}
	if got.Authentication.Anonymous.Enabled {
		t.Error("anonymous users may talk to the kubelet")
	}
}

func TestPodsKeepTheirAddressesBetweenNodes(t *testing.T) {
	text, err := cniConfig(testNode(t))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Plugins []struct {
			Type   string
			IPMasq *bool
			IPAM   struct{ Ranges [][]struct{ Subnet string } }
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	bridge := got.Plugins[0]
	if bridge.Type != "bridge" || bridge.IPMasq == nil || *bridge.IPMasq {
		t.Errorf("the first plug-in is %+v", bridge)
	}
	if subnet := bridge.IPAM.Ranges[0][0].Subnet; subnet != "10.244.2.0/24" {
		t.Errorf("node2 gives its pods addresses of %s", subnet)
	}
}

func TestContainerdUsesTheLoadedSandboxImage(t *testing.T) {
	if got := containerdConfig(); !strings.Contains(got, "sandbox = '"+layout.PauseImage+"'") {
		t.Error(got)
	}
}

func TestFirewallMatchesThePodNetwork(t *testing.T) {
	got, err := firewall()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"@nh,352,16 0x0af4 drop", "ip daddr 10.96.0.0/16 reject"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
}

func TestKubeletGetsItsZone(t *testing.T) {
	kubelet := strings.Join(daemons(testNode(t))[0], " ")
	for _, want := range []string{"--node-labels=topology.kubernetes.io/zone=b,", "--node-ip=172.30.7.12", "--hostname-override=node2"} {
		if !strings.Contains(kubelet, want) {
			t.Errorf("no %q in %s", want, kubelet)
		}
	}
}
