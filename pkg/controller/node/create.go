package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// create makes ConfigMap and pod, in this order, and returns the pod. Both have
// names that follow from the node's, so what a killed manager left behind is found
// instead of made twice.
func (r *Reconciler) create(ctx context.Context, cluster *v1alpha1.ValkeyCluster, node *v1alpha1.ValkeyNode) (*corev1.Pod, error) {
	conf, err := r.render(ctx, cluster, node)
	if err != nil {
		return nil, err
	}
	if err := r.ensureConfigMap(ctx, node, conf); err != nil {
		return nil, err
	}
	pod := objects.Pod(node, objects.PodInput{
		Annotations:       cluster.Spec.PodAnnotations,
		DefaultZoneSpread: r.Options.DefaultZoneSpread,
		PlatformIDs:       r.Options.PlatformIDs,
	})
	err = r.Client.Create(ctx, pod)
	switch {
	case apierrors.IsAlreadyExists(err):
		existing := &corev1.Pod{}
		return existing, r.ours(ctx, node, pod, existing)
	case err != nil:
		return nil, fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	log.FromContext(ctx).Info("created pod", "pod", pod.Name, "shard", node.Spec.ShardIndex, "index", node.Spec.NodeIndex)
	return pod, nil
}

// ensureConfigMap writes the node's valkey.conf. An earlier attempt may have left
// an older one; until there is a pod nothing reads it.
func (r *Reconciler) ensureConfigMap(ctx context.Context, node *v1alpha1.ValkeyNode, conf string) error {
	want := objects.NodeConfigMap(node, conf)
	err := r.Client.Create(ctx, want)
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ConfigMap %s: %w", want.Name, err)
	}
	existing := &corev1.ConfigMap{}
	if err := r.ours(ctx, node, want, existing); err != nil {
		return err
	}
	if maps.Equal(existing.Data, want.Data) {
		return nil
	}
	patch := client.MergeFrom(existing.DeepCopy())
	existing.Data = want.Data
	if err := r.Client.Patch(ctx, existing, patch); err != nil {
		return fmt.Errorf("update ConfigMap %s: %w", want.Name, err)
	}
	return nil
}

// errGone is the answer to a request that met an object which has gone meanwhile.
var errGone = errors.New("it has gone")

// ours reads the object that has the name of a wished one. It returns a conflict
// if the object isn't the node's, and errGone if it is no longer in the way.
func (r *Reconciler) ours(ctx context.Context, node *v1alpha1.ValkeyNode, want, existing client.Object) error {
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), existing)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("read %s %s: %w", objects.KindOf(want), want.GetName(), errGone)
	}
	if err != nil {
		return fmt.Errorf("read %s %s: %w", objects.KindOf(want), want.GetName(), err)
	}
	if metav1.IsControlledBy(existing, node) {
		return nil
	}
	owner := metav1.GetControllerOf(existing)
	return &conflict{
		object: objects.KindOf(want) + " " + want.GetName(),
		former: owner != nil && owner.Kind == "ValkeyNode" && owner.Name == node.Name,
	}
}

// render writes the valkey.conf of the moment: the announcement and the names of
// the TLS files may be others for the next node.
func (r *Reconciler) render(ctx context.Context, cluster *v1alpha1.ValkeyCluster, node *v1alpha1.ValkeyNode) (string, error) {
	server := settings.Server{Settings: make(map[string]string, len(node.Spec.ValkeySettings))}
	for key, value := range node.Spec.ValkeySettings {
		server.Settings[key] = string(value)
	}
	var err error
	if server.Announce, err = r.announcement(ctx, cluster, node); err != nil {
		return "", err
	}
	if server.TLS, err = r.tlsFiles(ctx, node); err != nil {
		return "", err
	}
	if server.IPv6, err = r.podsHaveIPv6(ctx, cluster); err != nil {
		return "", err
	}
	return settings.Render(server), nil
}

// tlsFiles are the names in the manager's copy of the TLS Secret; nil without TLS.
func (r *Reconciler) tlsFiles(ctx context.Context, node *v1alpha1.ValkeyNode) (*objects.TLSFiles, error) {
	if node.Spec.TLSSecret == "" {
		return nil, nil
	}
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: node.Namespace, Name: node.Spec.TLSSecret}, secret); err != nil {
		return nil, fmt.Errorf("read the TLS files: %w", err)
	}
	files, err := objects.TLSFilesOf(secret)
	return &files, err
}

// podsHaveIPv6 reads the address families of the cluster from its headless
// Service, to which the API server gives those of Kubernetes: a server that binds
// an IPv6 address where there is none does not start.
func (r *Reconciler) podsHaveIPv6(ctx context.Context, cluster *v1alpha1.ValkeyCluster) (bool, error) {
	service := &corev1.Service{}
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: objects.HeadlessServiceName(cluster.Name)}
	if err := r.Client.Get(ctx, key, service); err != nil {
		return false, fmt.Errorf("read the headless Service: %w", err)
	}
	return slices.Contains(service.Spec.IPFamilies, corev1.IPv6Protocol), nil
}
