// Package components builds the pinned Go programs of the cluster. Each is a
// small module of its own under e2e/cluster/components, so that the product's
// go.mod doesn't carry their dependencies.
package components

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/cache"
)

// Component is one program to build.
type Component struct {
	Name string
	// Dir is relative to the checkout.
	Dir string
	// Package is what to build, "." for the module's own main.
	Package string
	// LDFlags are the linker's.
	LDFlags string
	// Links are further names of the program, for a multi-call binary.
	Links []string
	// Takes says how long a first build takes, for the log line.
	Takes string
}

const dir = "e2e/cluster/components/"

// Kubernetes is the control plane, kubelet and kube-proxy in one program. The
// version has to be given to the linker or the API server reports v0.0.0.
var Kubernetes = Component{
	Name: "kubernetes", Dir: dir + "kubernetes", Package: ".", Takes: "about 7 minutes on 2 cores",
	LDFlags: "-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2",
	Links:   []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"},
}

// CoreDNS is the cluster's DNS server.
var CoreDNS = Component{Name: "coredns", Dir: dir + "coredns", Package: ".", LDFlags: "-s -w", Takes: "about 2 minutes"}

// KubeRouter enforces NetworkPolicies.
var KubeRouter = Component{
	Name: "kube-router", Dir: dir + "kube-router", LDFlags: "-s -w", Takes: "about 2 minutes",
	Package: "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router",
}

// Pause is the sandbox program of every pod; it belongs to the main module.
var Pause = Component{Name: "pause", Dir: dir + "pause", Package: ".", LDFlags: "-s -w", Takes: "seconds"}

// Builder builds components into a cache.
type Builder struct {
	Source string // the checkout
	Cache  *cache.Cache
	Logs   string
	Say    func(string, ...any)
}

// Build returns the directory that holds the component's program, or its links.
func (b Builder) Build(ctx context.Context, c Component) (string, error) {
	key, err := b.Key(ctx, c)
	if err != nil {
		return "", err
	}
	return b.Cache.Ensure(c.Name, key, func(out string) error {
		b.Say("building %s (first time only: %s)", c.Name, c.Takes)
		logFile := filepath.Join(b.Logs, "build-"+c.Name+".log")
		log, err := os.Create(logFile)
		if err != nil {
			return fmt.Errorf("open the build log: %w", err)
		}
		defer log.Close()
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", c.LDFlags, "-o", filepath.Join(out, c.Name), c.Package)
		cmd.Dir = filepath.Join(b.Source, c.Dir)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("build %s: %w; see %s", c.Name, err, logFile)
		}
		for _, link := range c.Links {
			if err := os.Symlink(c.Name, filepath.Join(out, link)); err != nil {
				return fmt.Errorf("name %s: %w", link, err)
			}
		}
		return nil
	})
}

// Key condenses what the component's program depends on: its module files and
// sources, the Go version, the target and the flags.
func (b Builder) Key(ctx context.Context, c Component) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	cmd.Dir = filepath.Join(b.Source, c.Dir)
	version, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ask go for its version: %w; install Go 1.26 or newer", err)
	}
	return key(os.DirFS(filepath.Join(b.Source, c.Dir)), c, strings.TrimSpace(string(version)), runtime.GOOS+"/"+runtime.GOARCH)
}
