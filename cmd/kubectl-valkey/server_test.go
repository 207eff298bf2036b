package main

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// apiServer is a read-only API server that records what it is asked.
type apiServer struct {
	*httptest.Server
	t *testing.T
	// objects by path of their collection.
	objects map[string][]client.Object

	// allow, if it is set, are the only permissions that there are.
	allow func(permission string) bool

	mu       sync.Mutex
	requests []*http.Request
}

func newAPIServer(t *testing.T, objects ...client.Object) *apiServer {
	s := &apiServer{t: t, objects: map[string][]client.Object{}}
	scheme, mapper := kube.NewScheme(), kube.NewMapper()
	for _, o := range objects {
		gvk, err := apiutil.GVKForObject(o, scheme)
		if err != nil {
			t.Fatal(err)
		}
		o.GetObjectKind().SetGroupVersionKind(gvk)
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			t.Fatal(err)
		}
		path := collection(mapping.Resource, o.GetNamespace())
		s.objects[path] = append(s.objects[path], o)
	}
	// Credentials are sent over TLS only.
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that are interrupted
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func collection(r schema.GroupVersionResource, namespace string) string {
	root := "/api/" + r.Version
	if r.Group != "" {
		root = "/apis/" + r.Group + "/" + r.Version
	}
	if namespace != "" {
		root += "/namespaces/" + namespace
	}
	return root + "/" + r.Resource
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Clone(r.Context()))
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if p := permission(r); s.allow != nil && p != "" && !s.allow(p) {
		w.WriteHeader(http.StatusForbidden)
		s.encode(w, &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusForbidden,
			Reason: metav1.StatusReasonForbidden, Message: "User \"jane\" cannot " + p,
		})
		return
	}
	if r.URL.Path == "/version" {
		s.encode(w, map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.2"})
		return
	}
	if r.URL.Query().Get("watch") != "" {
		w.WriteHeader(http.StatusOK)
		if err := http.NewResponseController(w).Flush(); err != nil {
			s.t.Error(err)
		}
		<-r.Context().Done()
		return
	}
	path, name := r.URL.Path, ""
	if _, isCollection := s.objects[path]; !isCollection && !isList(path) {
		i := strings.LastIndex(path, "/")
		path, name = path[:i], path[i+1:]
	}
	if name == "" {
		s.list(w, s.objects[path])
		return
	}
	i := slices.IndexFunc(s.objects[path], func(o client.Object) bool { return o.GetName() == name })
	if i < 0 {
		w.WriteHeader(http.StatusNotFound)
		s.encode(w, &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusNotFound,
			Reason: metav1.StatusReasonNotFound, Message: fmt.Sprintf("%q not found", name), Details: &metav1.StatusDetails{Name: name},
		})
		return
	}
	s.encode(w, s.objects[path][i])
}

// isList is whether a path ends in the plural name of a resource.
func isList(path string) bool {
	last := path[strings.LastIndex(path, "/")+1:]
	return slices.Contains([]string{"valkeyclusters", "valkeynodes", "valkeyconfigs", "valkeyimages", "valkeyroles", "pods", "events", "nodes", "namespaces", "secrets", "services", "configmaps", "networkpolicies", "endpointslices", "deployments", "priorityclasses"}, last)
}

func (s *apiServer) list(w http.ResponseWriter, items []client.Object) {
	list := map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "1"}, "items": items}
	if len(items) > 0 {
		gvk := items[0].GetObjectKind().GroupVersionKind()
		list["kind"], list["apiVersion"] = gvk.Kind+"List", gvk.GroupVersion().String()
	}
	s.encode(w, list)
}

func (s *apiServer) encode(w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.t.Error(err)
	}
}

// asked returns the paths of all requests so far.
func (s *apiServer) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var paths []string
	for _, r := range s.requests {
		paths = append(paths, r.URL.Path)
	}
	return paths
}

// last returns the latest request.
func (s *apiServer) last() *http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == 0 {
		s.t.Fatal("nothing was asked")
	}
	return s.requests[len(s.requests)-1]
}

// config is a kubeconfig with one context, c1, for the server.
func (s *apiServer) config(user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c1
clusters:
- {name: c1, cluster: {server: %q, certificate-authority-data: %s}}
contexts:
- {name: c1, context: {cluster: c1, user: u1, namespace: team-a}}
users:
- name: u1
  user: %s
`, s.URL, s.ca(), user)
}

// ca is the CA bundle for a kubeconfig.
func (s *apiServer) ca() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// inNamespace moves a fixture's objects.
func inNamespace(namespace string, f *plugintest.Fixture) []client.Object {
	objects := f.Objects()
	for _, o := range objects {
		o.SetNamespace(namespace)
		if e, ok := o.(*corev1.Event); ok {
			e.InvolvedObject.Namespace = namespace
		}
	}
	return objects
}
