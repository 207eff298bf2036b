//go:build e2e && linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
)

// workload is a Valkey server on node1 behind a NodePort, and two clients, one
// of which a policy is going to allow.
const workload = `
apiVersion: v1
kind: Namespace
metadata:
  name: NAMESPACE
  labels: {pod-security.kubernetes.io/enforce: restricted}
---
apiVersion: v1
kind: Pod
metadata: {name: server, namespace: NAMESPACE, labels: {app: server}}
spec:
  nodeName: node1
  terminationGracePeriodSeconds: 0
  securityContext: {runAsUser: 999, runAsGroup: 999, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: valkey
    image: IMAGE
    command: [valkey-server, --protected-mode, "no", --dir, /tmp, --save, ""]
    securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
---
apiVersion: v1
kind: Pod
metadata: {name: allowed, namespace: NAMESPACE, labels: {app: allowed}}
spec:
  nodeName: node2
  terminationGracePeriodSeconds: 0
  securityContext: {runAsUser: 999, runAsGroup: 999, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - {name: client, image: IMAGE, command: [sleep, infinity], securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: denied, namespace: NAMESPACE, labels: {app: denied}}
spec:
  nodeName: node1
  terminationGracePeriodSeconds: 0
  securityContext: {runAsUser: 999, runAsGroup: 999, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - {name: client, image: IMAGE, command: [sleep, infinity], securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}
---
apiVersion: v1
kind: Service
metadata: {name: server, namespace: NAMESPACE}
spec: {type: NodePort, selector: {app: server}, ports: [{port: 6379}]}
---
apiVersion: v1
kind: Service
metadata: {name: nobody, namespace: NAMESPACE}
spec: {selector: {app: nobody}, ports: [{port: 6379}]}
`

const policy = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: server, namespace: NAMESPACE}
spec:
  podSelector: {matchLabels: {app: server}}
  policyTypes: [Ingress]
  ingress: [{from: [{podSelector: {matchLabels: {app: allowed}}}]}]
