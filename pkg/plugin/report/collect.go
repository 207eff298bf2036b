package report

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/version"
)

// file of a bundle.
type file struct {
	name    string
	content []byte
}

// bundle is what a report holds.
type bundle struct {
	files []file
	// missing says what could not be read, and why.
	missing []string
}

// add takes a text in, without its secrets.
func (b *bundle) add(name, text string) {
	b.files = append(b.files, file{name, []byte(redact(text))})
}

func (b *bundle) miss(what string, err error) {
	b.missing = append(b.missing, redact(fmt.Sprintf("%s: %v", what, err)))
}

// addObjects takes objects in as YAML.
func (b *bundle) addObjects(name string, list client.ObjectList) error {
	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("list what goes into %s: %w", name, err)
	}
	var all []string
	for _, item := range items {
		text, err := objectText(item)
		if err != nil {
			return err
		}
		all = append(all, text)
	}
	b.add(name, strings.Join(all, "---\n"))
	return nil
}

// objectText is an object as YAML, without the secrets that are known by their place.
func objectText(o runtime.Object) (string, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("encode %T: %w", o, err)
	}
	var plain any
	if err := json.Unmarshal(data, &plain); err != nil {
		return "", fmt.Errorf("encode %T: %w", o, err)
	}
	text, err := yaml.Marshal(scrub(plain))
	if err != nil {
		return "", fmt.Errorf("encode %T: %w", o, err)
	}
	return string(text), nil
}

// source is one kind of objects of a report.
type source struct {
	file, resource string
	list           client.ObjectList
	options        []client.ListOption
	keep           func(client.Object) bool
}

func (o *Options) sources() []source {
	ns := client.InNamespace(o.namespace)
	ours := client.MatchingLabels{v1alpha1.LabelInstance: o.name}
	return []source{
		{file: "nodes.yaml", resource: "valkeynodes", list: &v1alpha1.ValkeyNodeList{}, options: []client.ListOption{ns}, keep: func(obj client.Object) bool {
			n, ok := obj.(*v1alpha1.ValkeyNode)
			return ok && n.Spec.ClusterName == o.name
		}},
		{file: "pods.yaml", resource: "pods", list: &corev1.PodList{}, options: []client.ListOption{ns, ours}},
		{file: "services.yaml", resource: "services", list: &corev1.ServiceList{}, options: []client.ListOption{ns, ours}},
		{file: "configmaps.yaml", resource: "configmaps", list: &corev1.ConfigMapList{}, options: []client.ListOption{ns, ours}},
		{file: "networkpolicies.yaml", resource: "networkpolicies", list: &networkingv1.NetworkPolicyList{}, options: []client.ListOption{ns}},
		{file: "events.yaml", resource: "events", list: &corev1.EventList{}, options: []client.ListOption{ns}, keep: o.concerns},
		{file: "menu/configs.yaml", resource: "valkeyconfigs", list: &v1alpha1.ValkeyConfigList{}},
		{file: "menu/images.yaml", resource: "valkeyimages", list: &v1alpha1.ValkeyImageList{}},
		{file: "menu/roles.yaml", resource: "valkeyroles", list: &v1alpha1.ValkeyRoleList{}},
		{file: "manager/pods.yaml", resource: "pods", list: &corev1.PodList{}, options: []client.ListOption{client.InNamespace(kube.ManagerNamespace)}},
	}
}

// concerns is whether an event is about the cluster or one of its objects.
func (o *Options) concerns(obj client.Object) bool {
	e, ok := obj.(*corev1.Event)
	return ok && (e.InvolvedObject.Name == o.name || strings.HasPrefix(e.InvolvedObject.Name, o.name+"-"))
}

// collect reads all that may be read. What may not is listed instead.
func (o *Options) collect(ctx context.Context) (*bundle, error) {
	b := &bundle{}
	var cluster v1alpha1.ValkeyCluster
	if err := kube.Get(ctx, o.client, client.ObjectKey{Namespace: o.namespace, Name: o.name}, &cluster, "valkeyclusters"); err != nil {
		return nil, err
	}
	text, err := objectText(&cluster)
	if err != nil {
		return nil, err
	}
	b.add("cluster.yaml", text)
	var pods []corev1.Pod
	for _, s := range o.sources() {
		if err := kube.List(ctx, o.client, s.list, s.resource, s.options...); err != nil {
			b.miss(s.file, err)
			continue
		}
		if err := filter(s.list, s.keep); err != nil {
			return nil, err
		}
		if list, ok := s.list.(*corev1.PodList); ok {
			pods = append(pods, list.Items...)
		}
		if err := b.addObjects(s.file, s.list); err != nil {
			return nil, err
		}
	}
	o.collectSecrets(ctx, b, &cluster)
	o.collectLogs(ctx, b, pods)
	info, err := json.MarshalIndent(version.Get(), "", "    ")
	if err != nil {
		return nil, fmt.Errorf("encode the version: %w", err)
	}
	b.add("plugin.json", string(info)+"\n")
	if len(b.missing) > 0 {
		b.add("missing.txt", strings.Join(b.missing, "\n")+"\n")
	}
	return b, ctx.Err()
}

func filter(list client.ObjectList, keep func(client.Object) bool) error {
	if keep == nil {
		return nil
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("read a list: %w", err)
	}
	items = slices.DeleteFunc(items, func(item runtime.Object) bool {
		obj, ok := item.(client.Object)
		return !ok || !keep(obj)
	})
	return meta.SetList(list, items)
}

// collectSecrets notes which Secrets are there. Their content is never asked for:
// only metadata comes over the line, and of that no annotation is kept.
func (o *Options) collectSecrets(ctx context.Context, b *bundle, c *v1alpha1.ValkeyCluster) {
	names := []string{objects.AuthSecretName(o.name)}
	if c.Spec.TLS != nil {
		names = append(names, c.Spec.TLS.SecretRef, objects.TLSSecretName(o.name))
	}
	var lines strings.Builder
	for _, name := range names {
		secret := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
		if err := kube.Get(ctx, o.client, client.ObjectKey{Namespace: o.namespace, Name: name}, secret, "secrets"); err != nil {
			b.miss("secret "+name, err)
			continue
		}
		fmt.Fprintf(&lines, "%s created %s resourceVersion %s\n", name, secret.CreationTimestamp.UTC().Format("2006-01-02T15:04:05Z"), secret.ResourceVersion)
	}
	b.add("secrets.txt", lines.String())
}

// collectLogs takes the latest lines of every container in.
func (o *Options) collectLogs(ctx context.Context, b *bundle, pods []corev1.Pod) {
	for _, pod := range pods {
		for _, c := range pod.Spec.Containers {
			name := "logs/" + pod.Namespace + "/" + pod.Name + "-" + c.Name + ".log"
			text, err := o.logs(ctx, pod.Namespace, pod.Name, c.Name, o.lines)
			if err != nil {
				b.miss(name, err)
				continue
			}
			b.add(name, string(text))
		}
	}
}
