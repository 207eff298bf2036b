package install

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/deploy"
)

// imageRepository is the manager's image in the manifests.
const imageRepository = "kubectl-valkey/manager"

// manifests are the objects to apply, in the order of the manifests: namespace and
// CRDs first, the menu last.
func manifests(image string, starter bool) ([]*unstructured.Unstructured, error) {
	objects, err := decode(deploy.Install)
	if err != nil {
		return nil, err
	}
	if image != "" {
		for _, object := range objects {
			if object.GetKind() == "Deployment" {
				if err := setImage(object, image); err != nil {
					return nil, err
				}
			}
		}
	}
	if !starter {
		return objects, nil
	}
	menu, err := decode(deploy.Starter)
	return append(objects, menu...), err
}

func decode(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifests that the plugin carries: %w", err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

func setImage(deployment *unstructured.Unstructured, image string) error {
	containers, found, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if err != nil || !found || len(containers) != 1 {
		return fmt.Errorf("set the image in the manifests that the plugin carries: %d containers found: %w", len(containers), err)
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return errors.New("set the image in the manifests that the plugin carries: the container is no object")
	}
	container["image"] = image
	return unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers")
}
