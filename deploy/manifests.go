// Package deploy holds the manifests that install the manager and a menu to begin
// with, as the plugin carries them.
package deploy

import _ "embed" // for the manifests

// Install are the manifests of the manager: CRDs, namespace, RBAC, Deployment.
//
//go:embed install.yaml
var Install string

// Starter is a menu to begin with.
//
//go:embed starter.yaml
var Starter string
