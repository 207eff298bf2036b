package objects

import "strconv"

// HeadlessServiceName is the Service that gives every pod its DNS name.
func HeadlessServiceName(cluster string) string { return cluster }

// AuthSecretName is the Secret with the passwords of the system users.
func AuthSecretName(cluster string) string { return cluster + "-operator-auth" }

// TLSSecretName is the manager's checked copy of the TLS Secret, which pods mount.
func TLSSecretName(cluster string) string { return cluster + "-operator-tls" }

// ACLConfigMapName is the ConfigMap with users.acl.
func ACLConfigMapName(cluster string) string { return cluster + "-acl" }

// NodeConfigMapName is the ConfigMap with one node's valkey.conf.
func NodeConfigMapName(node string) string { return node + "-config" }

// PDBName is the PodDisruptionBudget of a shard.
func PDBName(cluster string, shard int32) string { return shardName(cluster, shard) }

// ShardServiceName is the Service that exposes a shard outside Kubernetes.
func ShardServiceName(cluster string, shard int32) string { return shardName(cluster, shard) }

func shardName(cluster string, shard int32) string {
	return cluster + "-shard-" + formatIndex(shard)
}

func formatIndex(i int32) string { return strconv.FormatInt(int64(i), 10) }

// ServiceDNSName is the full name of the headless Service. The domain is the
// DNS domain of the Kubernetes cluster.
func ServiceDNSName(cluster, namespace, domain string) string {
	return HeadlessServiceName(cluster) + "." + namespace + ".svc." + domain
}

// PodDNSName is the full name of one pod: the name that TLS clusters announce and
// that the manager verifies.
func PodDNSName(pod, cluster, namespace, domain string) string {
	return pod + "." + ServiceDNSName(cluster, namespace, domain)
}
