package objects

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

const (
	// ContainerName is the name of a pod's only container.
	ContainerName = "valkey"

	podIPVariable = "POD_IP"

	// preStopSeconds leave time to hand a primary over before SIGTERM comes: the
	// manual failover that starts in the first second times out after two.
	preStopSeconds int64 = 3
	// terminationGraceSeconds leave time for the server's own failover on SIGTERM.
	terminationGraceSeconds int64 = 30
)

// PodInput is what a pod takes from elsewhere than its immutable node.
type PodInput struct {
	// Annotations of the pod, from the cluster.
	Annotations map[string]string
	// DefaultZoneSpread holds where the node's placement says nothing.
	DefaultZoneSpread v1alpha1.ZoneSpread
	// PlatformIDs leaves user and group ids to the platform (OpenShift).
	PlatformIDs bool
}

// Pod is the one pod that a node ever gets.
func Pod(node *v1alpha1.ValkeyNode, in PodInput) *corev1.Pod {
	labels := ShardLabels(node.Spec.ClusterName, node.Spec.ShardIndex)
	labels[v1alpha1.LabelGeneration] = Generation(node.Spec)
	meta := nodeMeta(node, node.Name, labels)
	meta.Annotations = maps.Clone(in.Annotations)

	all := volumes(node)
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta,
		Spec: corev1.PodSpec{
			Hostname:  node.Name,
			Subdomain: HeadlessServiceName(node.Spec.ClusterName),
			// A dead server is replaced by a new node. Restarted in place, a primary
			// without data would have its replicas throw theirs away.
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: ptr.To(terminationGraceSeconds),
			AutomountServiceAccountToken:  ptr.To(false),
			// Variables for every Service of the namespace help nobody here.
			EnableServiceLinks: ptr.To(false),
			SecurityContext:    podSecurity(in.PlatformIDs),
			ReadinessGates:     []corev1.PodReadinessGate{{ConditionType: v1alpha1.InSyncGate}},
			Containers:         []corev1.Container{container(node, all)},
			Volumes:            podVolumes(all),
		},
	}
	for _, name := range node.Spec.ImagePullSecrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	place(&pod.Spec, node, in.DefaultZoneSpread)
	return pod
}

func container(node *v1alpha1.ValkeyNode, all []volume) corev1.Container {
	return corev1.Container{
		Name:            ContainerName,
		Image:           node.Spec.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		// The image's entrypoint is bypassed: it wants to change owners as root.
		Command: []string{"valkey-server"},
		Args: []string{
			ConfDir + "/" + ConfigFile,
			// One argument, not two: without an address the server then refuses to
			// start, where it would take an empty second argument for "none".
			"--cluster-announce-ip $(" + podIPVariable + ")",
		},
		Env: []corev1.EnvVar{{
			Name:      podIPVariable,
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}},
		}},
		Ports: []corev1.ContainerPort{
			{Name: clientContainerPort(node), ContainerPort: ClientPort, Protocol: corev1.ProtocolTCP},
			{Name: busPortName, ContainerPort: BusPort, Protocol: corev1.ProtocolTCP},
		},
		Resources:     resources(node),
		VolumeMounts:  volumeMounts(all),
		LivenessProbe: liveness(node.Spec.TLSSecret != ""),
		Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Sleep: &corev1.SleepAction{Seconds: preStopSeconds},
		}},
		// A failed pod's last words go into an event.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          containerSecurity(),
	}
}

// clientContainerPort is named after the node's index with external access: a
// Service port leads to the pods that have a port of its target's name, so each
// leads to one node.
func clientContainerPort(node *v1alpha1.ValkeyNode) string {
	if node.Spec.External {
		return ExternalPortName(node.Spec.NodeIndex)
	}
	return clientPortName
}

// ExternalPortName is the name of the client port of the node with an index, in
// the pod and in the shard's Service.
func ExternalPortName(nodeIndex int32) string { return "vk-n" + formatIndex(nodeIndex) }

// resources are request and limit alike, so that nodes have what they are given
// and no more.
func resources(node *v1alpha1.ValkeyNode) corev1.ResourceRequirements {
	amounts := corev1.ResourceList{}
	if node.Spec.CPU != nil {
		amounts[corev1.ResourceCPU] = node.Spec.CPU.DeepCopy()
	}
	if node.Spec.Memory != nil {
		amounts[corev1.ResourceMemory] = node.Spec.Memory.DeepCopy()
	}
	if len(amounts) == 0 {
		return corev1.ResourceRequirements{}
	}
	return corev1.ResourceRequirements{Requests: amounts, Limits: amounts.DeepCopy()}
}
