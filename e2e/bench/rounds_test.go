//go:build e2e

package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// blueprint is what the manager made, for the floor to use the same.
type blueprint struct {
	pods []corev1.Pod
	conf *corev1.ConfigMap
	acl  *corev1.ConfigMap
	auth *corev1.Secret
}

// warmUp makes every kubelet start one server, so that no round pays for the first
// use of the image.
func warmUp(b *testing.B, e *harness.Env) {
	b.Helper()
	s := e.Space(b, 0) // rounds follow one another, nothing else runs
	s.Create(s.Cluster("warm", 3, 0))
	s.WaitActive("warm")
	s.Delete(s.Get("warm"))
	waitNoPods(b, s)
}

func measureProduct(b *testing.B, e *harness.Env) (returned, active time.Duration, made blueprint) {
	b.Helper()
	s := e.Space(b, 0)
	w, err := s.Client.Watch(b.Context(), &v1alpha1.ValkeyClusterList{}, client.InNamespace(s.Name))
	if err != nil {
		b.Fatalf("watch the cluster: %v", err)
	}
	defer w.Stop()
	seen := make(chan time.Time, 1)
	go func() { seen <- firstActive(w.ResultChan()) }()

	start := time.Now()
	r := s.Valkey("create", "c", "--config", harness.ConfigName, "--shards", fmt.Sprint(shards), "--replicas", fmt.Sprint(replicas), "--wait")
	returned = time.Since(start)
	if r.Code != 0 {
		b.Fatal(r)
	}
	active = (<-seen).Sub(start)
	// Active means that it is so by every server's word.
	servers, err := s.Servers("c")
	if err == nil {
		err = harness.Formed(servers, shards, replicas)
	}
	if err != nil {
		b.Fatalf("the cluster is Active, but: %v", err)
	}
	made = inspect(b, s)
	s.Delete(s.Get("c"))
	waitNoPods(b, s)
	return returned, active, made
}

func firstActive(events <-chan watch.Event) time.Time {
	for event := range events {
		if c, ok := event.Object.(*v1alpha1.ValkeyCluster); ok && c.Status.State == v1alpha1.StateActive {
			return time.Now()
		}
	}
	return time.Time{}
}

// inspect keeps what the manager made.
func inspect(b *testing.B, s *harness.Space) blueprint {
	b.Helper()
	made := blueprint{conf: &corev1.ConfigMap{}, acl: &corev1.ConfigMap{}, auth: &corev1.Secret{}, pods: s.Pods("c")}
	get := func(name string, obj client.Object) {
		if err := s.Client.Get(b.Context(), client.ObjectKey{Namespace: s.Name, Name: name}, obj); err != nil {
			b.Fatalf("read what the manager made: %v", err)
		}
	}
	get(objects.NodeConfigMapName(made.pods[0].Name), made.conf)
	get(objects.ACLConfigMapName("c"), made.acl)
	get(objects.AuthSecretName("c"), made.auth)
	return made
}

// waitNoPods ends a round: the next one begins when kubelets and container runtimes
// have cleaned up after it, which goes on for a while when the pods are gone.
func waitNoPods(b *testing.B, s *harness.Space) {
	b.Helper()
	s.Eventually("the pods are gone", 2*time.Minute, func() error {
		if n := len(s.AllPods()); n > 0 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	harness.Pause(b.Context(), 3*time.Second)
}

// measureFloor creates the same pods on the same Kubernetes nodes, all at once and
// without a scheduler in between, and lets valkey-cli make the cluster.
func measureFloor(b *testing.B, e *harness.Env, made blueprint) time.Duration {
	b.Helper()
	s := e.Space(b, 0)
	plain := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: s.Name, Name: name} }
	s.Create(&corev1.ConfigMap{ObjectMeta: plain("conf"), Data: made.conf.Data})
	s.Create(&corev1.ConfigMap{ObjectMeta: plain("acl"), Data: made.acl.Data})
	s.Create(&corev1.Secret{ObjectMeta: plain("auth"), Data: made.auth.Data})
	pods := make([]*corev1.Pod, len(made.pods))
	for i := range made.pods {
		pods[i] = bare(made.pods[i], s.Name)
	}
	w, err := s.Client.Watch(b.Context(), &corev1.PodList{}, client.InNamespace(s.Name))
	if err != nil {
		b.Fatalf("watch the pods: %v", err)
	}
	defer w.Stop()

	start := time.Now()
	s.CreateAll(pods)
	addresses, err := allRunning(b.Context(), w.ResultChan(), len(pods))
	if err != nil {
		b.Fatal(err)
	}
	running := time.Since(start)
	out, err := s.Exec(b.Context(), s.Name, pods[0].Name, "", "sh", "-c", formCluster, "sh", fmt.Sprint(replicas), strings.Join(addresses, " "))
	if err != nil || !strings.Contains(out, "All 16384 slots covered") {
		b.Fatalf("valkey-cli --cluster create: %v: %s", err, out)
	}
	created := time.Since(start)
	agreed := waitAgreed(b, s, start)
	b.Logf("all pods run after %.2f s, valkey-cli is done after %.2f s, every server agrees after %.2f s", running.Seconds(), created.Seconds(), agreed.Seconds())
	for _, pod := range pods {
		s.Delete(pod)
	}
	waitNoPods(b, s)
	return agreed
}

// formCluster waits until every server answers, which takes moments after its
// container has started, and runs valkey-cli as its users do.
const formCluster = `replicas=$1
nodes=
for ip in $2; do
  until valkey-cli -h "$ip" PING 2>/dev/null | grep -q PONG; do :; done
  nodes="$nodes $ip:6379"
done
exec valkey-cli --cluster create $nodes --cluster-replicas "$replicas" --cluster-yes`

// bare is a pod of the manager without its owner: same image, arguments, mounts,
// resources and node.
func bare(pod corev1.Pod, namespace string) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.Name, Labels: pod.Labels}, Spec: *pod.Spec.DeepCopy()}
	out.Spec.ReadinessGates = nil
	// Their nodes are known, and what was filled in of these is refused when it is
	// sent.
	out.Spec.TopologySpreadConstraints = nil
	for i := range out.Spec.Volumes {
		switch v := &out.Spec.Volumes[i]; v.Name {
		case "conf", "acl":
			v.ConfigMap.Name = v.Name
		case "auth":
			v.Secret.SecretName = v.Name
		}
	}
	return out
}

// allRunning returns the addresses of the pods once all run.
func allRunning(ctx context.Context, events <-chan watch.Event, n int) ([]string, error) {
	addresses := map[string]string{}
	for len(addresses) < n {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case event, ok := <-events:
			if !ok {
				return nil, errors.New("the watch of the pods ended early")
			}
			pod, isPod := event.Object.(*corev1.Pod)
			if isPod && pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" {
				addresses[pod.Name] = pod.Status.PodIP
			}
		}
	}
	var out []string
	for _, address := range addresses {
		out = append(out, address)
	}
	return out, nil
}

// waitAgreed returns when every server agreed: the moment when the questions were
// put whose answers show it, so that asking costs the floor nothing.
func waitAgreed(b *testing.B, s *harness.Space, start time.Time) time.Duration {
	b.Helper()
	var at time.Duration
	s.Eventually("every server agrees", time.Minute, func() error {
		at = time.Since(start)
		servers, err := s.Servers("c")
		if err != nil {
			return err
		}
		return harness.Agreed(servers, shards, replicas)
	})
	return at
}
