// Package ociimage builds container images from lists of files, without
// Docker and without a registry. The same input gives the same bytes: entries
// are sorted, times are zero.
package ociimage

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// File is one entry of a layer. Exactly one of Source, Content, Link and Dir
// says what it is; an entry with none of them is an empty file.
type File struct {
	// Path is absolute in the image.
	Path string
	// Mode holds the permission bits, setuid and the like included.
	Mode int64
	// UID and GID own the entry.
	UID, GID int
	// Source is a file on this machine; a symbolic link is followed.
	Source string
	// Content is the file itself.
	Content []byte
	// Link makes a symbolic link to this target.
	Link string
	// Dir makes a directory.
	Dir bool
}

// Config is how a container of the image runs, if nobody says otherwise.
type Config struct {
	// Arch is the Go name of the processor: amd64, arm64. Container runtimes
	// skip an image without one.
	Arch       string
	Entrypoint []string
	// User is "uid:gid".
	User   string
	Env    []string
	Labels map[string]string
}

// Build makes an image of one layer for Linux.
func Build(files []File, config Config) (v1.Image, error) {
	if config.Arch == "" {
		return nil, fmt.Errorf("build an image: no architecture given")
	}
	layerBytes, err := layerTar(files)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(layerBytes)), nil
	})
	if err != nil {
		return nil, fmt.Errorf("make the layer: %w", err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("add the layer: %w", err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the image's configuration: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", config.Arch
	file.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	file.Config = v1.Config{Entrypoint: config.Entrypoint, User: config.User, Env: config.Env, Labels: config.Labels}
	if img, err = mutate.ConfigFile(img, file); err != nil {
		return nil, fmt.Errorf("set the image's configuration: %w", err)
	}
	return img, nil
}

// layerTar writes the files, sorted, with the directories that they need.
func layerTar(files []File) ([]byte, error) {
	entries, err := complete(files)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range entries {
		if err := writeEntry(w, f); err != nil {
			return nil, fmt.Errorf("add %s to the layer: %w", f.Path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("finish the layer: %w", err)
	}
	return buf.Bytes(), nil
}

// complete sorts by path and adds missing parent directories, owned by root.
func complete(files []File) ([]File, error) {
	byPath := map[string]File{}
	for _, f := range files {
		if !path.IsAbs(f.Path) {
			return nil, fmt.Errorf("the path %q in an image must be absolute", f.Path)
		}
		f.Path = path.Clean(f.Path)
		if _, twice := byPath[f.Path]; twice {
			return nil, fmt.Errorf("%s is in the list twice", f.Path)
		}
		byPath[f.Path] = f
	}
	for _, f := range files {
		for dir := path.Dir(path.Clean(f.Path)); dir != "/"; dir = path.Dir(dir) {
			if _, there := byPath[dir]; !there {
				byPath[dir] = File{Path: dir, Mode: 0o755, Dir: true}
			}
		}
	}
	entries := make([]File, 0, len(byPath))
	for _, f := range byPath {
		entries = append(entries, f)
	}
	slices.SortFunc(entries, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return entries, nil
}

func writeEntry(w *tar.Writer, f File) error {
	header := &tar.Header{
		Name: strings.TrimPrefix(f.Path, "/"), Mode: f.Mode, Uid: f.UID, Gid: f.GID,
		ModTime: time.Unix(0, 0), Format: tar.FormatPAX, Typeflag: tar.TypeReg,
	}
	content := f.Content
	switch {
	case f.Dir:
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
	case f.Link != "":
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, f.Link, 0o777
	case f.Source != "":
		var err error
		if content, err = os.ReadFile(f.Source); err != nil {
			return err
		}
	}
	header.Size = int64(len(content))
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

// WriteArchive writes images into one docker-archive file, as `docker load`
// and `ctr images import` read it. The keys are references such as
// "valkey/valkey:9.1.2"; they are stored as given, without a host.
func WriteArchive(file string, images map[string]v1.Image) error {
	byTag := map[name.Tag]v1.Image{}
	for ref, img := range images {
		tag, err := name.NewTag(ref, name.WithDefaultRegistry(""))
		if err != nil {
			return fmt.Errorf("parse the image name %q: %w", ref, err)
		}
		byTag[tag] = img
	}
	if err := tarball.MultiWriteToFile(file, byTag); err != nil {
		return fmt.Errorf("write the image archive %s: %w", file, err)
	}
	return nil
}
