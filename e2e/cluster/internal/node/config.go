package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
)

// object is a configuration document on its way to YAML or JSON.
type object = map[string]any

// kubeletConfig renders the kubelet's configuration.
func kubeletConfig(n layout.Node) ([]byte, error) {
	return yaml.Marshal(object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		// Kubernetes no longer starts on cgroup v1 unless told to.
		"failCgroupV1": false, "cgroupDriver": "cgroupfs", "cgroupRoot": "/" + n.Group(),
		"containerRuntimeEndpoint": "unix://" + criSocket,
		"authentication": object{
			"anonymous": object{"enabled": false}, "webhook": object{"enabled": true},
			"x509": object{"clientCAFile": confDir + "/ca.crt"},
		},
		"authorization": object{"mode": "Webhook"},
		"tlsCertFile":   confDir + "/kubelet.crt", "tlsPrivateKeyFile": confDir + "/kubelet.key",
		"clusterDomain": layout.ClusterDomain, "clusterDNS": []string{layout.DNSServiceIP}, "resolvConf": "/etc/resolv.conf",
		// The machine may swap and be nearly full; both are fine for tests.
		"failSwapOn": false, "localStorageCapacityIsolation": false,
		"evictionHard":              object{"nodefs.available": "1%", "imagefs.available": "1%", "memory.available": "100Mi"},
		"nodeStatusUpdateFrequency": metav1.Duration{Duration: 4e9},
		// Images come from archives: none may be thrown away as unused.
		"imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
	})
}

// containerdConfig renders containerd's configuration.
func containerdConfig() string {
	return fmt.Sprintf(`version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '%s'
[plugins.'io.containerd.cri.v1.runtime']
  # Without CAP_SYS_RESOURCE runc can't lower a score, and dies saying that it
  # "can't get final child's PID from pipe".
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['/usr/lib/cni']
  conf_dir = '/etc/cni/net.d'
`, layout.PauseImage)
}

// cniConfig renders the pod network: a bridge in the node, addresses from the
// node's part. Pods keep their addresses between nodes (no ipMasq), or Valkey
// and NetworkPolicies would see nodes for pods.
func cniConfig(n layout.Node) ([]byte, error) {
	return json.MarshalIndent(object{
		"cniVersion": "1.0.0", "name": "kubectl-valkey",
		"plugins": []object{
			{
				"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
				"ipam": object{
					// Leases end with the node, as /run does.
					"type": "host-local", "dataDir": "/run/cni/ipam",
					"ranges": [][]object{{{"subnet": n.PodCIDR()}}}, "routes": []object{{"dst": "0.0.0.0/0"}},
				},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	}, "", "  ")
}

// writeConfig puts the files where the node's programs look, from inside.
func writeConfig(n layout.Node) error {
	kubelet, err := kubeletConfig(n)
	if err != nil {
		return fmt.Errorf("render the kubelet's configuration: %w", err)
	}
	cni, err := cniConfig(n)
	if err != nil {
		return fmt.Errorf("render the pod network's configuration: %w", err)
	}
	for path, content := range map[string][]byte{
		confDir + "/kubelet.yaml":                   kubelet,
		"/etc/containerd.toml":                      []byte(containerdConfig()),
		"/etc/cni/net.d/10-kubectl-valkey.conflist": cni,
		"/etc/resolv.conf":                          nil,
		"/etc/hostname":                             []byte(n.Name + "\n"),
		"/etc/hosts":                                []byte("127.0.0.1 localhost " + n.Name + "\n"),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make the directory of %s: %w", path, err)
		}
		// Debian's resolv.conf may be a link to nowhere.
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("replace %s: %w", path, err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}

// daemons are the node's programs in the order of their start; containerd
// comes before them.
func daemons(n layout.Node) [][]string {
	return [][]string{
		{
			"kubelet", "--config=" + confDir + "/kubelet.yaml", "--kubeconfig=" + confDir + "/kubelet.kubeconfig",
			"--hostname-override=" + n.Name, "--node-ip=" + n.IP(),
			"--node-labels=topology.kubernetes.io/zone=" + n.Zone + ",topology.kubernetes.io/region=local",
		},
		{
			"kube-proxy", "--kubeconfig=" + confDir + "/kube-proxy.kubeconfig", "--hostname-override=" + n.Name,
			"--cluster-cidr=" + layout.PodCIDR, "--proxy-mode=iptables",
			// The connection tracker's sizes belong to the whole machine.
			"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0s", "--conntrack-tcp-timeout-close-wait=0s",
		},
	}
}

// policyDaemon enforces NetworkPolicies, and does nothing else of what
// kube-router can do.
func policyDaemon(n layout.Node) []string {
	return []string{
		"kube-router", "--kubeconfig=" + confDir + "/kube-router.kubeconfig", "--hostname-override=" + n.Name,
		"--run-router=false", "--run-service-proxy=false", "--run-firewall=true",
		"--service-cluster-ip-range=" + layout.ServiceCIDR,
	}
}
