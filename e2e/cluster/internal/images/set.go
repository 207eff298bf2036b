package images

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/kubectl-valkey/kubectl-valkey/deploy/image/ociimage"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
)

const (
	systemArchive = "system.tar"
	newArchive    = "valkey.tar"
	oldArchive    = "valkey-old.tar"
	indexFile     = "images.json"
	repository    = "valkey/valkey"
)

// WriteSystem writes the archive with the pause and CoreDNS images.
func WriteSystem(dir, pauseDir, corednsDir string) error {
	pause, err := program(filepath.Join(pauseDir, "pause"), "/pause", "65535:65535")
	if err != nil {
		return err
	}
	// Port 53 needs root, or a capability.
	dns, err := program(filepath.Join(corednsDir, "coredns"), "/coredns", "0:0")
	if err != nil {
		return err
	}
	return ociimage.WriteArchive(filepath.Join(dir, systemArchive), map[string]v1.Image{
		layout.PauseImage: pause, layout.CoreDNSImage: dns,
	})
}

func program(source, path, user string) (v1.Image, error) {
	return ociimage.Build([]ociimage.File{{Path: path, Mode: 0o755, Source: source}},
		ociimage.Config{Arch: runtime.GOARCH, Entrypoint: []string{path}, User: user})
}

// WriteNewValkey writes the archive with the newest Valkey under two tags of
// different digests, between which a cluster can be upgraded, and its index.
func WriteNewValkey(ctx context.Context, dir, root string) error {
	version, err := ValkeyVersion(ctx, root)
	if err != nil {
		return err
	}
	first, err := Valkey(ctx, root, version, "1")
	if err != nil {
		return err
	}
	second, err := Valkey(ctx, root, version, "2")
	if err != nil {
		return err
	}
	refs := []clusterctl.Image{
		{Ref: repository + ":" + version, Version: version, Role: clusterctl.RoleCurrent},
		{Ref: repository + ":" + version + "-rebuild", Version: version, Role: clusterctl.RoleRebuild},
	}
	if err := ociimage.WriteArchive(filepath.Join(dir, newArchive), map[string]v1.Image{refs[0].Ref: first, refs[1].Ref: second}); err != nil {
		return err
	}
	return writeIndex(dir, refs)
}

// WriteOldValkey writes the archive with a Valkey older than 9, and its index.
func WriteOldValkey(ctx context.Context, dir, root string) error {
	version, err := ValkeyVersion(ctx, root)
	if err != nil {
		return err
	}
	img, err := Valkey(ctx, root, version, "1")
	if err != nil {
		return err
	}
	ref := clusterctl.Image{Ref: repository + ":" + version, Version: version, Role: clusterctl.RoleOld}
	if err := ociimage.WriteArchive(filepath.Join(dir, oldArchive), map[string]v1.Image{ref.Ref: img}); err != nil {
		return err
	}
	return writeIndex(dir, []clusterctl.Image{ref})
}

func writeIndex(dir string, refs []clusterctl.Image) error {
	content, err := json.Marshal(refs)
	if err != nil {
		return fmt.Errorf("encode the list of images: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, indexFile), content, 0o644); err != nil {
		return fmt.Errorf("write the list of images: %w", err)
	}
	return nil
}

// Index lists the Valkey images of the directories that WriteNewValkey and
// WriteOldValkey filled.
func Index(dirs ...string) ([]clusterctl.Image, error) {
	var all []clusterctl.Image
	for _, dir := range dirs {
		content, err := os.ReadFile(filepath.Join(dir, indexFile))
		if err != nil {
			return nil, fmt.Errorf("read the list of images: %w", err)
		}
		var refs []clusterctl.Image
		if err := json.Unmarshal(content, &refs); err != nil {
			return nil, fmt.Errorf("read the list of images in %s: %w", dir, err)
		}
		all = append(all, refs...)
	}
	return all, nil
}

// Archives lists the archive files of the directories.
func Archives(dirs ...string) ([]string, error) {
	var all []string
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join(dir, "*.tar"))
		if err != nil {
			return nil, fmt.Errorf("list image archives: %w", err)
		}
		all = append(all, found...)
	}
	return all, nil
}
