package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// endpoint is the name that applications in any namespace connect to.
func endpoint() string { return objects.HeadlessServiceName(clusterName) + "." + namespace + ".svc" }

// caDir is where the client finds the CA.
const caDir = "/ca"

// connect is the command line of a client: cluster-aware, and with the CA that it
// trusts.
func connect() string {
	return "valkey-cli -c --tls --cacert " + caDir + "/" + certs.CAKey + " -h " + endpoint()
}

// client is a pod that runs script and ends. It passes the restricted Pod
// Security Standard, as an application's should.
func client(image string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: clientPod, Namespace: namespace, Labels: map[string]string{"valkey-client": "true"},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			AutomountServiceAccountToken: ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](999),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "client", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{"sh", "-c", `printf %s "$COMMANDS" | ` + connect()},
				Env:     []corev1.EnvVar{{Name: "COMMANDS", Value: script()}},
				// Of the Secret, an application gets to see the CA alone.
				VolumeMounts: []corev1.VolumeMount{{Name: "ca", MountPath: caDir, ReadOnly: true}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
			Volumes: []corev1.Volume{{Name: "ca", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName: tlsSecret, Items: []corev1.KeyToPath{{Key: certs.CAKey, Path: certs.CAKey}},
			}}}},
		},
	}
}
