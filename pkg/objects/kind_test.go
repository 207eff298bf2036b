package objects_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

func TestKindIsKnownWithAndWithoutTypeMeta(t *testing.T) {
	for want, obj := range map[string]runtime.Object{
		"Secret":     &corev1.Secret{},
		"ConfigMap":  &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}},
		"ValkeyNode": &v1alpha1.ValkeyNode{},
		"Pod":        objects.Pod(node(cluster(), nodeInput()), objects.PodInput{}),
	} {
		if got := objects.KindOf(obj); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
