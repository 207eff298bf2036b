package main

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// portOff is the address that binds no port.
const portOff = "0"

// options are the manager's settings. Each comes from a flag, else from an
// environment variable (the ConfigMap valkey-operator-config), else from a default.
type options struct {
	namespaces        []string
	clusterDomain     string
	defaultZoneSpread v1alpha1.ZoneSpread
	platformIDs       bool
	leaderElect       bool
	leaseNamespace    string
	metricsAddress    string
	probeAddress      string
	logLevel          zapcore.Level
	showVersion       bool
}

// parse reads flags and environment. An error names the setting, the bad value
// and what is allowed.
func parse(args []string, env func(string) (string, bool)) (options, error) {
	o := options{}
	var namespaces, spread, level string
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	flags.StringVar(&namespaces, "watch-namespaces", setting(env, "WATCH_NAMESPACES", ""), "comma-separated namespaces to watch; empty means all (WATCH_NAMESPACES)")
	flags.StringVar(&o.clusterDomain, "cluster-domain", setting(env, "CLUSTER_DOMAIN", "cluster.local"), "DNS domain of the Kubernetes cluster (CLUSTER_DOMAIN)")
	flags.StringVar(&spread, "default-zone-spread", setting(env, "DEFAULT_ZONE_SPREAD", string(v1alpha1.ZoneSpreadBestEffort)), "zone spread of clusters that set none: bestEffort or required (DEFAULT_ZONE_SPREAD)")
	flags.BoolVar(&o.platformIDs, "platform-ids", false, "leave user and group IDs of pods to the platform, as OpenShift wants it")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "hold a Lease, so that of several managers one acts")
	flags.StringVar(&o.leaseNamespace, "leader-election-namespace", "", "namespace of the Lease; empty means the manager's own")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", portOff, "address to serve metrics at, such as :8080; 0 binds no port")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", portOff, "address to serve health probes at, such as :8081; 0 binds no port")
	flags.StringVar(&level, "log-level", setting(env, "LOG_LEVEL", "info"), "debug, info or error (LOG_LEVEL)")
	flags.BoolVar(&o.showVersion, "version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: the manager takes flags only", flags.Arg(0))
	}
	err := o.check(namespaces, spread, level)
	return o, err
}

func setting(env func(string) (string, bool), name, fallback string) string {
	if value, ok := env(name); ok && strings.TrimSpace(value) != "" {
		return strings.TrimSpace(value)
	}
	return fallback
}

// check validates what is free text.
func (o *options) check(namespaces, spread, level string) error {
	if err := o.checkAddresses(); err != nil {
		return err
	}
	if o.leaseNamespace != "" {
		if problems := validation.IsDNS1123Label(o.leaseNamespace); len(problems) > 0 {
			return fmt.Errorf("--leader-election-namespace: %q is no namespace name: %s", o.leaseNamespace, problems[0])
		}
	}
	for name := range strings.SplitSeq(namespaces, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return fmt.Errorf("WATCH_NAMESPACES (--watch-namespaces): %q is no namespace name: %s", name, problems[0])
		}
		o.namespaces = append(o.namespaces, name)
	}
	if strings.TrimSpace(namespaces) != "" && len(o.namespaces) == 0 {
		return fmt.Errorf("WATCH_NAMESPACES (--watch-namespaces): %q names no namespace; name some, or leave it empty to watch all", namespaces)
	}
	domain, err := settings.ParseClusterDomain(o.clusterDomain)
	if err != nil {
		return fmt.Errorf("CLUSTER_DOMAIN (--cluster-domain): %w", err)
	}
	o.clusterDomain = domain
	allowed := []v1alpha1.ZoneSpread{v1alpha1.ZoneSpreadBestEffort, v1alpha1.ZoneSpreadRequired}
	if o.defaultZoneSpread = v1alpha1.ZoneSpread(spread); !slices.Contains(allowed, o.defaultZoneSpread) {
		return fmt.Errorf("DEFAULT_ZONE_SPREAD (--default-zone-spread): %q is not allowed; use bestEffort or required", spread)
	}
	levels := map[string]zapcore.Level{"debug": zapcore.DebugLevel, "info": zapcore.InfoLevel, "error": zapcore.ErrorLevel}
	l, ok := levels[level]
	if !ok {
		return fmt.Errorf("LOG_LEVEL (--log-level): %q is not allowed; use debug, info or error", level)
	}
	o.logLevel = l
	return nil
}

// checkAddresses reads the addresses to listen at. Libraries take none for a port of
// their own, and say what is wrong with one only when the caches wait already.
func (o *options) checkAddresses() error {
	for flag, address := range map[string]*string{"metrics-bind-address": &o.metricsAddress, "health-probe-bind-address": &o.probeAddress} {
		if *address == "" {
			*address = portOff
		}
		if *address == portOff {
			continue
		}
		_, port, err := net.SplitHostPort(*address)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return fmt.Errorf("--%s: %q is no address to listen at; use one such as :8080, or 0 to bind no port", flag, *address)
		}
	}
	return nil
}

// manager returns what controller-runtime needs. The cache holds only objects
// that the manager made, and of Secrets only metadata, without the release
// histories that Helm keeps in Secrets.
func (o options) manager(scheme *runtime.Scheme) ctrl.Options {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy})}
	opts := ctrl.Options{
		Scheme:                        scheme,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "valkey-operator",
		LeaderElectionNamespace:       o.leaseNamespace,
		LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress:        o.probeAddress,
		Metrics:                       server.Options{BindAddress: o.metricsAddress},
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor: []client.Object{&corev1.Secret{}},
		}},
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Pod{}:                   ours,
				&corev1.Service{}:               ours,
				&corev1.ConfigMap{}:             ours,
				&policyv1.PodDisruptionBudget{}: ours,
				&corev1.Node{}:                  {Transform: withoutImages},
				&corev1.Secret{}: {
					Field:     fields.OneTermNotEqualSelector("type", "helm.sh/release.v1"),
					Transform: withoutAnnotations,
				},
			},
		},
	}
	if len(o.namespaces) > 0 {
		opts.Cache.DefaultNamespaces = map[string]cache.Config{}
		for _, name := range o.namespaces {
			opts.Cache.DefaultNamespaces[name] = cache.Config{}
		}
	}
	return opts
}

// withoutAnnotations drops what client-side apply keeps a Secret's data in.
func withoutAnnotations(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetAnnotations(nil)
		o.SetManagedFields(nil)
	}
	return obj, nil
}

// withoutImages drops the longest part of a Kubernetes node, of which the manager
// needs only whether it is there, at work, and in which zone.
func withoutImages(obj any) (any, error) {
	if node, ok := obj.(*corev1.Node); ok {
		node.SetManagedFields(nil)
		node.Status.Images, node.Status.VolumesInUse, node.Status.VolumesAttached = nil, nil, nil
	}
	return obj, nil
}
