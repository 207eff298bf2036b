package objects

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// Ports of every node, inside Kubernetes and on the cluster bus, with and
// without TLS.
const (
	ClientPort int32 = 6379
	BusPort    int32 = 16379

	clientPortName = "valkey"
	busPortName    = "valkey-bus"
)

// HeadlessService exists for DNS. It publishes pods that aren't ready, because
// nodes have to find each other before any of them can be. Its target ports are
// numbers, because a client port's name depends on external access.
func HeadlessService(cluster *v1alpha1.ValkeyCluster) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: clusterMeta(cluster, HeadlessServiceName(cluster.Name), Labels(cluster.Name)),
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			PublishNotReadyAddresses: true,
			Selector:                 PodSelector(cluster.Name),
			Ports: []corev1.ServicePort{
				servicePort(clientPortName, ClientPort),
				servicePort(busPortName, BusPort),
			},
		},
	}
}

func servicePort(name string, port int32) corev1.ServicePort {
	return corev1.ServicePort{
		Name:       name,
		Protocol:   corev1.ProtocolTCP,
		Port:       port,
		TargetPort: intstr.FromInt32(port),
	}
}
