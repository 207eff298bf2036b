package objects

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/announce"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// ExternalLabelValue is the value of v1alpha1.LabelExternal on a pod that its
// external port leads to.
const ExternalLabelValue = "true"

// ExternalEnabled reports whether a cluster is to be reached from outside.
func ExternalEnabled(cluster *v1alpha1.ValkeyCluster) bool {
	return cluster.Spec.ExternalAccess != nil && cluster.Spec.ExternalAccess.Enabled
}

// ExternalServiceType is the type of the shard Services: behind a Gateway they need
// not be reached from outside themselves.
func ExternalServiceType(external *v1alpha1.ExternalAccess) corev1.ServiceType {
	switch {
	case external.ServiceType != "":
		return external.ServiceType
	case external.Gateway != nil:
		return corev1.ServiceTypeClusterIP
	}
	return corev1.ServiceTypeNodePort
}

// ExternalPort is the number of a node's port in its shard's Service, of whatever
// type that is.
func ExternalPort(nodeIndex int32) int32 { return ClientPort + nodeIndex }

// ShardService exposes one shard: a port for each of so many nodes. Each leads to
// the one pod that has a container port of that name and the label that marks the
// node which stands for its index: while a node is replaced two have the name. Node
// ports are for Kubernetes to choose.
func ShardService(cluster *v1alpha1.ValkeyCluster, shard, nodes int32) *corev1.Service {
	external := cluster.Spec.ExternalAccess
	selector := ShardSelector(cluster.Name, shard)
	selector[v1alpha1.LabelExternal] = ExternalLabelValue
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: clusterMeta(cluster, ShardServiceName(cluster.Name, shard), ShardLabels(cluster.Name, shard)),
		Spec: corev1.ServiceSpec{
			Type:     ExternalServiceType(external),
			Selector: selector,
		},
	}
	service.Annotations = serviceAnnotations(external, shard)
	for index := range nodes {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
			Name: ExternalPortName(index), Protocol: corev1.ProtocolTCP,
			Port: ExternalPort(index), TargetPort: intstr.FromString(ExternalPortName(index)),
		})
	}
	// Kubernetes refuses the policy on a Service that is not reached from outside.
	if service.Spec.Type != corev1.ServiceTypeClusterIP {
		service.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
		if external.ExternalTrafficPolicy != "" {
			service.Spec.ExternalTrafficPolicy = external.ExternalTrafficPolicy
		}
	}
	return service
}

// serviceAnnotations fills in {shard} and {hostname}, and notes which keys are the
// manager's: those that others add stay, those of an older wish go.
func serviceAnnotations(external *v1alpha1.ExternalAccess, shard int32) map[string]string {
	if len(external.ServiceAnnotations) == 0 {
		return nil
	}
	fill := strings.NewReplacer("{shard}", formatIndex(shard), "{hostname}", announce.ShardHostname(external, shard))
	out := map[string]string{v1alpha1.AnnotationKeys: strings.Join(slices.Sorted(maps.Keys(external.ServiceAnnotations)), ",")}
	for key, value := range external.ServiceAnnotations {
		out[key] = fill.Replace(value)
	}
	return out
}

// UpdateShardService brings a live Service to what is wished and reports whether
// that changed anything. What the API server and others have added stays: defaults,
// node ports, labels, annotations, finalizers, the class of a load balancer.
func UpdateShardService(live, want *corev1.Service) bool {
	before := live.DeepCopy()
	for key := range strings.SplitSeq(live.Annotations[v1alpha1.AnnotationKeys], ",") {
		if _, wished := want.Annotations[key]; !wished {
			delete(live.Annotations, key)
		}
	}
	if want.Annotations[v1alpha1.AnnotationKeys] == "" {
		delete(live.Annotations, v1alpha1.AnnotationKeys)
	}
	live.Annotations = overlay(live.Annotations, want.Annotations)
	live.Labels = overlay(live.Labels, want.Labels)
	live.Spec.Selector = maps.Clone(want.Spec.Selector)
	live.Spec.Ports = updatedPorts(live.Spec.Ports, want.Spec)
	if live.Spec.Type != want.Spec.Type {
		live.Spec.Type = want.Spec.Type
		live.Spec.HealthCheckNodePort = 0
	}
	live.Spec.ExternalTrafficPolicy = want.Spec.ExternalTrafficPolicy
	if live.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
		live.Spec.HealthCheckNodePort = 0
	}
	return !sameService(before, live)
}

func overlay(onto, values map[string]string) map[string]string {
	if len(values) > 0 && onto == nil {
		onto = map[string]string{}
	}
	maps.Copy(onto, values)
	return onto
}

// updatedPorts keeps the node port of each port that stays.
func updatedPorts(live []corev1.ServicePort, want corev1.ServiceSpec) []corev1.ServicePort {
	var ports []corev1.ServicePort
	for _, port := range want.Ports {
		for _, had := range live {
			if had.Name == port.Name {
				had.Port, had.Protocol, had.TargetPort = port.Port, port.Protocol, port.TargetPort
				port = had
			}
		}
		if want.Type == corev1.ServiceTypeClusterIP {
			port.NodePort = 0
		}
		ports = append(ports, port)
	}
	return ports
}

func sameService(a, b *corev1.Service) bool {
	return maps.Equal(a.Annotations, b.Annotations) && maps.Equal(a.Labels, b.Labels) &&
		maps.Equal(a.Spec.Selector, b.Spec.Selector) && slices.EqualFunc(a.Spec.Ports, b.Spec.Ports, samePort) &&
		a.Spec.Type == b.Spec.Type && a.Spec.ExternalTrafficPolicy == b.Spec.ExternalTrafficPolicy &&
		a.Spec.HealthCheckNodePort == b.Spec.HealthCheckNodePort
}

func samePort(a, b corev1.ServicePort) bool {
	return a.Name == b.Name && a.Protocol == b.Protocol && a.Port == b.Port && a.TargetPort == b.TargetPort && a.NodePort == b.NodePort
}

// NodePorts are those that Kubernetes has allocated, by node index; 0 for one that
// it has not.
func NodePorts(service *corev1.Service) []int32 {
	var ports []int32
	for index := int32(0); ; index++ {
		port, ok := ServicePort(service, index)
		if !ok {
			return ports
		}
		ports = append(ports, port.NodePort)
	}
}

// ServicePort finds the port of a node index.
func ServicePort(service *corev1.Service, nodeIndex int32) (corev1.ServicePort, bool) {
	for _, port := range service.Spec.Ports {
		if port.Name == ExternalPortName(nodeIndex) {
			return port, true
		}
	}
	return corev1.ServicePort{}, false
}

// LoadBalancerAddresses are the IPs and hostnames of a Service's load balancer.
func LoadBalancerAddresses(service *corev1.Service) []string {
	var addresses []string
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		if ingress.IP != "" {
			addresses = append(addresses, ingress.IP)
		}
		if ingress.Hostname != "" {
			addresses = append(addresses, ingress.Hostname)
		}
	}
	return addresses
}