`

// deploy applies the workload in a namespace of its own and waits for it.
func deploy(t *testing.T) (namespace string) {
	t.Helper()
	mustRun(t, "up")
	// A new name each time: the namespace of a run before may still be going.
	namespace = "test-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	image := imageOf(t, clusterctl.RoleCurrent)
	manifest := strings.NewReplacer("NAMESPACE", namespace, "IMAGE", image.Ref).Replace(workload)
	mustKubectl(t, manifest, "apply", "-f", "-")
	t.Cleanup(func() { mustKubectl(t, "", "delete", "namespace", namespace, "--wait=false") })
	mustKubectl(t, "", "-n", namespace, "wait", "--for=condition=Ready", "pod", "--all", "--timeout=2m")
	return namespace
}

func imageOf(t *testing.T, role string) clusterctl.Image {
	t.Helper()
	out, _ := mustRun(t, "images", "-o", "json")
	var list clusterctl.Images
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	for _, i := range list.Images {
		if i.Role == role {
			return i
		}
	}
	t.Fatalf("no image has the role %s: %v", role, list.Images)
	return clusterctl.Image{}
}

// ping asks a server from inside of a pod; it gives up after 3 seconds with
// exit code 124, as timeout(1) does.
func ping(t *testing.T, namespace, pod, host string) error {
	t.Helper()
	out, err := kubectl(t, "", "-n", namespace, "exec", pod, "--", "timeout", "3", "valkey-cli", "-h", host, "PING")
	if err == nil && out != "PONG" {
		err = fmt.Errorf("the answer is %q", out)
	}
	return err
}

func timesOut(err error) bool { return err != nil && strings.Contains(err.Error(), "exit code 124") }

func TestServiceNamesResolveAndNodePortsAreReachableFromTheHost(t *testing.T) {
	namespace := deploy(t)
	for _, name := range []string{"server", "server." + namespace + ".svc." + layout.ClusterDomain} {
		eventually(t, waitLimit, name+" answers a pod", func() error { return ping(t, namespace, "allowed", name) })
	}
	port := mustKubectl(t, "", "-n", namespace, "get", "service", "server", "-o", "jsonpath={.spec.ports[0].nodePort}")
	for _, n := range layout.Nodes() {
		eventually(t, waitLimit, n.Name+" answers this machine", func() error { return pingFromHost(net.JoinHostPort(n.IP(), port)) })
	}
}

func pingFromHost(address string) error {
	conn, err := net.DialTimeout("tcp", address, 2*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && answer != "+PONG\r\n" {
		err = fmt.Errorf("the answer is %q", answer)
	}
	return err
}

func TestPodNetworkIsNotRoutedFromTheHost(t *testing.T) {
	namespace := deploy(t)
	ip := mustKubectl(t, "", "-n", namespace, "get", "pod", "server", "-o", "jsonpath={.status.podIP}")
	if err := pingFromHost(net.JoinHostPort(ip, "6379")); err == nil {
		t.Errorf("this machine reaches the pod at %s", ip)
	}
}

func TestNetworkPoliciesAreEnforced(t *testing.T) {
	namespace := deploy(t)
	for _, pod := range []string{"allowed", "denied"} {
		eventually(t, waitLimit, pod+" is served without a policy", func() error { return ping(t, namespace, pod, "server") })
	}
	mustKubectl(t, strings.ReplaceAll(policy, "NAMESPACE", namespace), "apply", "-f", "-")
	eventually(t, waitLimit, "the denied pod times out", func() error {
		switch err := ping(t, namespace, "denied", "server"); {
		case err == nil:
			return errors.New("it is served")
		case !timesOut(err):
			return err
		}
		return nil
	})
	if err := ping(t, namespace, "allowed", "server"); err != nil {
		t.Errorf("the allowed pod: %v", err)
	}
	if err := ping(t, namespace, "allowed", "nobody"); err == nil || timesOut(err) {
		t.Errorf("a Service without endpoints doesn't refuse: %v", err)
	}
	mustKubectl(t, "", "-n", namespace, "delete", "networkpolicy", "server")
	eventually(t, waitLimit, "the pod is served again", func() error { return ping(t, namespace, "denied", "server") })
}

func TestAdmissionIsAsStrictAsOnRealClusters(t *testing.T) {
	namespace := deploy(t)
	_, err := kubectl(t, "", "-n", namespace, "run", "root", "--image=any", "--privileged")
	if err == nil || !strings.Contains(err.Error(), "PodSecurity") {
		t.Errorf("a privileged pod in a restricted namespace: %v", err)
	}
	owned := strings.NewReplacer("NAMESPACE", namespace, "UID",
		mustKubectl(t, "", "-n", namespace, "get", "pod", "server", "-o", "jsonpath={.metadata.uid}")).Replace(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: owned
  namespace: NAMESPACE
  ownerReferences: [{apiVersion: v1, kind: Pod, name: server, uid: UID, blockOwnerDeletion: true}]
`)
	mustKubectl(t, "", "-n", namespace, "create", "role", "writer", "--verb=*", "--resource=configmaps")
	mustKubectl(t, "", "-n", namespace, "create", "rolebinding", "writer", "--role=writer", "--user=somebody")
	_, err = kubectl(t, owned, "--as=somebody", "create", "-f", "-")
	if err == nil || !strings.Contains(err.Error(), "cannot set blockOwnerDeletion") {
		t.Errorf("blocking the deletion of an owner without the finalizers verb: %v", err)
	}
}

func TestPortForwardLogsAndExecWork(t *testing.T) {
	namespace := deploy(t)
	if logs := mustKubectl(t, "", "-n", namespace, "logs", "server"); !strings.Contains(logs, "Ready to accept connections") {
		t.Errorf("logs: %s", logs)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(tools, "kubectl"), "--kubeconfig="+layout.Kubeconfig(), "-n", namespace, "port-forward", "pod/server", ":6379")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	}()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	// "Forwarding from 127.0.0.1:34567 -> 6379"
	address, _, _ := strings.Cut(strings.TrimPrefix(line, "Forwarding from "), " ")
	eventually(t, waitLimit, "the forwarded port answers", func() error { return pingFromHost(address) })
}

