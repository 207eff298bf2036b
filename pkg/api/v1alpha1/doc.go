// Package v1alpha1 holds the kinds of valkey.gomomento.com/v1alpha1: what users
// write (ValkeyImage, ValkeyConfig, ValkeyRole, ValkeyCluster) and what the
// manager writes for itself (ValkeyNode).
//
// All validation of a single object lives here, as schema and CEL markers that
// controller-gen turns into the CRDs of deploy/crd; there is no webhook. Rules
// that need a second object (a missing image, a username that a config already
// binds) are conditions on the cluster.
//
// +kubebuilder:object:generate=true
// +groupName=valkey.gomomento.com
package v1alpha1
