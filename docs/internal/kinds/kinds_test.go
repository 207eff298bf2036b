package kinds_test

import (
	"strings"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/docs/internal/kinds"
)

const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: valkeyroles.valkey.gomomento.com
spec:
  group: valkey.gomomento.com
  scope: Cluster
  names: {kind: ValkeyRole, plural: valkeyroles, shortNames: [vkr], categories: [valkey]}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        description: "A role\nis a set."
        type: object
        x-kubernetes-validations:
        - {rule: "true", message: the whole object must be fine}
        properties:
          spec:
            description: What it allows.
            type: object
            required: [commands]
            properties:
              commands:
                description: Commands a|b_<c>.
                type: array
                maxItems: 3
                items:
                  type: object
                  x-kubernetes-validations:
                  - {rule: "true", message: name or category}
                  properties:
                    name:
                      description: Name of it.
                      type: string
                      maxLength: 8
                      minLength: 1
                      x-kubernetes-validations:
                      - {rule: "true", message: name must be short}
                    access: {type: string, enum: [allow, deny], default: allow}
              memory: {x-kubernetes-int-or-string: true}
              shards: {type: integer, minimum: 1, maximum: 1000}
              tolerations: {type: array, items: {type: object, properties: {key: {type: string}}}}
              words: {type: object, maxProperties: 4, additionalProperties: {type: string, maxLength: 9}}
`

func TestPageShowsWhatTheAPIServerEnforces(t *testing.T) {
	page, err := kinds.Page([]byte(crd))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| [ValkeyRole](#valkeyrole) | cluster | `vkr` | A role is a set. |",
		"| `commands` | list of object | required; at most 3 entries | Commands a\\|b\\_\\<c>. |",
		"| `commands[].name` | string | 1 to 8 characters; name must be short | Name of it. |",
		"| `commands[].access` | string | `allow` or `deny`; default `allow` |  |",
		"| `memory` | quantity |  |  |",
		"| `shards` | integer | 1 to 1000 |  |",
		"| `tolerations` | list of Kubernetes tolerations |  |  |",
		"| `words` | map of string | at most 4 keys; each: at most 9 characters |  |",
		"- the whole object must be fine\n",
		"- `spec.commands[]`: name or category\n",
		"Columns of `kubectl get`: Age.",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "tolerations[]") {
		t.Error("the page repeats what Kubernetes documents: tolerations[]")
	}
	if t.Failed() {
		t.Log(page)
	}
}

func TestPageRefusesAKindItHasNoPlaceFor(t *testing.T) {
	_, err := kinds.Page([]byte(strings.ReplaceAll(crd, "ValkeyRole", "ValkeyThing")))
	if err == nil || !strings.Contains(err.Error(), "ValkeyThing") {
		t.Errorf("want an error that names the kind, got %v", err)
	}
}
