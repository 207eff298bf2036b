package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of all kinds.
const Group = "valkey.gomomento.com"

// GroupVersion is the group and version that this package defines.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// AddToScheme registers the kinds of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&ValkeyImage{}, &ValkeyImageList{},
		&ValkeyConfig{}, &ValkeyConfigList{},
		&ValkeyRole{}, &ValkeyRoleList{},
		&ValkeyCluster{}, &ValkeyClusterList{},
		&ValkeyNode{}, &ValkeyNodeList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