func TestAuditLogHoldsReadsAndWritesWithTheirUser(t *testing.T) {
	mustRun(t, "up")
	st := status(t)
	mustKubectl(t, "", "create", "configmap", "audited", "--as=auditor", "--as-group=system:masters")
	t.Cleanup(func() { mustKubectl(t, "", "delete", "configmap", "audited") })
	mustKubectl(t, "", "get", "configmap", "audited")
	log, err := os.ReadFile(st.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for line := range bytes.Lines(log) {
		var event struct {
			Stage, Verb      string
			ImpersonatedUser struct{ Username string }
			User             struct{ Username string }
			ObjectRef        struct{ Resource, Name string }
		}
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if event.Stage != "ResponseComplete" {
			t.Fatalf("a line of the stage %s", event.Stage)
		}
		if event.ObjectRef.Resource == "configmaps" && event.ObjectRef.Name == "audited" {
			found[event.Verb] = event.User.Username + "/" + event.ImpersonatedUser.Username
		}
	}
	if found["create"] != "admin/auditor" || found["get"] != "admin/" {
		t.Errorf("found %v", found)
	}
}

func TestAssetsRunOnTheHost(t *testing.T) {
	out, _ := mustRun(t, "assets")
	dir := strings.TrimSpace(out)
	for program, want := range map[string]string{
		"kube-apiserver": "Kubernetes v", "etcd": "etcd Version", "valkey-server": "Valkey server v=9.", "valkey-cli": "valkey-cli 9.",
	} {
		if out, err := exec.Command(filepath.Join(dir, program), "--version").CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v: %s", program, err, out)
		}
	}
	if out, err := exec.Command(filepath.Join(dir, "kubectl"), "version", "--client").CombinedOutput(); err != nil {
		t.Errorf("kubectl: %v: %s", err, out)
	}
}

func TestValkeyImagesDifferAsPromised(t *testing.T) {
	mustRun(t, "up")
	current, rebuild, old := imageOf(t, clusterctl.RoleCurrent), imageOf(t, clusterctl.RoleRebuild), imageOf(t, clusterctl.RoleOld)
	if current.Version != rebuild.Version || current.Ref == rebuild.Ref {
		t.Errorf("current %+v, rebuild %+v", current, rebuild)
	}
	if !strings.HasPrefix(current.Version, "9.") || !strings.HasPrefix(old.Version, "8.") {
		t.Errorf("current %s, old %s", current.Version, old.Version)
	}
	out, _ := mustRun(t, "node", "exec", "node1", "--", "ctr", "-n", "k8s.io", "images", "ls")
	digests := map[string]string{}
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 2 {
			for _, i := range []clusterctl.Image{current, rebuild, old} {
				if strings.HasSuffix(fields[0], "/"+i.Ref) {
					digests[fields[2]] = i.Ref
				}
			}
		}
	}
	if len(digests) != 3 {
		t.Errorf("the digests are %v in\n%s", digests, out)
	}
}

func TestAPodsSocketsCanBeReadFromTheHost(t *testing.T) {
	namespace := deploy(t)
	uid := mustKubectl(t, "", "-n", namespace, "get", "pod", "server", "-o", "jsonpath={.metadata.uid}")
	pids, err := clusterctl.PodProcesses(uid)
	if err != nil {
		t.Fatal(err)
	}
	if len(pids) < 2 {
		t.Fatalf("the sandbox and the server have only the processes %v", pids)
	}
	sockets, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pids[0]))
	if err != nil {
		t.Fatal(err)
	}
	// 0x18EB is 6379; 0A is the state LISTEN.
	if !strings.Contains(string(sockets), ":18EB 00000000:0000 0A") {
		t.Errorf("no listener on 6379 in\n%s", sockets)
	}
}
