package objects

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// valkeyID is user and group of the official images; files of the pod's volumes
// get it as their group.
const valkeyID int64 = 999

// fileMode lets the pod's group read a mounted file. 0400 would leave Secrets,
// which root owns, unreadable for any other user.
const fileMode int32 = 0o440

// podSecurity passes the restricted Pod Security Standard. With platformIDs the
// platform chooses user and groups, as OpenShift insists on doing.
func podSecurity(platformIDs bool) *corev1.PodSecurityContext {
	security := &corev1.PodSecurityContext{
		RunAsNonRoot:   ptr.To(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if !platformIDs {
		security.RunAsUser = ptr.To(valkeyID)
		security.RunAsGroup = ptr.To(valkeyID)
		security.FSGroup = ptr.To(valkeyID)
	}
	return security
}

func containerSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		ReadOnlyRootFilesystem:   ptr.To(true),
	}
}
