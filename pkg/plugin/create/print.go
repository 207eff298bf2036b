package create

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// print writes the cluster in the format that was asked for, or the line that
// kubectl writes of what it created.
func (o *Options) print(c *v1alpha1.ValkeyCluster) error {
	format, done := o.output, "created"
	switch o.dryRun {
	case dryRunClient:
		done += " (dry run)"
		if format == output.Text {
			format = output.YAML
		}
	case dryRunServer:
		done += " (server dry run)"
	}
	object, err := manifest(c)
	if err != nil {
		return err
	}
	flags := genericclioptions.NewPrintFlags(done)
	flags.OutputFormat = &format
	printer, err := flags.ToPrinter()
	if err != nil {
		return fmt.Errorf("print the cluster: %w", err)
	}
	return printer.PrintObj(object, o.streams.Out)
}

// manifest is the cluster as a person would write it: without an empty status.
func manifest(c *v1alpha1.ValkeyCluster) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		return nil, fmt.Errorf("print the cluster: %w", err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ValkeyCluster"))
	if status, _, _ := unstructured.NestedMap(content, "status"); len(status) == 0 {
		unstructured.RemoveNestedField(content, "status")
	}
	if created, _, _ := unstructured.NestedString(content, "metadata", "creationTimestamp"); created == "" {
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	}
	return object, nil
}
