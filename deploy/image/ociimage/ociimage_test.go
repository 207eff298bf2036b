package ociimage

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func files(t *testing.T) []File {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("code"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []File{
		{Path: "/usr/bin/program", Mode: 0o755, Source: program},
		{Path: "/bin", Link: "usr/bin"},
		{Path: "/data", Mode: 0o1777, UID: 999, GID: 999, Dir: true},
		{Path: "/etc/passwd", Mode: 0o644, Content: []byte("root")},
	}
}

func TestLayerHoldsTheFilesAndTheirDirectories(t *testing.T) {
	layer, err := layerTar(files(t))
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		Name, Link, Content string
		Mode                int64
		UID                 int
	}
	var got []entry
	r := tar.NewReader(bytes.NewReader(layer))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.Unix() != 0 {
			t.Errorf("%s has the time %s", h.Name, h.ModTime)
		}
		got = append(got, entry{h.Name, h.Linkname, string(content), h.Mode, h.Uid})
	}
	want := []entry{
		{"bin", "usr/bin", "", 0o777, 0},
		{"data/", "", "", 0o1777, 999},
		{"etc/", "", "", 0o755, 0},
		{"etc/passwd", "", "root", 0o644, 0},
		{"usr/", "", "", 0o755, 0},
		{"usr/bin/", "", "", 0o755, 0},
		{"usr/bin/program", "", "code", 0o755, 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheSameInputGivesTheSameArchive(t *testing.T) {
	dir := t.TempDir()
	var archives [2][]byte
	for i := range archives {
		img, err := Build(files(t), Config{Arch: "amd64", Entrypoint: []string{"/program"}, Labels: map[string]string{"a": "1", "b": "2"}})
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(dir, "out.tar")
		if err := WriteArchive(out, map[string]v1.Image{"some/image:1": img}); err != nil {
			t.Fatal(err)
		}
		if archives[i], err = os.ReadFile(out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two builds differ")
	}
}

func TestArchiveKeepsNamesAndConfiguration(t *testing.T) {
	img, err := Build(files(t), Config{Arch: "arm64", Entrypoint: []string{"/program"}, User: "1:2", Env: []string{"A=b"}})
	if err != nil {
		t.Fatal(err)
	}
	other, err := Build(files(t), Config{Arch: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.tar")
	if err := WriteArchive(out, map[string]v1.Image{"some/image:1": img, "localhost/other:2": other}); err != nil {
		t.Fatal(err)
	}
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(out) })
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	for _, m := range manifest {
		tags = append(tags, m.RepoTags...)
	}
	if diff := cmp.Diff([]string{"localhost/other:2", "some/image:1"}, tags); diff != "" {
		t.Error(diff)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != "arm64" || config.Config.User != "1:2" || config.Config.Entrypoint[0] != "/program" {
		t.Errorf("got %+v", config)
	}
}

func TestBadInputIsRefused(t *testing.T) {
	config := Config{Arch: "amd64"}
	for name, build := range map[string]func() error{
		"no architecture": func() error { _, err := Build(nil, Config{}); return err },
		"a relative path": func() error { _, err := Build([]File{{Path: "a"}}, config); return err },
		"a path twice":    func() error { _, err := Build([]File{{Path: "/a"}, {Path: "/x/../a"}}, config); return err },
		"a missing file":  func() error { _, err := Build([]File{{Path: "/a", Source: "/not/there"}}, config); return err },
	} {
		if build() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
