// Command manager is the operator: it reconciles ValkeyClusters. It binds no port
// unless a flag says so.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/controller/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/controller/cluster"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/controller/node"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/controller/tls"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/metrics"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/version"
)

func main() {
	options, err := parse(os.Args[1:], os.LookupEnv)
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(2)
	}
	if options.showVersion {
		fmt.Println(version.Get())
		return
	}
	if err := run(ctrl.SetupSignalHandler(), options); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// logTime is how the log tells the time. A second is long for what happens here.
const logTime = "2006-01-02T15:04:05.000Z07:00"

// run starts the manager and returns when the context ends or the lease is lost.
func run(ctx context.Context, o options) error {
	times := func(z *zap.Options) { z.TimeEncoder = zapcore.TimeEncoderOfLayout(logTime) }
	logger := zap.New(zap.UseDevMode(false), zap.Level(o.logLevel), times)
	log.SetLogger(logger)
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	// The API server's priority and fairness protects it; a limit here would only
	// make many clusters wait for each other.
	config.QPS, config.Burst = 200, 400
	mgr, err := newManager(config, o)
	if err != nil {
		return err
	}
	logger.Info("starting", "version", version.Get().Version, "clusterDomain", o.clusterDomain,
		"defaultZoneSpread", o.defaultZoneSpread, "watchNamespaces", o.namespaces)
	return mgr.Start(ctx)
}

// newManager wires the controllers.
func newManager(config *rest.Config, o options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, o.manager(scheme))
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	dialer := valkey.NewDialer()
	pool := valkey.NewPool(dialer)
	if err := mgr.Add(pool); err != nil {
		return nil, err
	}
	to := &reach.Reach{Metadata: mgr.GetCache(), Live: mgr.GetAPIReader(), Dialer: pool, ClusterDomain: o.clusterDomain}
	var counted *metrics.Metrics
	if o.metricsAddress != portOff {
		counted = metrics.New(mgr.GetCache())
		if err := ctrlmetrics.Registry.Register(counted); err != nil {
			return nil, fmt.Errorf("set up metrics: %w", err)
		}
	}
	if err := cluster.SetupWithManager(mgr, to, counted); err != nil {
		return nil, fmt.Errorf("set up the cluster controller: %w", err)
	}
	if err := tls.SetupWithManager(mgr, to, dialer); err != nil {
		return nil, fmt.Errorf("set up the tls controller: %w", err)
	}
	if err := acl.SetupWithManager(mgr, to); err != nil {
		return nil, fmt.Errorf("set up the acl controller: %w", err)
	}
	if err := node.SetupWithManager(mgr, node.Options{
		ClusterDomain: o.clusterDomain, DefaultZoneSpread: o.defaultZoneSpread, PlatformIDs: o.platformIDs,
	}); err != nil {
		return nil, fmt.Errorf("set up the node controller: %w", err)
	}
	return mgr, nil
}
