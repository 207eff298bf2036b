// Package version implements "kubectl valkey version".
package version

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/version"
)

// Options of "kubectl valkey version".
type Options struct {
	access  *kube.Access
	streams genericiooptions.IOStreams

	clientOnly bool
	output     string

	build     version.Info
	client    client.Reader
	discovery discovery.DiscoveryInterface
	// unreachable is why no server can be asked.
	unreachable error
}

// NewCommand returns the command.
func NewCommand(access *kube.Access, streams genericiooptions.IOStreams) *cobra.Command {
	o := &Options{access: access, streams: streams, build: version.Get()}
	cmd := &cobra.Command{
		Use: "version",

		DisableFlagsInUseLine: true,
		Short:                 "Show the versions of the plugin, the manager and the API",
		Long: `Show the version of this plugin, and of what it talks to: the manager's image,
the versions of the API that are installed, and Kubernetes.

Nothing but the plugin's own version needs a permission that every user has not;
what can't be read is said to be unknown, and why.`,
		Example: `  # All versions
  kubectl valkey version

  # Only this plugin's, without asking the API server
  kubectl valkey version --client

  # For a program
  kubectl valkey version -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Usagef("version takes no arguments, got %q", args)
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			if err := o.Complete(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.clientOnly, "client", false, "If true, show only the plugin's own version; no server is asked.")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "Output format. One of: (json, yaml).")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{output.JSON, output.YAML}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// Validate checks the flags.
func (o *Options) Validate() error {
	return exit.UsageError(output.CheckFormat(o.output, output.JSON, output.YAML))
}

// Complete builds the clients, if a server is to be asked.
func (o *Options) Complete() error {
	if o.clientOnly {
		return nil
	}
	if o.client, o.unreachable = o.access.Client(o.streams.ErrOut, false); o.unreachable == nil {
		o.discovery, o.unreachable = o.access.Discovery()
	}
	return nil
}

// Report is what the command prints as JSON or YAML. The form is stable.
type Report struct {
	// Client is the plugin.
	Client version.Info `json:"client"`
	// Server is unset with --client and when the API server can't be reached.
	Server *Server `json:"server,omitempty"`
}

// Server is what the plugin talks to.
type Server struct {
	// Kubernetes is the version of the API server.
	Kubernetes string `json:"kubernetes"`
	// APIVersions of valkey.gomomento.com that are served, the preferred one
	// first; empty when the CRDs are not installed.
	APIVersions []string `json:"apiVersions"`
	// Manager that is installed.
	Manager Manager `json:"manager"`
}

// Manager is the deployment of the manager.
type Manager struct {
	// Image that it runs; empty when that is unknown.
	Image string `json:"image,omitempty"`
	// Ready and wished replicas of the deployment.
	Ready  int32 `json:"ready"`
	Wished int32 `json:"wished"`
	// Error is why the manager's version is not known.
	Error string `json:"error,omitempty"`
}

// Run prints the versions. What the plugin knows of itself is printed even when
// no server answers.
func (o *Options) Run(ctx context.Context) error {
	report := Report{Client: o.build}
	var serverErr error
	if !o.clientOnly {
		report.Server, serverErr = o.server(ctx)
	}
	text := render(report)
	if o.output != output.Text {
		var err error
		if text, err = output.Data(o.output, report); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprint(o.streams.Out, text); err != nil {
		return err
	}
	return serverErr
}

func (o *Options) server(ctx context.Context) (*Server, error) {
	if o.unreachable != nil {
		return nil, o.unreachable
	}
	info, err := o.discovery.ServerVersion()
	if err != nil {
		return nil, kube.Explain(err, kube.Request{Verb: "get", Resource: "version"})
	}
	versions, err := apiVersions(ctx, o.discovery)
	if err != nil {
		return nil, err
	}
	return &Server{Kubernetes: info.GitVersion, APIVersions: versions, Manager: o.manager(ctx)}, ctx.Err()
}

// apiVersions asks for our group alone, which every user may.
func apiVersions(ctx context.Context, d discovery.DiscoveryInterface) ([]string, error) {
	var group metav1.APIGroup
	err := d.RESTClient().Get().AbsPath("/apis", v1alpha1.Group).Do(ctx).Into(&group)
	if apierrors.IsNotFound(err) {
		return []string{}, nil
	}
	if err != nil {
		return nil, kube.Explain(err, kube.Request{Verb: "get", Resource: "the API group " + v1alpha1.Group})
	}
	versions := []string{group.PreferredVersion.Version}
	for _, v := range group.Versions {
		if v.Version != group.PreferredVersion.Version {
			versions = append(versions, v.Version)
		}
	}
	return versions, nil
}

func (o *Options) manager(ctx context.Context) Manager {
	var d appsv1.Deployment
	err := kube.Get(ctx, o.client, client.ObjectKey{Namespace: kube.ManagerNamespace, Name: kube.ManagerDeployment}, &d, "deployments")
	switch {
	case apierrors.IsNotFound(err):
		return Manager{Error: fmt.Sprintf("there is no deployment %s in namespace %s", kube.ManagerDeployment, kube.ManagerNamespace)}
	case err != nil:
		return Manager{Error: err.Error()}
	}
	m := Manager{Ready: d.Status.ReadyReplicas, Wished: 1}
	if d.Spec.Replicas != nil {
		m.Wished = *d.Spec.Replicas
	}
	if containers := d.Spec.Template.Spec.Containers; len(containers) > 0 {
		m.Image = containers[0].Image
	}
	return m
}

// render is the report as text.
func render(r Report) string {
	var b strings.Builder
	line := func(key, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", key+":", output.Clean(fmt.Sprintf(format, args...)))
	}
	line("Plugin", "%s", r.Client.Version)
	line("Commit", "%s", r.Client.Commit)
	if r.Client.Date != "" {
		line("Date", "%s", r.Client.Date)
	}
	line("Go", "%s %s", r.Client.GoVersion, r.Client.Platform)
	if r.Server == nil {
		return b.String()
	}
	switch m := r.Server.Manager; {
	case m.Error != "":
		line("Manager", "unknown: %s", m.Error)
	default:
		line("Manager", "%s (%d/%d ready)", m.Image, m.Ready, m.Wished)
	}
	if len(r.Server.APIVersions) == 0 {
		line("API", "%s is not installed", v1alpha1.Group)
	} else {
		line("API", "%s: %s", v1alpha1.Group, strings.Join(r.Server.APIVersions, ", "))
	}
	line("Kubernetes", "%s", r.Server.Kubernetes)
	return b.String()
}
