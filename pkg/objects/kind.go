package objects

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// KindOf names the kind of an object for a message, also of one that came from a
// typed client, which leaves the kind out.
func KindOf(obj runtime.Object) string {
	if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.Indirect(reflect.ValueOf(obj)).Type().Name()
}
