//go:build linux

// Package cluster brings the local Kubernetes up, looks at it, disturbs it and
// takes it down.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/cache"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/components"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/host"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/images"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/rootfs"
)

// Say prints one line about a step that takes time.
type Say func(format string, args ...any)

// parts are the paths, in the cache, of all that the cluster is made of.
type parts struct {
	rootfs     string
	kubernetes string
	kubeRouter string
	tools      string
	imageDirs  []string
}

// key changes whenever a part does. Images count by their content: a comment in
// the sources that build them is no reason to replace a cluster.
func (p parts) key() (string, error) {
	all := []string{p.rootfs, p.kubernetes, p.kubeRouter}
	archives, err := images.Archives(p.imageDirs...)
	if err != nil {
		return "", err
	}
	for _, archive := range archives {
		content, err := os.ReadFile(archive)
		if err != nil {
			return "", fmt.Errorf("read an image: %w", err)
		}
		all = append(all, string(content))
	}
	return cache.Key(all...), nil
}

// workshop makes parts.
type workshop struct {
	cache   *cache.Cache
	builder components.Builder
	say     Say
}

func openWorkshop(ctx context.Context, say Say) (*workshop, error) {
	source, err := layout.SourceDir()
	if err != nil {
		return nil, err
	}
	dir, err := layout.CacheDir()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(layout.LogDir, 0o755); err != nil {
		return nil, fmt.Errorf("make the log directory: %w", err)
	}
	c, err := cache.Open(ctx, dir, say)
	if err != nil {
		return nil, err
	}
	return &workshop{cache: c, say: say, builder: components.Builder{Source: source, Cache: c, Logs: layout.LogDir, Say: say}}, nil
}

func (w *workshop) close() error { return w.cache.Close() }

// checkSpace asks for more space when there is still something big to make.
func (w *workshop) checkSpace(ctx context.Context) error {
	key, err := w.builder.Key(ctx, components.Kubernetes)
	if err != nil {
		return err
	}
	if w.cache.Has(components.Kubernetes.Name, key) && w.cache.Has(suiteEntry(rootfs.Node())) {
		return host.CheckSpace(w.cache.Dir, host.WarmSpace)
	}
	return host.CheckSpace(w.cache.Dir, host.ColdSpace)
}

func suiteEntry(s rootfs.Suite) (name, key string) {
	return "debian-" + s.Name, cache.Key(strings.Join(s.Packages, ","))
}

// apiTier makes what the API-server tier of the tests needs, and the cluster
// as well: the Debian folder, Kubernetes and the tools directory.
func (w *workshop) apiTier(ctx context.Context) (parts, error) {
	var p parts
	var err error
	suite := rootfs.Node()
	name, key := suiteEntry(suite)
	p.rootfs, err = w.cache.Ensure(name, key, func(dir string) error {
		w.say("fetching the nodes' root file system, Debian %s (first time only: about 40 s)", suite.Name)
		return suite.Fetch(ctx, dir, filepath.Join(layout.LogDir, "debootstrap-"+suite.Name+".log"))
	})
	if err != nil {
		return parts{}, err
	}
	if p.kubernetes, err = w.builder.Build(ctx, components.Kubernetes); err != nil {
		return parts{}, err
	}
	p.tools, err = w.cache.Ensure("tools", cache.Key(p.rootfs, p.kubernetes), func(dir string) error {
		return writeTools(dir, p)
	})
	return p, err
}

