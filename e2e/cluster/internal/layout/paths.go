package layout

import (
	"fmt"
	"os"
	"path/filepath"
)

// CacheEnv names the environment variable that moves the cache.
const CacheEnv = "KUBECTL_VALKEY_CACHE"

const (
	// StateDir holds what belongs to one run of the cluster; `down` removes it.
	StateDir = "/var/lib/" + Name
	// LogDir holds the logs of the last run; they outlive `down`, so that a
	// failed test can be looked at, and are cleared by the next `up`.
	LogDir = "/var/log/" + Name
	// LockFile is held by whatever changes the cluster.
	LockFile = "/run/" + Name + ".lock"
)

// CacheDir is where built and fetched parts are kept between runs.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory: %w; set %s", err, CacheEnv)
	}
	return filepath.Join(home, ".cache", Name), nil
}

// Kubeconfig is the cluster administrator's kubeconfig.
func Kubeconfig() string { return filepath.Join(StateDir, "conf", "admin.kubeconfig") }

// AuditLog is the API server's audit log: one JSON event a line.
func AuditLog() string { return filepath.Join(LogDir, "audit.log") }

// PKIDir holds the cluster's keys and certificates.
func PKIDir() string { return filepath.Join(StateDir, "pki") }

// ConfDir holds kubeconfigs and the configuration of the control plane.
func ConfDir() string { return filepath.Join(StateDir, "conf") }

// EtcdDir holds etcd's data, in memory.
func EtcdDir() string { return filepath.Join(StateDir, "etcd") }

// Dir is the node's own directory under StateDir.
func (n Node) Dir() string { return filepath.Join(StateDir, "nodes", n.Name) }

// LogFile is the log of one process, named as in `status`.
func LogFile(process string) string { return filepath.Join(LogDir, process+".log") }

// SourceDir finds the checkout by walking up from the working directory: the
// components' modules are built from there.
func SourceDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "e2e", "cluster", "components", "kubernetes", "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no checkout of %s at or above %s; run this inside one", Name, dir)
		}
	}
}
