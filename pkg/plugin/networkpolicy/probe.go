package networkpolicy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/netpol"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
)

const (
	probeContainer = "probe"
	// probeLabel tells these pods apart from what they take the place of.
	probeLabel = v1alpha1.Group + "/network-probe"
	// probeLife ends a pod whose command was killed before it could remove it.
	probeLife int64 = 300
	// removeWithin bounds the cleaning up after an interrupt.
	removeWithin = 30 * time.Second
	// lookAgain is the time between two looks at what is waited for.
	lookAgain = 500 * time.Millisecond
)

var probeNeeds = corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
}

// probePod is a pod that does nothing but stay, with the labels of what it takes the
// place of. It runs the cluster's image, which every namespace with a Valkey pod can
// pull and which has valkey-cli; a server that listens on loopback only is the one
// thing in it that surely stays without a shell.
func probePod(like *corev1.Pod, namespace string, labels map[string]string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, GenerateName: "valkey-network-probe-",
			Labels: map[string]string{v1alpha1.LabelManagedBy: netpol.ManagedBy, probeLabel: "true"},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         ptr.To(probeLife),
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			SecurityContext:               like.Spec.SecurityContext,
			Tolerations:                   like.Spec.Tolerations,
			Containers: []corev1.Container{{
				Name: probeContainer, Image: like.Spec.Containers[0].Image,
				Command:         []string{"valkey-server", "--bind", "127.0.0.1", "--save", "", "--logfile", "/dev/null"},
				SecurityContext: like.Spec.Containers[0].SecurityContext,
				// A quota may insist on them.
				Resources: corev1.ResourceRequirements{Requests: probeNeeds, Limits: probeNeeds},
			}},
		},
	}
	if namespace == like.Namespace {
		pod.Spec.ImagePullSecrets = like.Spec.ImagePullSecrets
	}
	maps.Copy(pod.Labels, labels)
	return pod
}

// place is a source of flows: a pod that commands can be run in, or why there is
// none.
type place struct {
	pod       *corev1.Pod
	container string
	// made is whether the pod was made for the test.
	made bool
	err  error
}

// places makes the pods that flows begin in, and returns what removes them.
func (o *Options) places(ctx context.Context, c netpol.Cluster, server *corev1.Pod) (map[netpol.Source]*place, func() error) {
	want := map[netpol.Source]*corev1.Pod{
		netpol.FromStranger:  probePod(server, c.Namespace, nil),
		netpol.FromManager:   probePod(server, c.Manager.Namespace, c.Manager.Labels),
		netpol.FromNeighbour: probePod(server, c.Manager.Namespace, c.ClientLabels()),
	}
	if labels := c.ClientLabels(); labels != nil {
		want[netpol.FromClient] = probePod(server, c.Namespace, labels)
	}
	all := map[netpol.Source]*place{netpol.FromServer: {pod: server, container: server.Spec.Containers[0].Name}}
	for source, pod := range want {
		err := kube.Explain(o.client.Create(ctx, pod), kube.Request{Verb: "create", Resource: "pods", Namespace: pod.Namespace})
		all[source] = &place{pod: pod, container: probeContainer, made: err == nil, err: err}
	}
	for _, p := range all {
		if p.made {
			p.err = o.waitRunning(ctx, p.pod)
		}
	}
	return all, func() error { return o.remove(ctx, all) }
}

func (o *Options) waitRunning(ctx context.Context, pod *corev1.Pod) error {
	for {
		if err := kube.Get(ctx, o.client, client.ObjectKeyFromObject(pod), pod, "pods"); err != nil {
			return err
		}
		switch pod.Status.Phase {
		case corev1.PodRunning:
			return nil
		case corev1.PodFailed, corev1.PodSucceeded:
			return fmt.Errorf("probe pod %s ended: %s %s", pod.Name, pod.Status.Reason, pod.Status.Message)
		}
		if err := o.pause(ctx); err != nil {
			return fmt.Errorf("probe pod %s does not run in time: %w", pod.Name, err)
		}
	}
}

func (o *Options) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-o.clock.After(lookAgain):
		return nil
	}
}

// remove deletes the pods that were made, also after an interrupt.
func (o *Options) remove(ctx context.Context, all map[netpol.Source]*place) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
	defer cancel()
	var errs []error
	for _, p := range all {
		if !p.made {
			continue
		}
		if err := client.IgnoreNotFound(o.client.Delete(ctx, p.pod)); err != nil {
			errs = append(errs, fmt.Errorf("probe pod %s in namespace %s is left, and ends by itself after %ds; delete it: %w", p.pod.Name, p.pod.Namespace, probeLife, err))
		}
	}
	return errors.Join(errs...)
}
