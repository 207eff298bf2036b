//go:build e2e

package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// Env is the Kubernetes that the tests run on, with the manager installed.
type Env struct {
	// Root of the repository.
	Root string
	// Kubeconfig leads to the Kubernetes.
	Kubeconfig string
	// Logs is the directory for what people want to read after a failure.
	Logs string
	// Local is whether the Kubernetes is the local one, whose nodes are processes
	// of this machine.
	Local bool
	// Config and clients of a cluster administrator; Client reads without a cache.
	Config    *rest.Config
	Client    client.WithWatch
	Clientset kubernetes.Interface
	// ValkeyImage is what the published menu leads to.
	ValkeyImage clusterctl.Image

	managerImage string
	path         string
	home         string
	audit        *AuditLog
	budget       *budget
	managerLogs  *managerLogs
	record       *Record

	mu        sync.Mutex
	unchecked []string
}

var started struct {
	once   sync.Once
	env    *Env
	err    error
	record bool
}

// parallelTests is how many tests run at once: most of their time they wait. With six,
// two cores are never idle, and kubelets and proxies lag seconds behind.
const parallelTests = "4"

// Main runs the tests of a package, takes away what they left, and exits with
// their result. Record leaves a note for e2e/verdict.
func Main(m *testing.M, record bool) {
	flag.Parse()
	log.SetLogger(zap.New(zap.WriteTo(io.Discard))) // the client's; tests say themselves what is wrong
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", parallelTests); err != nil {
			panic(err) // the flag is the testing package's own
		}
	}
	started.record = record
	code := m.Run()
	if e := started.env; e != nil {
		if err := e.stop(context.Background(), code == 0); err != nil {
			fmt.Fprintf(os.Stderr, "end-to-end tests: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

// Start returns the Kubernetes of this run. The first test of a package to call
// it installs the manager, so that a run of no test installs nothing.
func Start(t testing.TB) *Env {
	t.Helper()
	started.once.Do(func() { started.env, started.err = start(context.Background()) })
	if started.err != nil {
		t.Fatalf("end-to-end tests: %v", started.err)
	}
	return started.env
}

func start(ctx context.Context) (*Env, error) {
	e, err := Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.refuseForeign(ctx); err != nil {
		return nil, err
	}
	if err := e.clean(ctx); err != nil {
		return nil, fmt.Errorf("remove what an earlier run left: %w", err)
	}
	if started.record {
		if err := e.beginRecord(); err != nil {
			return nil, err
		}
	}
	e.managerLogs = followManagerLogs(e)
	if err := e.install(ctx); err != nil {
		return nil, errors.Join(err, e.stop(ctx, false))
	}
	return e, nil
}

// Connect finds the Kubernetes and installs nothing.
func Connect(ctx context.Context) (*Env, error) {
	kubeconfig := os.Getenv("E2E_KUBECONFIG")
	if kubeconfig == "" {
		return nil, errors.New("E2E_KUBECONFIG names no Kubernetes; run make test-e2e, which starts one")
	}
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	e := &Env{Root: root, Kubeconfig: kubeconfig, managerImage: os.Getenv("E2E_MANAGER_IMAGE"), budget: newBudget(maxPods)}
	if e.Logs = os.Getenv("E2E_LOGS"); e.Logs == "" {
		e.Logs = filepath.Join(root, "dist", "logs", "test-e2e")
	}
	if err := os.MkdirAll(e.Logs, 0o755); err != nil {
		return nil, fmt.Errorf("make the directory of logs: %w", err)
	}
	if err := e.connect(); err != nil {
		return nil, err
	}
	if err := e.findLocal(ctx); err != nil {
		return nil, err
	}
	if err := e.findPrograms(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

func (e *Env) connect() error {
	var err error
	if e.Config, err = clientcmd.BuildConfigFromFlags("", e.Kubeconfig); err != nil {
		return fmt.Errorf("read the kubeconfig that E2E_KUBECONFIG names: %w", err)
	}
	// The tests' own requests must not wait for the client's rate limit.
	e.Config.QPS, e.Config.Burst = 500, 1000
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return err
	}
	if e.Client, err = client.NewWithWatch(e.Config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("create a client: %w", err)
	}
	if e.Clientset, err = kubernetes.NewForConfig(e.Config); err != nil {
		return fmt.Errorf("create a client: %w", err)
	}
	return nil
}

// findLocal asks the local Kubernetes for its audit log and its Valkey image, if
// it is the one that the tests run on.
func (e *Env) findLocal(ctx context.Context) error {
	e.Local = e.Kubeconfig == clusterctl.Kubeconfig()
	if !e.Local {
		return nil
	}
	status, err := clusterctl.GetStatus(ctx)
	if err != nil {
		return err
	}
	if status.Health != clusterctl.StateHealthy {
		return fmt.Errorf("the local Kubernetes is %s: %s; run make test-e2e, which starts it", status.Health, strings.Join(status.Problems, "; "))
	}
	e.audit = &AuditLog{path: status.AuditLog}
	for _, image := range status.Images {
		if image.Role == clusterctl.RoleCurrent {
			e.ValkeyImage = image
			return nil
		}
	}
	return errors.New("the local Kubernetes holds no current Valkey image")
}

// findPrograms makes a PATH with the plugin that was built and a kubectl.
func (e *Env) findPrograms(ctx context.Context) error {
	bin := filepath.Join(e.Root, "bin")
	if _, err := os.Stat(filepath.Join(bin, "kubectl-valkey")); err != nil {
		return fmt.Errorf("find the plugin: %w; run make build", err)
	}
	e.path = bin + string(os.PathListSeparator) + os.Getenv("PATH")
	if _, err := exec.LookPath("kubectl"); err != nil {
		assets, err := clusterctl.Assets(ctx)
		if err != nil {
			return fmt.Errorf("find a kubectl: %w", err)
		}
		e.path += string(os.PathListSeparator) + assets
	}
	var err error
	if e.home, err = os.MkdirTemp("", "kubectl-valkey-e2e-"); err != nil {
		return fmt.Errorf("make a home directory: %w", err)
	}
	return nil
}

// CannotCheck notes that something can't be looked at on this Kubernetes. It is
// said where it happens and again at the end of the run.
func (e *Env) CannotCheck(t testing.TB, what string) {
	t.Helper()
	e.CannotCheckWithout(t, what, "the local Kubernetes, and this is another one")
}

// CannotCheckWithout notes that something can't be looked at without what it needs.
func (e *Env) CannotCheckWithout(t testing.TB, what, needs string) {
	t.Helper()
	t.Logf("NOT CHECKED: %s needs %s", what, needs)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unchecked = append(e.unchecked, what)
}

// Full is whether the long form of the tests was asked for, as make test-full does.
func Full() bool { return os.Getenv("E2E_FULL") != "" }

// kept is whether what failed tests made is to stay.
func kept() bool { return os.Getenv("KEEP") != "" }

func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the root of the repository: %w", err)
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("find the root of the repository: no directory above %s holds a go.mod", dir)
		}
	}
}