// writeTools fills a directory with programs that run on the host.
func writeTools(dir string, p parts) error {
	for _, name := range []string{"etcd", "kubectl", "valkey-server", "valkey-cli", "valkey-benchmark", "openssl"} {
		if err := rootfs.Wrap(p.rootfs, filepath.Join("usr/bin", name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for _, name := range components.Kubernetes.Links {
		if err := os.Symlink(filepath.Join(p.kubernetes, name), filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("name %s: %w", name, err)
		}
	}
	return nil
}

// all makes every part.
func (w *workshop) all(ctx context.Context) (parts, error) {
	p, err := w.apiTier(ctx)
	if err != nil {
		return parts{}, err
	}
	if p.kubeRouter, err = w.builder.Build(ctx, components.KubeRouter); err != nil {
		return parts{}, err
	}
	system, err := w.systemImages(ctx)
	if err != nil {
		return parts{}, err
	}
	newValkey, oldValkey, err := w.valkeyImages(ctx, p)
	if err != nil {
		return parts{}, err
	}
	p.imageDirs = []string{system, newValkey, oldValkey}
	return p, nil
}

// prune forgets what older versions of the sources needed.
func (w *workshop) prune(now time.Time) error {
	names := []string{"tools", "images-system", "images-valkey", "images-valkey-old"}
	for _, c := range []components.Component{components.Kubernetes, components.KubeRouter, components.CoreDNS, components.Pause, components.CertManager} {
		names = append(names, c.Name)
	}
	debian, _ := suiteEntry(rootfs.Node())
	for _, name := range append(names, debian) {
		if err := w.cache.Prune(now, name); err != nil {
			return err
		}
	}
	return nil
}

func (w *workshop) systemImages(ctx context.Context) (string, error) {
	coredns, err := w.builder.Build(ctx, components.CoreDNS)
	if err != nil {
		return "", err
	}
	pause, err := w.builder.Build(ctx, components.Pause)
	if err != nil {
		return "", err
	}
	recipe, err := w.recipe()
	if err != nil {
		return "", err
	}
	return w.cache.Ensure("images-system", cache.Key(coredns, pause, recipe), func(dir string) error {
		w.say("building the pause and CoreDNS images")
		return images.WriteSystem(dir, pause, coredns)
	})
}

func (w *workshop) valkeyImages(ctx context.Context, p parts) (newDir, oldDir string, err error) {
	recipe, err := w.recipe()
	if err != nil {
		return "", "", err
	}
	newDir, err = w.cache.Ensure("images-valkey", cache.Key(p.rootfs, recipe), func(dir string) error {
		w.say("building the images of the newest Valkey")
		return images.WriteNewValkey(ctx, dir, p.rootfs)
	})
	if err != nil {
		return "", "", err
	}
	suite := rootfs.OldValkey()
	_, key := suiteEntry(suite)
	oldDir, err = w.cache.Ensure("images-valkey-old", cache.Key(key, recipe), func(dir string) error {
		w.say("fetching an older Valkey from Debian %s and building its image (first time only: about 40 s)", suite.Name)
		root := filepath.Join(dir, "debian")
		if err := suite.Fetch(ctx, root, filepath.Join(layout.LogDir, "debootstrap-"+suite.Name+".log")); err != nil {
			return err
		}
		if err := images.WriteOldValkey(ctx, dir, root); err != nil {
			return err
		}
		return os.RemoveAll(root)
	})
	return newDir, oldDir, err
}

// recipe condenses the sources that decide what is in an image.
func (w *workshop) recipe() (string, error) {
	var content []string
	for _, dir := range []string{"e2e/cluster/internal/images", "deploy/image/ociimage"} {
		files, err := filepath.Glob(filepath.Join(w.builder.Source, dir, "*.go"))
		if err != nil {
			return "", fmt.Errorf("list the image recipes: %w", err)
		}
		slices.Sort(files)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return "", fmt.Errorf("read the image recipes: %w", err)
			}
			content = append(content, string(text))
		}
	}
	return cache.Key(content...), nil
}

// Assets makes the parts of the API-server tier and returns the directory that
// holds kube-apiserver, etcd, kubectl, valkey-server and valkey-cli.
func Assets(ctx context.Context, say Say) (dir string, err error) {
	w, err := openWorkshop(ctx, say)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.prepare(ctx); err != nil {
		return "", err
	}
	p, err := w.apiTier(ctx)
	return p.tools, err
}

// CertManager makes cert-manager's controllers, if need be, and returns the
// directory that holds them and the CRDs.
func CertManager(ctx context.Context, say Say) (dir string, err error) {
	w, err := openWorkshop(ctx, say)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	return w.builder.Build(ctx, components.CertManager)
}

// prepare checks the machine before anything big is made on it.
func (w *workshop) prepare(ctx context.Context) error {
	if err := host.InstallTools(ctx, w.say); err != nil {
		return err
	}
	return w.checkSpace(ctx)
}

// Images makes the Valkey images, if need be, and lists them.
func Images(ctx context.Context, say Say) (list clusterctl.Images, err error) {
	w, err := openWorkshop(ctx, say)
	if err != nil {
		return clusterctl.Images{}, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.prepare(ctx); err != nil {
		return clusterctl.Images{}, err
	}
	p, err := w.all(ctx)
	if err != nil {
		return clusterctl.Images{}, err
	}
	list.Images, err = images.Index(p.imageDirs[1:]...)
	return list, err
}
