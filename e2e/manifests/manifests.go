// Package manifests adapts what users apply, deploy/install.yaml and
// deploy/starter.yaml, to a Kubernetes that has just been built: the image of the
// manager, and the Valkey that its nodes hold.
package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// BuildAnnotation on the manager's pods tells builds with the same tag apart, so
// that applying another one rolls the Deployment.
const BuildAnnotation = v1alpha1.Group + "/build"

// Manager returns the manifests of the installation with another image of the
// manager. Build is any text that differs between builds.
func Manager(install []byte, image, build string) ([]byte, error) {
	found := false
	out, err := edit(install, func(obj *unstructured.Unstructured) error {
		if obj.GetKind() != "Deployment" {
			return nil
		}
		found = true
		containers, _, err := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
		if err != nil {
			return err
		}
		if len(containers) != 1 {
			return fmt.Errorf("the Deployment has %d containers; want the manager's alone", len(containers))
		}
		container, ok := containers[0].(map[string]any)
		if !ok {
			return errors.New("the Deployment's container is no object")
		}
		container["image"] = image
		if err := unstructured.SetNestedSlice(obj.Object, containers, "spec", "template", "spec", "containers"); err != nil {
			return err
		}
		return unstructured.SetNestedField(obj.Object, build, "spec", "template", "metadata", "annotations", BuildAnnotation)
	})
	if err == nil && !found {
		err = errors.New("there is no Deployment in it")
	}
	if err != nil {
		return nil, fmt.Errorf("put the manager's image into the installation: %w", err)
	}
	return out, nil
}

// Menu returns the starter menu with every ValkeyImage leading to one image.
func Menu(starter []byte, ref, version string) ([]byte, error) {
	colon := strings.LastIndex(ref, ":")
	if colon <= strings.LastIndex(ref, "/") {
		return nil, fmt.Errorf("image %q has no tag", ref)
	}
	found := false
	out, err := edit(starter, func(obj *unstructured.Unstructured) error {
		if obj.GetKind() != "ValkeyImage" {
			return nil
		}
		found = true
		for field, value := range map[string]string{"repository": ref[:colon], "tag": ref[colon+1:], "version": version} {
			if err := unstructured.SetNestedField(obj.Object, value, "spec", field); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && !found {
		err = errors.New("there is no ValkeyImage in it")
	}
	if err != nil {
		return nil, fmt.Errorf("put the image into the starter menu: %w", err)
	}
	return out, nil
}

// edit passes every object of a stream of YAML documents through change.
func edit(stream []byte, change func(*unstructured.Unstructured) error) ([]byte, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 4096)
	var out bytes.Buffer
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		} else if err != nil {
			return nil, fmt.Errorf("read a document: %w", err)
		}
		if len(obj.Object) == 0 {
			continue
		}
		if err := change(obj); err != nil {
			return nil, err
		}
		text, err := yaml.Marshal(obj.Object)
		if err != nil {
			return nil, fmt.Errorf("write %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
}
