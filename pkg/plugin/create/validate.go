package create

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
)

// Limits of the API, so that a wrong command line is refused before anything is
// asked.
const (
	maxShards   = 1000
	maxReplicas = 5
	maxPort     = 65535
)

// check finds everything that is wrong with the flags by themselves.
func (w *wish) check(name string, fs *pflag.FlagSet) error {
	errs := []error{kube.CheckClusterName(name), w.checkShape(fs)}
	errs = append(errs, oneOf("zone-spread", w.placement.zoneSpread, string(v1alpha1.ZoneSpreadBestEffort), string(v1alpha1.ZoneSpreadRequired)))
	if w.tlsSecret != "" && w.tlsSecret == name+"-operator-tls" {
		errs = append(errs, fmt.Errorf("--%s must not be %s: that is the manager's own copy; name the Secret that you maintain", flagTLSSecret, w.tlsSecret))
	}
	for _, a := range slices.Concat(w.podAnnotations, w.external.annotations) {
		if strings.HasPrefix(a, v1alpha1.Group+"/") {
			errs = append(errs, fmt.Errorf("annotation %s: keys under %s/ belong to the manager", a, v1alpha1.Group))
		}
	}
	return errors.Join(append(errs, w.checkExternal(fs))...)
}

func (w *wish) checkShape(fs *pflag.FlagSet) error {
	var missing []string
	for _, f := range []string{flagConfig, flagShards, flagReplicas} {
		if !fs.Changed(f) {
			missing = append(missing, "--"+f)
		}
	}
	var errs []error
	if len(missing) > 0 {
		errs = append(errs, fmt.Errorf("%s must be given; for example: --config standard --shards 3 --replicas 1", strings.Join(missing, ", ")))
	}
	if fs.Changed(flagConfig) && w.config == "" {
		errs = append(errs, fmt.Errorf("--%s must not be empty", flagConfig))
	}
	if fs.Changed(flagShards) && (w.shards < 1 || w.shards > maxShards) {
		errs = append(errs, fmt.Errorf("--%s is %d; it must be from 1 to %d", flagShards, w.shards, maxShards))
	}
	if w.replicas < 0 || w.replicas > maxReplicas {
		errs = append(errs, fmt.Errorf("--%s is %d; it must be from 0 to %d", flagReplicas, w.replicas, maxReplicas))
	}
	return errors.Join(errs...)
}

func (w *wish) checkExternal(fs *pflag.FlagSet) error {
	e := &w.external
	var errs []error
	if !e.enabled {
		for _, f := range externalOnly {
			if fs.Changed(f) {
				errs = append(errs, fmt.Errorf("--%s needs --%s", f, flagExternal))
			}
		}
		return errors.Join(errs...)
	}
	errs = append(errs,
		oneOf("service-type", e.serviceType, "NodePort", "LoadBalancer", "ClusterIP"),
		oneOf("external-traffic-policy", e.trafficPolicy, "Cluster", "Local"),
		oneOf("preferred-endpoint-type", e.endpointType, string(v1alpha1.EndpointIP), string(v1alpha1.EndpointHostname)))
	if e.endpointType == string(v1alpha1.EndpointHostname) && e.domain == "" {
		errs = append(errs, errors.New("--preferred-endpoint-type hostname needs --domain, the DNS domain of the hostnames"))
	}
	return errors.Join(append(errs, w.checkGateway(fs))...)
}

func (w *wish) checkGateway(fs *pflag.FlagSet) error {
	e := &w.external
	switch {
	case e.gateway == "" && !fs.Changed("gateway-base-port"):
		return nil
	case e.gateway == "":
		return errors.New("--gateway-base-port needs --gateway")
	case !fs.Changed("gateway-base-port"):
		return errors.New("--gateway needs --gateway-base-port, the first listener port")
	case e.gatewayBasePort < 1 || e.gatewayBasePort > maxPort:
		return fmt.Errorf("--gateway-base-port is %d; it must be from 1 to %d", e.gatewayBasePort, maxPort)
	}
	if highest := int64(e.gatewayBasePort) + int64(w.shards)*int64(w.replicas+1) - 1; highest > maxPort {
		return fmt.Errorf("--gateway-base-port %d is too high: the last of the %d nodes would have port %d, above %d",
			e.gatewayBasePort, w.shards*(w.replicas+1), highest, maxPort)
	}
	return nil
}

// oneOf accepts an unset flag, which leaves the choice to the API.
func oneOf(flag, value string, allowed ...string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("--%s %q is not known: use %s", flag, value, strings.Join(allowed, ", "))
}
