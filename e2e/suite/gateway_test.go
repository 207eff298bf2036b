//go:build e2e

package suite

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// gatewayCRDs installs the real kinds that the manager uses, until the test ends.
func gatewayCRDs(t *testing.T, s *harness.Space) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatalf("find the Gateway API's definitions: %v", err)
	}
	for _, kind := range []string{"gateways", "tcproutes"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "config", "crd", "standard", "gateway.networking.k8s.io_"+kind+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			t.Fatal(err)
		}
		s.Publish(crd)
	}
}

// S1-44 to S1-49, S1-126 to S1-128, G-03: the Gateway API is installed while the manager
// runs; each node has one route, to the Service port that leads to it; routes follow
// the base port and go with the gateway.
func TestRoutesOfAGatewayLeadToEachNode(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 2)
	c := s.Cluster("c", 1, 1)
	c.Spec.ExternalAccess = &v1alpha1.ExternalAccess{
		Enabled: true, Gateway: &v1alpha1.GatewayAccess{GatewayRef: v1alpha1.GatewayReference{Name: "public"}, BasePort: 30000},
	}
	s.Create(c)
	s.WaitActive("c")
	s.WaitCondition("c", v1alpha1.ConditionExternalAccessReady, metav1.ConditionFalse, v1alpha1.ReasonGatewayMissing, "install the Gateway API")
	gatewayCRDs(t, s)
	routes := dynamic.NewForConfigOrDie(s.Config).Resource(schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "tcproutes"}).Namespace(s.Name)
	ports := func(want ...int64) {
		t.Helper()
		s.Eventually(fmt.Sprintf("routes are attached to ports %v", want), harness.ActiveWithin, func() error {
			list, err := routes.List(t.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			if len(list.Items) != len(want) {
				return fmt.Errorf("there are %d routes", len(list.Items))
			}
			for i := range list.Items {
				parents, _, err := unstructured.NestedSlice(list.Items[i].Object, "spec", "parentRefs")
				if err != nil || len(parents) != 1 {
					return fmt.Errorf("route %s: %v, %w", list.Items[i].GetName(), parents, err)
				}
				parent, _ := parents[0].(map[string]any)
				if parent["port"] != want[i] {
					return fmt.Errorf("route %s is attached to %v", list.Items[i].GetName(), parent["port"])
				}
			}
			return nil
		})
	}
	ports(30000, 30001)
	s.WaitCondition("c", v1alpha1.ConditionExternalAccessReady, metav1.ConditionFalse, v1alpha1.ReasonExternalPending, "c-shard-0-0", "no Gateway has taken notice")

	service := &corev1.Service{}
	if err := s.Client.Get(t.Context(), s.Key("c-shard-0"), service); err != nil {
		t.Fatal(err)
	}
	if service.Spec.Type != corev1.ServiceTypeClusterIP {
		t.Errorf("the Service behind the Gateway is of type %s", service.Spec.Type)
	}
	s.StartClient("")
	for _, n := range s.Nodes("c") {
		s.Eventually("the port behind the route leads to node "+n.Name, 30*time.Second, func() error {
			out, err := s.CLI("", "-h", "c-shard-0", "-p", fmt.Sprint(6379+n.Spec.NodeIndex), "CLUSTER", "MYID")
			if err != nil || strings.TrimSpace(out) != n.Status.NodeID {
				return fmt.Errorf("%q answers: %w", out, err)
			}
			return nil
		})
	}
	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.ExternalAccess.Gateway.BasePort = 31000 })
	ports(31000, 31001)
	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.ExternalAccess.Gateway = nil })
	ports()
	waitOutside(s, "Services of type NodePort")
}
