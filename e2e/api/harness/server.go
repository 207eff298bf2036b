//go:build api

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// Options of a server.
type Options struct {
	// CRDs installs those of deploy/crd.
	CRDs bool
	// Install applies deploy/install.yaml, CRDs included, so that the manager's
	// identity exists with just what it is granted.
	Install bool
	// Audit writes a log of every request, read by Server.AuditEvents.
	Audit bool
}

// Server is a running kube-apiserver with its etcd.
type Server struct {
	// Config of a cluster administrator.
	Config *rest.Config
	// Client of a cluster administrator; it reads without a cache.
	Client client.Client

	env        *envtest.Environment
	kubectl    string
	dir        string
	kubeconfig string
}

// Main starts a server, stores it, runs the package's tests and exits with their
// result. What is missing to start is printed with what to do.
func Main(m *testing.M, server **Server, o Options) {
	// envtest puts its processes into groups of their own: an interrupt of the test
	// doesn't reach them.
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	s, err := Start(o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "API tier: %v\n", err)
		os.Exit(1)
	}
	go func() {
		<-interrupted
		_ = s.Stop()
		os.Exit(130)
	}()
	*server = s
	code := m.Run()
	if err := s.Stop(); err != nil {
		fmt.Fprintf(os.Stderr, "API tier: stop the API server: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

// Start starts a server. The caller stops it.
func Start(o Options) (*Server, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	assets, err := assetsDir(root)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kubectl-valkey-api-")
	if err != nil {
		return nil, fmt.Errorf("create a directory for the API server: %w", err)
	}
	s := &Server{
		dir:        dir,
		kubectl:    filepath.Join(assets, "kubectl"),
		kubeconfig: filepath.Join(dir, "kubeconfig"),
	}
	if err := s.start(root, assets, o); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) start(root, assets string, o Options) error {
	// Never the ambient cluster, whatever the environment says.
	s.env = &envtest.Environment{UseExistingCluster: ptr.To(false)}
	if o.CRDs {
		s.env.CRDDirectoryPaths = []string{filepath.Join(root, "deploy", "crd")}
		s.env.ErrorIfCRDPathMissing = true
		s.env.CRDInstallOptions.Scheme = Scheme()
	}
	api := s.env.ControlPlane.GetAPIServer()
	api.Path = filepath.Join(assets, "kube-apiserver")
	s.env.ControlPlane.Etcd = &envtest.Etcd{Path: filepath.Join(assets, "etcd")}
	s.env.ControlPlane.KubectlPath = s.kubectl
	// OpenShift turns this plugin on; most other clusters don't.
	api.Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	if o.Audit {
		if err := s.configureAudit(); err != nil {
			return err
		}
	}
	config, err := s.env.Start()
	if err != nil {
		return fmt.Errorf("start kube-apiserver and etcd of %s: %w", assets, err)
	}
	// The tests' own requests must not wait for the client's rate limit.
	config.QPS, config.Burst = 1000, 2000
	s.Config = config
	if s.Client, err = client.New(config, client.Options{Scheme: Scheme()}); err != nil {
		return fmt.Errorf("create a client for the API server: %w", err)
	}
	if err := os.WriteFile(s.kubeconfig, s.env.KubeConfig, 0o600); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	if o.Install {
		return s.install(root)
	}
	return nil
}

func (s *Server) install(root string) error {
	for _, args := range [][]string{
		{"apply", "--server-side", "-f", filepath.Join(root, "deploy", "install.yaml")},
		{"wait", "--for=condition=Established", "crd", "--all"},
	} {
		if r := s.run(context.Background(), args...); r.Err != nil {
			return fmt.Errorf("install: kubectl %s: %w: %s", strings.Join(args, " "), r.Err, r.Stderr)
		}
	}
	return nil
}

// Stop stops the server and deletes its files.
func (s *Server) Stop() error {
	var err error
	if s.env != nil {
		err = s.env.Stop()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// KubeconfigPath of a cluster administrator.
func (s *Server) KubeconfigPath() string { return s.kubeconfig }

// Scheme knows the kinds of Kubernetes, of this project and of CRDs.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, corev1.AddToScheme, v1alpha1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // two kinds of one name: a fault of the program
		}
	}
	return s
}
