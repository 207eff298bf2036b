package objects

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// Directories of a pod. Each is a mount of its own beside the others, never a
// subPath: a mounted file that is one never changes when its source does, and
// users, passwords and certificates are all reloaded from disk.
const (
	DataDir = "/var/lib/valkey"
	ConfDir = "/etc/valkey/conf"
	ACLDir  = "/etc/valkey/acl"
	AuthDir = "/etc/valkey/auth"
	TLSDir  = "/etc/valkey/tls"
)

// volume is one volume and the directory that it is mounted at.
type volume struct {
	name     string
	dir      string
	source   corev1.VolumeSource
	writable bool
}

func volumes(node *v1alpha1.ValkeyNode) []volume {
	cluster := node.Spec.ClusterName
	all := []volume{
		// Data and nodes.conf share one volume of one pod, which never restarts: a
		// server can't come back with its identity and without its data.
		{name: "data", dir: DataDir, writable: true, source: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{name: "conf", dir: ConfDir, source: configMapSource(NodeConfigMapName(node.Name))},
		{name: "acl", dir: ACLDir, source: configMapSource(ACLConfigMapName(cluster))},
		// Only the directive with the replication password: the manager's own
		// password is in no pod.
		{name: "auth", dir: AuthDir, source: secretSource(AuthSecretName(cluster), AuthKeyPrimaryAuth)},
	}
	if node.Spec.TLSSecret != "" {
		all = append(all, volume{name: "tls", dir: TLSDir, source: secretSource(node.Spec.TLSSecret)})
	}
	return all
}

func configMapSource(name string) corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name},
		DefaultMode:          ptr.To(fileMode),
	}}
}

// secretSource mounts the named keys of a Secret, or all of them.
func secretSource(name string, keys ...string) corev1.VolumeSource {
	source := &corev1.SecretVolumeSource{SecretName: name, DefaultMode: ptr.To(fileMode)}
	for _, key := range keys {
		source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: key})
	}
	return corev1.VolumeSource{Secret: source}
}

func podVolumes(all []volume) []corev1.Volume {
	out := make([]corev1.Volume, 0, len(all))
	for _, v := range all {
		out = append(out, corev1.Volume{Name: v.name, VolumeSource: v.source})
	}
	return out
}

func volumeMounts(all []volume) []corev1.VolumeMount {
	out := make([]corev1.VolumeMount, 0, len(all))
	for _, v := range all {
		out = append(out, corev1.VolumeMount{Name: v.name, MountPath: v.dir, ReadOnly: !v.writable})
	}
	return out
}
