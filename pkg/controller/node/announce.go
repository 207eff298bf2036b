package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/announce"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// announcement is what a node that starts now announces, so that it fits the others.
// With external access it is written down before there is a pod: what the others
// change next depends on it.
func (r *Reconciler) announcement(ctx context.Context, cluster *v1alpha1.ValkeyCluster, node *v1alpha1.ValkeyNode) (announce.Values, error) {
	in := announce.Input{
		TLS: node.Spec.TLSSecret != "", NodeName: node.Name, ShardIndex: node.Spec.ShardIndex,
		PodDNSName: objects.PodDNSName(node.Name, cluster.Name, cluster.Namespace, r.Options.ClusterDomain),
	}
	if node.Spec.External {
		in.External = cluster.Spec.ExternalAccess
	}
	// The condition is there as long as something of external access is.
	left := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionExternalAccessReady) != nil
	if !objects.ExternalEnabled(cluster) && !left {
		return announce.For(in), nil
	}
	siblings, err := r.siblings(ctx, cluster, node)
	if err != nil {
		return announce.Values{}, err
	}
	if in.ExternalPort, err = r.outsidePort(ctx, cluster, node, len(siblings) == 0); err != nil {
		return announce.Values{}, err
	}
	v := announce.Moment(in, siblings)
	return v, r.recordAnnouncement(ctx, node, v.Announcement())
}

// siblings are the announcements of the cluster's other nodes. What a node announced
// that is no longer well counts only while no other tells: it may be from long ago.
func (r *Reconciler) siblings(ctx context.Context, cluster *v1alpha1.ValkeyCluster, node *v1alpha1.ValkeyNode) ([]v1alpha1.Announcement, error) {
	var nodes v1alpha1.ValkeyNodeList
	if err := r.Live.List(ctx, &nodes, client.InNamespace(node.Namespace), client.MatchingLabels{v1alpha1.LabelInstance: node.Spec.ClusterName}); err != nil {
		return nil, fmt.Errorf("read what the other nodes announce: %w", err)
	}
	var well, all []v1alpha1.Announcement
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if n.Name == node.Name || !metav1.IsControlledBy(n, cluster) || n.Status.Applied == nil || n.Status.Applied.Announcement == nil {
			continue
		}
		all = append(all, *n.Status.Applied.Announcement)
		if n.Status.Ready {
			well = append(well, *n.Status.Applied.Announcement)
		}
	}
	if len(well) > 0 {
		return well, nil
	}
	return all, nil
}

// outsidePort is where clients outside will reach the node; 0 while that isn't sure.
// The Services were made before the nodes, and their node ports with them; addresses
// come later, so of a new cluster only node ports are announced from the start.
func (r *Reconciler) outsidePort(ctx context.Context, cluster *v1alpha1.ValkeyCluster, node *v1alpha1.ValkeyNode, first bool) (int32, error) {
	external := cluster.Spec.ExternalAccess
	if !node.Spec.External || !objects.ExternalEnabled(cluster) {
		return 0, nil
	}
	service := &corev1.Service{}
	key := client.ObjectKey{Namespace: node.Namespace, Name: objects.ShardServiceName(cluster.Name, node.Spec.ShardIndex)}
	err := r.Live.Get(ctx, key, service)
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("read the Service of shard %d: %w", node.Spec.ShardIndex, err)
	}
	port, ok := objects.ServicePort(service, node.Spec.NodeIndex)
	if !ok || !metav1.IsControlledBy(service, cluster) || service.Spec.Type != objects.ExternalServiceType(external) {
		return 0, nil
	}
	switch {
	case external.Gateway == nil && service.Spec.Type == corev1.ServiceTypeNodePort:
		return port.NodePort, nil
	case external.Gateway == nil && service.Spec.Type == corev1.ServiceTypeClusterIP:
		return port.Port, nil
	case first:
		return 0, nil
	}
	for _, e := range cluster.Status.ExternalEndpoints {
		if e.ShardIndex == node.Spec.ShardIndex && int(node.Spec.NodeIndex) < len(e.Ports) && len(e.Addresses) > 0 {
			return e.Ports[node.Spec.NodeIndex], nil
		}
	}
	return 0, nil
}

func (r *Reconciler) recordAnnouncement(ctx context.Context, node *v1alpha1.ValkeyNode, a v1alpha1.Announcement) error {
	if node.Status.Applied != nil && node.Status.Applied.Announcement != nil && *node.Status.Applied.Announcement == a {
		return nil
	}
	before := node.DeepCopy()
	if node.Status.Applied == nil {
		node.Status.Applied = &v1alpha1.Applied{}
	}
	node.Status.Applied.Announcement = &a
	if err := r.Client.Status().Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("record what node %s announces: %w", node.Name, err)
	}
	return nil
}
