package create

import (
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// wish is the cluster as the flags describe it.
type wish struct {
	config           string
	shards, replicas int32
	tlsSecret        string
	aclFile          string
	paused           bool
	podAnnotations   []string
	placement        placementFlags
	external         externalFlags
}

type placementFlags struct {
	zones         []string
	zoneSpread    string
	nodeSelector  []string
	tolerations   []string
	priorityClass string
}

type externalFlags struct {
	enabled         bool
	serviceType     string
	trafficPolicy   string
	annotations     []string
	hostnamePrefix  string
	domain          string
	endpointType    string
	gateway         string
	gatewayBasePort int32
}

// Names of the flags that messages point to.
const (
	flagConfig    = "config"
	flagShards    = "shards"
	flagReplicas  = "replicas"
	flagTLSSecret = "tls-secret"
	flagACLFile   = "acl-file"
	flagExternal  = "external"
)

func (w *wish) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&w.config, flagConfig, "", "Name of the ValkeyConfig to use (required).")
	fs.Int32Var(&w.shards, flagShards, 0, "Number of shards that the keys are spread over, 1 to 1000 (required).")
	fs.Int32Var(&w.replicas, flagReplicas, 0, "Number of replicas of each shard, the primary not counted, 0 to 5 (required).")
	fs.StringVar(&w.tlsSecret, flagTLSSecret, "", "Turn TLS on, with the certificate of this Secret in the cluster's namespace. Whether TLS is on can't be changed later.")
	fs.StringVar(&w.aclFile, flagACLFile, "", "File with the users of the cluster, a YAML list of bindings; - reads it from standard input.")
	fs.BoolVar(&w.paused, "paused", false, "Create the cluster paused: the manager makes nothing until it is resumed.")
	fs.StringArrayVar(&w.podAnnotations, "pod-annotation", nil, "Annotation key=value for every pod. Can be repeated.")

	p := &w.placement
	fs.StringSliceVar(&p.zones, "zones", nil, "Zones that pods may run in, separated by commas. Default: any.")
	fs.StringVar(&p.zoneSpread, "zone-spread", "", "How strictly a shard's nodes are spread over zones: bestEffort or required. Default: the manager's setting.")
	fs.StringArrayVar(&p.nodeSelector, "node-selector", nil, "Label key=value that Kubernetes nodes must have to run pods. Can be repeated.")
	fs.StringArrayVar(&p.tolerations, "toleration", nil, "Taint that pods tolerate, as key=value:Effect, key:Effect, or key alone for any value and effect. Can be repeated.")
	fs.StringVar(&p.priorityClass, "priority-class", "", "PriorityClass of the pods.")

	e := &w.external
	fs.BoolVar(&e.enabled, flagExternal, false, "Let clients outside Kubernetes use the cluster: one Service for each shard, one port for each node.")
	fs.StringVar(&e.serviceType, "service-type", "", "With --external: NodePort, LoadBalancer or ClusterIP. Default: NodePort, or ClusterIP with --gateway.")
	fs.StringVar(&e.trafficPolicy, "external-traffic-policy", "", "With --external: Cluster or Local. Local keeps the client's address.")
	fs.StringArrayVar(&e.annotations, "service-annotation", nil, "With --external: annotation key=value for each shard's Service; {shard} and {hostname} are filled in. Can be repeated.")
	fs.StringVar(&e.hostnamePrefix, "hostname-prefix", "", "With --external: start of the hostnames <prefix>-<shard>.<domain>. Default: shard.")
	fs.StringVar(&e.domain, "domain", "", "With --external: DNS domain of the shards' hostnames.")
	fs.StringVar(&e.endpointType, "preferred-endpoint-type", "", "With --external: what nodes tell clients, ip or hostname. Default: ip.")
	fs.StringVar(&e.gateway, "gateway", "", "With --external: Gateway that TCPRoutes attach to, as name or namespace/name.")
	fs.Int32Var(&e.gatewayBasePort, "gateway-base-port", 0, "With --gateway: first listener port; each node has its own, counting up.")
}

// externalOnly are the flags that mean nothing without --external.
var externalOnly = []string{
	"service-type", "external-traffic-policy", "service-annotation", "hostname-prefix",
	"domain", "preferred-endpoint-type", "gateway", "gateway-base-port",
}

// cluster builds the object. The flags were validated before.
func (w *wish) cluster(namespace, name string, acl []v1alpha1.ACLBinding) (*v1alpha1.ValkeyCluster, error) {
	c := &v1alpha1.ValkeyCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ValkeyCluster"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.ValkeyClusterSpec{
			ConfigRef: w.config, Shards: w.shards, ReplicasPerShard: w.replicas, ACL: acl, Paused: w.paused,
		},
	}
	if w.tlsSecret != "" {
		c.Spec.TLS = &v1alpha1.TLS{SecretRef: w.tlsSecret}
	}
	var err error
	if c.Spec.PodAnnotations, err = pairs[string]("pod-annotation", w.podAnnotations); err != nil {
		return nil, err
	}
	if c.Spec.Placement, err = w.placement.placement(); err != nil {
		return nil, err
	}
	if c.Spec.ExternalAccess, err = w.external.access(); err != nil {
		return nil, err
	}
	return c, nil
}

// placement is nil when no flag asks for any.
func (p *placementFlags) placement() (*v1alpha1.Placement, error) {
	selector, err := pairs[v1alpha1.NodeLabelValue]("node-selector", p.nodeSelector)
	if err != nil {
		return nil, err
	}
	tolerations, err := parseTolerations(p.tolerations)
	if err != nil {
		return nil, err
	}
	if len(p.zones) == 0 && p.zoneSpread == "" && selector == nil && tolerations == nil && p.priorityClass == "" {
		return nil, nil
	}
	return &v1alpha1.Placement{
		Zones: p.zones, ZoneSpread: v1alpha1.ZoneSpread(p.zoneSpread),
		NodeSelector: selector, Tolerations: tolerations, PriorityClassName: p.priorityClass,
	}, nil
}

// access is nil without --external.
func (e *externalFlags) access() (*v1alpha1.ExternalAccess, error) {
	if !e.enabled {
		return nil, nil
	}
	annotations, err := pairs[string]("service-annotation", e.annotations)
	if err != nil {
		return nil, err
	}
	access := &v1alpha1.ExternalAccess{
		Enabled:               true,
		ServiceType:           corev1.ServiceType(e.serviceType),
		ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicy(e.trafficPolicy),
		ServiceAnnotations:    annotations,
		HostnamePrefix:        e.hostnamePrefix,
		Domain:                e.domain,
		PreferredEndpointType: v1alpha1.EndpointType(e.endpointType),
	}
	if e.gateway != "" {
		access.Gateway = &v1alpha1.GatewayAccess{GatewayRef: gatewayReference(e.gateway), BasePort: e.gatewayBasePort}
	}
	return access, nil
}
