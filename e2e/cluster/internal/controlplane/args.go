// Package controlplane runs etcd and the control plane as plain processes on
// the host, beside the nodes.
package controlplane

import (
	"path/filepath"
	"strconv"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
)

// Names are the processes of the control plane in the order of their start.
func Names() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
}

// auditPolicy logs every request once, when its answer is complete: tests
// assert from it that nothing writes while nothing changes.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules:
- level: Metadata
`

func pki(file string) string        { return filepath.Join(layout.PKIDir(), file) }
func kubeconfig(name string) string { return filepath.Join(layout.ConfDir(), name+".kubeconfig") }
func policyFile() string            { return filepath.Join(layout.ConfDir(), "audit-policy.yaml") }

// args are a process's arguments.
func args(name string) []string {
	switch name {
	case "etcd":
		return []string{
			"--data-dir=" + layout.EtcdDir(),
			"--listen-client-urls=" + layout.EtcdURL, "--advertise-client-urls=" + layout.EtcdURL,
			"--listen-peer-urls=" + layout.EtcdPeerURL, "--initial-advertise-peer-urls=" + layout.EtcdPeerURL,
			"--initial-cluster=default=" + layout.EtcdPeerURL,
			// The data is as short-lived as the cluster.
			"--unsafe-no-fsync", "--log-level=warn",
		}
	case "kube-apiserver":
		return apiServerArgs()
	case "kube-controller-manager":
		return append(clientArgs(name),
			"--use-service-account-credentials", "--service-account-private-key-file="+pki("sa.key"),
			"--root-ca-file="+pki("ca.crt"),
			"--cluster-signing-cert-file="+pki("ca.crt"), "--cluster-signing-key-file="+pki("ca.key"))
	default:
		return clientArgs(name)
	}
}

func apiServerArgs() []string {
	return []string{
		"--etcd-servers=" + layout.EtcdURL,
		"--advertise-address=" + layout.HostIP, "--bind-address=" + layout.HostIP, "--secure-port=" + strconv.Itoa(layout.APIPort),
		"--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"), "--client-ca-file=" + pki("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + pki("sa.pub"), "--service-account-signing-key-file=" + pki("sa.key"),
		"--service-cluster-ip-range=" + layout.ServiceCIDR,
		"--authorization-mode=Node,RBAC",
		// OwnerReferencesPermissionEnforcement is on as on OpenShift: an
		// operator without the finalizers verb fails here and not at a user's.
		"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
		"--kubelet-client-certificate=" + pki("kubelet-client.crt"), "--kubelet-client-key=" + pki("kubelet-client.key"),
		"--kubelet-certificate-authority=" + pki("ca.crt"),
		// Nothing resolves the nodes' names.
		"--kubelet-preferred-address-types=InternalIP",
		"--allow-privileged",
		"--audit-policy-file=" + policyFile(), "--audit-log-path=" + layout.AuditLog(),
		"--audit-log-maxsize=2000", "--audit-log-maxbackup=1",
	}
}

// clientArgs are common to those that only talk to the API server.
func clientArgs(name string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig(name), "--authentication-kubeconfig=" + kubeconfig(name), "--authorization-kubeconfig=" + kubeconfig(name),
		"--leader-elect=false", "--bind-address=" + layout.HostIP,
	}
}
