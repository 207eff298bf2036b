//go:build e2e

package harness

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/writer/report"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// Writer is an application that writes all the time, in a pod of its own or outside. See
// e2e/writer.
type Writer struct{ *process }

// writerReady is what it says when it writes.
const writerReady = `{"writing":true}`

// StartWriter starts the writer against a cluster and returns when it writes.
func (s *Space) StartWriter(cluster string, args ...string) *Writer {
	s.t.Helper()
	return s.startWriter(s.ClientPod("writer", ""), cluster, args)
}

// StartMeasuringWriter starts the writer on a Kubernetes node, with so much of its CPU
// for itself that the gaps it finds are not its own waiting.
func (s *Space) StartMeasuringWriter(cluster, node string, cpu resource.Quantity, args ...string) *Writer {
	s.t.Helper()
	pod := s.ClientPod("writer", "")
	pod.Spec.NodeName = node
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: cpu}
	return s.startWriter(pod, cluster, args)
}

// StartTLSWriter starts the writer against a TLS cluster, whose nodes it verifies by
// the ca.crt of a Secret, wherever that is mounted: as the Secret is now.
func (s *Space) StartTLSWriter(cluster, secret string, args ...string) *Writer {
	s.t.Helper()
	// The name of the Service in the namespace alone is in no certificate.
	return s.startWriter(s.ClientPod("writer", secret), s.Names(cluster)[0], append([]string{"--ca", "/secret/ca.crt"}, args...))
}

// StartWriterThatKnows starts the writer in a pod that resolves these names to an address
// of a Kubernetes node, as the user's DNS would. Secret is that of a TLS cluster, or empty.
func (s *Space) StartWriterThatKnows(names []string, cluster, secret string, args ...string) *Writer {
	s.t.Helper()
	pod := s.ClientPod("writer", secret)
	pod.Spec.HostAliases = []corev1.HostAlias{{IP: s.Machine(), Hostnames: names}}
	if secret != "" {
		args = append([]string{"--ca", "/secret/ca.crt"}, args...)
	}
	return s.startWriter(pod, s.Names(cluster)[0], args)
}

func (s *Space) startWriter(pod *corev1.Pod, address string, args []string) *Writer {
	s.t.Helper()
	return &Writer{s.runPod(pod, "./e2e/writer", writerReady, append([]string{"--address", address + ":6379"}, args...)...)}
}

// Ranges are the slots that so many shards would own, as the writer takes them.
func Ranges(shards int) string {
	var out []string
	for _, set := range slots.Split(shards) {
		out = append(out, set.String())
	}
	return strings.Join(out, ",")
}

// Mark begins a window of this name in the report.
func (w *Writer) Mark(name string) {
	w.t.Helper()
	w.tell("mark " + name)
	w.expect(fmt.Sprintf("{%q:%q}", "mark", name))
}

// Stop ends the writing, has every acknowledged key read back and returns the
// report.
func (w *Writer) Stop() *report.Report {
	w.t.Helper()
	return w.StopAt("")
}

// StopAt is Stop that has the keys read back by a new client, which starts at another
// address, as the one that the writer knows is gone.
func (w *Writer) StopAt(address string) *report.Report {
	w.t.Helper()
	out := &report.Report{}
	w.stop(strings.TrimSpace("stop "+address), out)
	if out.Acknowledged == 0 {
		w.t.Error("the writer wrote nothing")
	}
	return out
}

// WantNothingLost fails the test if an acknowledged write is gone, and, if none may
// fail, if an operation did.
func (w *Writer) WantNothingLost(r *report.Report, mayFail bool) {
	w.t.Helper()
	if r.Lost > 0 {
		w.t.Errorf("%d of %d acknowledged keys are lost: %s", r.Lost, r.Acknowledged, strings.Join(r.LostKeys, " "))
	}
	if n, texts := r.Failed(); n > 0 && !mayFail {
		w.t.Errorf("%d operations failed: %s", n, strings.Join(texts, "; "))
	}
}
