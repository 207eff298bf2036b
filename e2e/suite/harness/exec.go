//go:build e2e

package harness

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// execTimeout bounds one command in a pod.
const execTimeout = 10 * time.Minute

// Exec runs a command in a pod's only container, as kubectl exec does, and returns
// its standard output.
func (e *Env) Exec(ctx context.Context, namespace, pod, stdin string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, execTimeout)
	defer cancel()
	return e.LongExec(ctx, namespace, pod, stdin, argv...)
}

// LongExec is Exec for what takes longer than a command usually may.
func (e *Env) LongExec(ctx context.Context, namespace, pod, stdin string, argv ...string) (string, error) {
	request := e.Clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: argv, Stdin: stdin != "", Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(e.Config, "GET", request.URL().String())
	if err != nil {
		return "", fmt.Errorf("exec in pod %s: %w", pod, err)
	}
	var stdout, stderr strings.Builder
	options := remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr}
	if stdin != "" {
		options.Stdin = io.Reader(strings.NewReader(stdin))
	}
	if err := executor.StreamWithContext(ctx, options); err != nil {
		return stdout.String(), fmt.Errorf("%s in pod %s: %w: %s%s", argv[0], pod, err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

// clientPod is the name of the pod that plays an application.
const clientPod = "client"

// StartClient starts a pod beside the cluster's that plays an application. Mount,
// if it is not empty, is a Secret to be found at /secret.
func (s *Space) StartClient(mount string) {
	s.t.Helper()
	s.startClient(s.ClientPod(clientPod, mount))
}

// StartClientOn starts that pod on a Kubernetes node.
func (s *Space) StartClientOn(host string) {
	s.t.Helper()
	pod := s.ClientPod(clientPod, "")
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: host}
	s.startClient(pod)
}

func (s *Space) startClient(pod *corev1.Pod) {
	s.t.Helper()
	s.Create(pod)
	s.Eventually("the client's pod runs", time.Minute, func() error {
		if err := s.Client.Get(s.t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("its phase is %s", pod.Status.Phase)
		}
		return nil
	})
}

// ClientPod returns a pod that does nothing and has valkey-cli.
func (s *Space) ClientPod(name, mount string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Name, Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			AutomountServiceAccountToken:  ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](999), FSGroup: ptr.To[int64](999),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "client", Image: s.ValkeyImage.Ref, ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{"sleep", "86400"},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	if mount != "" {
		pod.Spec.Volumes = []corev1.Volume{{Name: "secret", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: mount},
		}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "secret", MountPath: "/secret", ReadOnly: true}}
	}
	return pod
}

// HasCondition reports whether a condition of a pod is True.
func HasCondition(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

// CLI runs valkey-cli in the client's pod with what it is to read. It gives up after
// a while: for each line it dials the address of a pod that is gone anew, which can
// take minutes.
func (s *Space) CLI(stdin string, args ...string) (string, error) {
	patience := 10*time.Second + time.Duration(strings.Count(stdin, "\n"))*10*time.Millisecond
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	return s.Exec(ctx, s.Name, clientPod, stdin, append([]string{"valkey-cli"}, args...)...)
}
