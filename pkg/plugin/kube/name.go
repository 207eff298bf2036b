package kube

import (
	"fmt"
	"regexp"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

var clusterName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// CheckClusterName applies the rule of the API and says what it is for. It is for
// commands that take the name of a cluster which need not exist.
func CheckClusterName(name string) error {
	switch {
	case len(name) > v1alpha1.MaxClusterNameLength:
		return fmt.Errorf("name %q has %d characters; at most %d are allowed, so that the names of pods and Services made from it are valid",
			name, len(name), v1alpha1.MaxClusterNameLength)
	case !clusterName.MatchString(name):
		return fmt.Errorf("name %q is not allowed: use a lower-case letter, then lower-case letters, digits and '-', ending in a letter or digit, at most %d characters",
			name, v1alpha1.MaxClusterNameLength)
	}
	return nil
}
