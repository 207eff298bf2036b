// Package kube is how commands reach Kubernetes: kubectl's own flags, a client
// that asks for nothing that a command doesn't need, and sentences for what can
// go wrong on the way.
package kube

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/version"
)

// FieldManager is what the API server records as the writer of fields.
const FieldManager = "kubectl-valkey"

// As kubectl has them; client-go's own default of 5 a second would make a
// command wait for itself.
const (
	requestsPerSecond = 50
	requestBurst      = 300
)

// Access is what kubectl's flags say: which API server, as whom, and in which
// namespace.
type Access struct {
	flags *genericclioptions.ConfigFlags
	// wrap, if set, changes each client configuration; tests record requests
	// with it.
	wrap func(*rest.Config) *rest.Config
}

// NewAccess returns an Access with kubectl's defaults.
func NewAccess() *Access {
	a := &Access{}
	a.flags = genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(c *rest.Config) *rest.Config {
		c.QPS, c.Burst = requestsPerSecond, requestBurst
		c.UserAgent = version.Get().UserAgent(FieldManager)
		if a.wrap != nil {
			return a.wrap(c)
		}
		return c
	})
	return a
}

// Wrap makes f change every client configuration.
func (a *Access) Wrap(f func(*rest.Config) *rest.Config) { a.wrap = f }

// AddFlags binds kubectl's flags.
func (a *Access) AddFlags(fs *pflag.FlagSet) { a.flags.AddFlags(fs) }

// Namespace that was asked for: by flag, else by the context, else default.
func (a *Access) Namespace() (string, error) {
	ns, _, err := a.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", a.explainConfig(err)
	}
	return ns, nil
}

// Kubeconfig returns the merged kubeconfig files, for completion.
func (a *Access) Kubeconfig() clientcmd.ClientConfig { return a.flags.ToRawKubeConfigLoader() }

// Client returns a client for the kinds that commands use. What the API server
// warns of goes to warnings.
func (a *Access) Client(warnings io.Writer, color bool) (client.WithWatch, error) {
	config, err := a.config()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true, Color: color})
	c, err := client.NewWithWatch(config, client.Options{
		Scheme:          NewScheme(),
		Mapper:          NewMapper(),
		FieldOwner:      FieldManager,
		FieldValidation: "Strict",
	})
	if err != nil {
		return nil, fmt.Errorf("set up client: %w", err)
	}
	return c, nil
}

// Discovery returns a client for versions and API groups.
func (a *Access) Discovery() (discovery.DiscoveryInterface, error) {
	config, err := a.config()
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("set up client: %w", err)
	}
	return d, nil
}

func (a *Access) config() (*rest.Config, error) {
	// kubectl then tries localhost:8080, which nobody means.
	if a.unconfigured() {
		return nil, a.errUnconfigured()
	}
	config, err := a.flags.ToRESTConfig()
	if err != nil {
		return nil, a.explainConfig(err)
	}
	return config, nil
}

// errUnconfigured names the files that were looked at: a wrong KUBECONFIG is the
// commonest cause.
func (a *Access) errUnconfigured() error {
	files := strings.Join(a.flags.ToRawKubeConfigLoader().ConfigAccess().GetLoadingPrecedence(), ", ")
	return fmt.Errorf("no cluster is configured in %s: set --kubeconfig or KUBECONFIG to a kubeconfig file", files)
}

// unconfigured is whether nothing says which API server to talk to: no
// kubeconfig, no flag, no environment, and not in a pod.
func (a *Access) unconfigured() bool {
	for _, variable := range []string{"KUBERNETES_MASTER", "KUBERNETES_SERVICE_HOST"} {
		if os.Getenv(variable) != "" {
			return false
		}
	}
	raw, err := a.flags.ToRawKubeConfigLoader().RawConfig()
	return err == nil && len(raw.Clusters) == 0 && len(raw.Contexts) == 0 && *a.flags.APIServer == ""
}

// explainConfig puts what is wrong with a kubeconfig in one sentence.
func (a *Access) explainConfig(err error) error {
	switch {
	case clientcmd.IsEmptyConfig(err):
		return a.errUnconfigured()
	case clientcmd.IsContextNotFound(err):
		return fmt.Errorf("%w; kubectl config get-contexts lists those that exist", err)
	}
	return fmt.Errorf("read kubeconfig: %w", err)
}

// Command returns a kubectl command line that reaches the same place as this
// one: it carries the flags that were given here. line starts after "kubectl".
func (a *Access) Command(line string, namespace string) string {
	words := []string{"kubectl", line}
	add := func(flag, value string) {
		if value != "" {
			words = append(words, flag, value)
		}
	}
	add("-n", namespace)
	add("--context", *a.flags.Context)
	add("--cluster", *a.flags.ClusterName)
	add("--user", *a.flags.AuthInfoName)
	add("--kubeconfig", *a.flags.KubeConfig)
	add("--as", *a.flags.Impersonate)
	return strings.Join(words, " ")
}

// List lists what a cluster or namespace holds. It is client.List with errors
// that a person can act on.
func List(ctx context.Context, c client.Reader, list client.ObjectList, resource string, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	return Explain(c.List(ctx, list, opts...), Request{Verb: "list", Resource: resource, Namespace: o.Namespace})
}

// Get gets one object. It is client.Get with errors that a person can act on;
// apierrors.IsNotFound still tells that it doesn't exist.
func Get(ctx context.Context, c client.Reader, key client.ObjectKey, obj client.Object, resource string) error {
	return Explain(c.Get(ctx, key, obj), Request{Verb: "get", Resource: resource, Namespace: key.Namespace})
}
