package create

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// checker looks at everything that a cluster refers to, before it is created. A
// problem would keep the cluster from ever becoming Active; a note is worth
// knowing, or says what could not be checked.
type checker struct {
	reader  client.Reader
	cluster *v1alpha1.ValkeyCluster
	// domain is the DNS domain of Kubernetes, empty if the user didn't name it.
	domain string
	now    time.Time

	problems []error
	notes    []string
}

func (c *checker) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Errorf(format, args...))
}

func (c *checker) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// check returns all problems joined. An error of the connection comes alone: each
// further request would only repeat it.
func (c *checker) check(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		c.checkAbsence, c.checkNamespace, c.checkMenu, c.checkTLS, c.checkPriorityClass, c.checkZones, c.checkService,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return errors.Join(c.problems...)
}

// unread notes what may not be read, and lets every other error through.
func (c *checker) unread(what string, err error) error {
	if apierrors.IsForbidden(err) {
		c.note("%s not checked: %v", what, err)
		return nil
	}
	return err
}

// checkAbsence refuses a name that is taken, and says how what is there differs.
func (c *checker) checkAbsence(ctx context.Context) error {
	var there v1alpha1.ValkeyCluster
	err := kube.Get(ctx, c.reader, client.ObjectKeyFromObject(c.cluster), &there, "valkeyclusters")
	switch {
	case err == nil:
		return alreadyExists(&there, c.cluster)
	case apierrors.IsNotFound(err) && !kube.NotInstalled(err):
		return nil
	}
	return c.unread("name", err)
}

// checkNamespace is for a clearer error than the one of the create request, in
// which a namespace is just another object that is not found.
func (c *checker) checkNamespace(ctx context.Context) error {
	err := kube.Get(ctx, c.reader, client.ObjectKey{Name: c.cluster.Namespace}, &corev1.Namespace{}, "namespaces")
	switch {
	case apierrors.IsNotFound(err):
		c.problem("namespace %q doesn't exist: create it with kubectl create namespace %s, or name another with -n", c.cluster.Namespace, c.cluster.Namespace)
		return nil
	case apierrors.IsForbidden(err):
		return nil // the create request will tell
	}
	return err
}

// checkMenu follows the config to its image and looks up the roles of all users.
func (c *checker) checkMenu(ctx context.Context) error {
	catalog, err := inspect.LoadCatalog(ctx, c.reader)
	if err != nil {
		return c.unread("config, image and roles", err)
	}
	resolved, problems := settings.Resolve(catalog, c.cluster.Spec.ConfigRef)
	if len(problems) == 0 {
		problems = settings.Check(resolved)
	}
	for _, p := range problems {
		c.problem("%s", p.Message)
	}
	c.checkUsers(catalog, resolved)
	return c.checkPullSecrets(ctx, resolved)
}

// checkUsers renders the users as the manager will; only its complaints are of
// interest, so any hash does for the manager's own two users.
func (c *checker) checkUsers(catalog settings.Catalog, resolved settings.Resolved) {
	anyHash := []string{acl.Hash("")}
	_, problems := acl.Render(acl.Input{
		Bindings:       slices.Concat(resolved.ACL, c.cluster.Spec.ACL),
		Roles:          catalog.Roles,
		OperatorHashes: anyHash, ReplicationHashes: anyHash,
	})
	for _, p := range problems {
		c.problem("%s", p.Message)
	}
}

// checkPullSecrets notes missing ones: the image may be there without them.
func (c *checker) checkPullSecrets(ctx context.Context, resolved settings.Resolved) error {
	for _, name := range resolved.PullSecrets {
		secret := &metav1.PartialObjectMetadata{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		err := kube.Get(ctx, c.reader, client.ObjectKey{Namespace: c.cluster.Namespace, Name: name}, secret, "secrets")
		switch {
		case apierrors.IsNotFound(err):
			c.note("Secret %q, with which image %q is pulled, doesn't exist in namespace %s: pods may not start", name, resolved.ImageName, c.cluster.Namespace)
		case apierrors.IsForbidden(err):
			return nil // few may read Secrets; kubelets can
		case err != nil:
			return err
		}
	}
	return nil
}

func (c *checker) checkPriorityClass(ctx context.Context) error {
	if c.cluster.Spec.Placement == nil || c.cluster.Spec.Placement.PriorityClassName == "" {
		return nil
	}
	name := c.cluster.Spec.Placement.PriorityClassName
	err := kube.Get(ctx, c.reader, client.ObjectKey{Name: name}, &schedulingv1.PriorityClass{}, "priorityclasses")
	if !apierrors.IsNotFound(err) {
		return c.unread("priority class", err)
	}
	var list schedulingv1.PriorityClassList
	existing := "kubectl get priorityclasses lists them"
	if c.reader.List(ctx, &list) == nil {
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		existing = settings.Existing(names)
	}
	c.problem("priority class %q doesn't exist; %s", name, existing)
	return nil
}

// checkZones compares the zones with those of the Kubernetes nodes.
func (c *checker) checkZones(ctx context.Context) error {
	if c.cluster.Spec.Placement == nil || len(c.cluster.Spec.Placement.Zones) == 0 {
		return nil
	}
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := kube.List(ctx, c.reader, nodes, "nodes"); err != nil {
		return c.unread("zones", err)
	}
	zones := map[string]bool{}
	for i := range nodes.Items {
		if zone := nodes.Items[i].Labels[corev1.LabelTopologyZone]; zone != "" {
			zones[zone] = true
		}
	}
	var names []string
	for zone := range zones {
		names = append(names, zone)
	}
	for _, zone := range c.cluster.Spec.Placement.Zones {
		if !zones[zone] {
			c.problem("no Kubernetes node is in zone %q; %s", zone, settings.Existing(names))
		}
	}
	return nil
}

// checkService looks whether the name that the cluster's Service needs is free.
// The manager never takes over what is not its own.
func (c *checker) checkService(ctx context.Context) error {
	var service corev1.Service
	name := objects.HeadlessServiceName(c.cluster.Name)
	err := kube.Get(ctx, c.reader, client.ObjectKey{Namespace: c.cluster.Namespace, Name: name}, &service, "services")
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return err
	}
	owner := metav1.GetControllerOf(&service)
	if owner != nil && strings.HasPrefix(owner.APIVersion, v1alpha1.Group+"/") && owner.Name == c.cluster.Name {
		c.note("Service %q of a former cluster is still there; the manager waits until it is gone", name)
		return nil
	}
	c.problem("a Service named %q, which isn't a cluster's, exists in namespace %s, and the cluster needs that name: choose another name", name, c.cluster.Namespace)
	return nil
}
