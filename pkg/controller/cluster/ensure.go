package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
)

// conflictError is an object that has a name the cluster needs and that is not
// the cluster's: it is never overwritten.
type conflictError = reach.ConflictError

// ensure makes the objects that all nodes share. Each is compared field by field
// with what the manager sets, so that defaults of the API server and what others
// add are no reason to write.
func (r *Reconciler) ensure(ctx context.Context, o *observation) error {
	if err := r.ensureService(ctx, o); err != nil {
		return err
	}
	if err := r.ensureAuth(ctx, o); err != nil {
		return err
	}
	if err := r.ensureTLS(ctx, o); err != nil {
		return err
	}
	if err := r.ensureACL(ctx, o); err != nil {
		return err
	}
	return r.ensureBudgets(ctx, o)
}

// existing reads an object of the cluster. It returns false if there is none,
// and an error if the name belongs to somebody else.
func (r *Reconciler) existing(ctx context.Context, o *observation, obj client.Object) (bool, error) {
	var reader client.Reader = r.Client
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		reader = r.Metadata
	}
	err := reader.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %T %s: %w", obj, obj.GetName(), err)
	}
	return true, owned(o.cluster, obj)
}

// errDeleted ends a pass over a cluster that is gone or going.
var errDeleted = errors.New("the cluster was deleted")

// stillThere makes sure, once in a pass, that the cluster was not deleted since the
// cache last heard of it: that its objects are missing is then what was wished.
func (r *Reconciler) stillThere(ctx context.Context, o *observation) error {
	if o.confirmed {
		return nil
	}
	live := &v1alpha1.ValkeyCluster{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(o.cluster), live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read cluster: %w", err)
	}
	if err != nil || live.UID != o.cluster.UID || !live.DeletionTimestamp.IsZero() {
		return errDeleted
	}
	o.confirmed = true
	return nil
}

// gone takes the end of the namespace for that of the cluster.
func gone(err error) error {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return errDeleted
	}
	return err
}

// create makes an object. The cache holds only what carries the manager's label,
// so an object of the same name may be there all the same.
func (r *Reconciler) create(ctx context.Context, o *observation, obj client.Object) error {
	if err := r.stillThere(ctx, o); err != nil {
		return err
	}
	err := gone(r.Client.Create(ctx, obj))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	live, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return err
	}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	return owned(o.cluster, live)
}

// owned returns an error that says whose an object is if it is not the cluster's.
func owned(cluster *v1alpha1.ValkeyCluster, obj client.Object) error {
	return reach.Owned(cluster, obj)
}

func (r *Reconciler) ensureService(ctx context.Context, o *observation) error {
	want := objects.HeadlessService(o.cluster)
	live := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name}}
	found, err := r.existing(ctx, o, live)
	if err != nil {
		return err
	}
	if !found {
		return r.create(ctx, o, want)
	}
	if maps.Equal(live.Spec.Selector, want.Spec.Selector) && samePorts(live.Spec.Ports, want.Spec.Ports) &&
		live.Spec.PublishNotReadyAddresses == want.Spec.PublishNotReadyAddresses {
		return nil
	}
	patch := client.MergeFrom(live.DeepCopy())
	live.Spec.Selector, live.Spec.Ports = want.Spec.Selector, want.Spec.Ports
	live.Spec.PublishNotReadyAddresses = want.Spec.PublishNotReadyAddresses
	return r.Client.Patch(ctx, live, patch)
}

func samePorts(a, b []corev1.ServicePort) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || a[i].Port != b[i].Port || a[i].TargetPort != b[i].TargetPort {
			return false
		}
	}
	return true
}

// ensureAuth generates the two system passwords once. They are never generated
// anew under running servers: those know the old ones only, and would be lost to
// the manager and to each other.
func (r *Reconciler) ensureAuth(ctx context.Context, o *observation) error {
	name := objects.AuthSecretName(o.cluster.Name)
	live := reach.SecretMetadata(o.cluster.Namespace, name)
	found, err := r.existing(ctx, o, live)
	if err != nil || found {
		return err
	}
	if len(o.nodes) > 0 {
		_, err := r.Reach.Passwords(ctx, o.cluster)
		return err
	}
	passwords, err := objects.NewPasswords(rand.Reader)
	if err != nil {
		return fmt.Errorf("generate the system passwords: %w", err)
	}
	return r.create(ctx, o, objects.AuthSecret(o.cluster, passwords))
}

// ensureACL publishes the first users, which pods need to start. A file with a
// problem is never published. From then on the acl controller changes it.
func (r *Reconciler) ensureACL(ctx context.Context, o *observation) error {
	live := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.cluster.Namespace, Name: objects.ACLConfigMapName(o.cluster.Name)}}
	found, err := r.existing(ctx, o, live)
	if err != nil || found || len(o.config.aclProblems) > 0 {
		return err
	}
	passwords, err := r.Reach.Passwords(ctx, o.cluster)
	if err != nil {
		return err
	}
	file, _ := acl.Render(reach.ACLInput(o.config.ACL, o.config.roles, o.cluster, passwords))
	return r.create(ctx, o, objects.ACLConfigMap(o.cluster, file))
}

// ensureBudgets keeps a disruption budget for each shard that has replicas, and
// none else. They are made before the pods they guard.
func (r *Reconciler) ensureBudgets(ctx context.Context, o *observation) error {
	var budgets policyv1.PodDisruptionBudgetList
	if err := r.Client.List(ctx, &budgets, client.InNamespace(o.cluster.Namespace), client.MatchingLabels{
		v1alpha1.LabelInstance: o.cluster.Name, v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
	}); err != nil {
		return fmt.Errorf("list disruption budgets: %w", err)
	}
	have := map[string]*policyv1.PodDisruptionBudget{}
	for i := range budgets.Items {
		if metav1.IsControlledBy(&budgets.Items[i], o.cluster) {
			have[budgets.Items[i].Name] = &budgets.Items[i]
		}
	}
	for shard := range o.target.Shards {
		if o.target.ReplicasPerShard == 0 {
			break
		}
		want := objects.PodDisruptionBudget(o.cluster, shard, o.target.ReplicasPerShard)
		live := have[want.Name]
		delete(have, want.Name)
		if live == nil {
			if err := r.create(ctx, o, want); err != nil {
				return err
			}
		} else if !sameValue(live.Spec.MinAvailable, want.Spec.MinAvailable) {
			patch := client.MergeFrom(live.DeepCopy())
			live.Spec.MinAvailable = want.Spec.MinAvailable
			if err := r.Client.Patch(ctx, live, patch); err != nil {
				return fmt.Errorf("update disruption budget %s: %w", live.Name, err)
			}
		}
	}
	for _, surplus := range have {
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, surplus)); err != nil {
			return fmt.Errorf("delete disruption budget %s: %w", surplus.Name, err)
		}
	}
	return nil
}

func sameValue(a, b *intstr.IntOrString) bool { return a != nil && b != nil && *a == *b }
