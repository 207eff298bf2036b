// Command image builds the manager's container image, without Docker, as an
// archive that `docker load`, `ctr images import` and the local cluster's
// `load` read. deploy/image/Dockerfile makes the same image with Docker.
package main

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/kubectl-valkey/kubectl-valkey/deploy/image/ociimage"
)

// options are the command's flags.
type options struct {
	binary, tag, out, arch string
}

func main() {
	var o options
	cmd := &cobra.Command{
		Use: "image", Short: "Build the manager's container image", Args: cobra.NoArgs, SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	cmd.Flags().StringVar(&o.binary, "binary", "bin/manager", "statically linked manager program for Linux")
	cmd.Flags().StringVar(&o.tag, "tag", "kubectl-valkey/manager:dev", "name and tag of the image")
	cmd.Flags().StringVar(&o.out, "out", "dist/manager-image.tar", "archive to write")
	cmd.Flags().StringVar(&o.arch, "arch", "amd64", "processor of the program, amd64 or arm64")
	if err := cmd.Execute(); err != nil {
		os.Exit(1)
	}
}

func (o options) run() error {
	if err := checkBinary(o.binary, o.arch); err != nil {
		return err
	}
	img, err := managerImage(o.binary, o.arch)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return fmt.Errorf("make the output directory: %w", err)
	}
	return ociimage.WriteArchive(o.out, map[string]v1.Image{o.tag: img})
}

// managerImage holds nothing but the program: it needs no shell, and it trusts
// only the certificates that it is given, so it needs no CA bundle.
func managerImage(binary, arch string) (v1.Image, error) {
	return ociimage.Build(
		[]ociimage.File{{Path: "/manager", Mode: 0o755, Source: binary}},
		ociimage.Config{Arch: arch, Entrypoint: []string{"/manager"}, User: "65532:65532"})
}

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkBinary refuses a program that couldn't start in an empty image.
func checkBinary(path, arch string) error {
	want, known := machines[arch]
	if !known {
		return fmt.Errorf("unknown processor %q; use amd64 or arm64", arch)
	}
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("read the program %s: %w; build it for Linux first", path, err)
	}
	defer f.Close()
	if f.Machine != want {
		return fmt.Errorf("%s is a program for %s, not for %s; build it with GOARCH=%s", path, f.Machine, arch, arch)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is dynamically linked, and the image has no libraries; build it with CGO_ENABLED=0", path)
		}
	}
	return nil
}
