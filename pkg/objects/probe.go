package objects

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	probePeriodSeconds  = 10
	probeTimeoutSeconds = 5
	// probeFailures in a row make a minute of silence, after which a node counts
	// as hung elsewhere too.
	probeFailures = 6
)

// liveness asks only whether the server answers at all. On plaintext clusters
// valkey-cli does: it ends with 0 for every reply, also for -NOAUTH, -LOADING,
// -BUSY or -MASTERDOWN, and with 1 when there is none. It is run without a shell,
// so that the kubelet's timeout ends valkey-cli itself and not just its parent.
//
// On TLS clusters, where valkey-cli would need a trusted name, the kubelet opens a
// TCP connection. A hung server still accepts those, which is why the manager
// watches for silence too.
func liveness(tls bool) *corev1.Probe {
	probe := &corev1.Probe{
		PeriodSeconds:    probePeriodSeconds,
		TimeoutSeconds:   probeTimeoutSeconds,
		FailureThreshold: probeFailures,
	}
	if tls {
		probe.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(ClientPort)}
		return probe
	}
	probe.Exec = &corev1.ExecAction{Command: []string{
		"valkey-cli", "-h", "127.0.0.1", "-p", formatIndex(ClientPort), "PING",
	}}
	return probe
}
