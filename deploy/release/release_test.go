package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

var date = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func write(t *testing.T, path, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// K-02: the machine, the order, the modes and times of the files don't show.
func TestArchivesAreTheSameWhereverTheyAreMade(t *testing.T) {
	dir := t.TempDir()
	var made []string
	for _, place := range []string{"one", "two"} {
		program := write(t, filepath.Join(dir, place, "kubectl-valkey"), "program", 0o700)
		license := write(t, filepath.Join(dir, place, "LICENSE"), "license", 0o600)
		files := []string{program, license}
		if place == "two" {
			files = []string{license, program}
			if err := os.Chtimes(license, date, date); err != nil {
				t.Fatal(err)
			}
		}
		out := filepath.Join(dir, place+".tar.gz")
		if err := writeArchive(out, files, date); err != nil {
			t.Fatal(err)
		}
		made = append(made, read(t, out))
	}
	if made[0] != made[1] {
		t.Error("two archives of the same content differ")
	}
	file, err := os.Open(filepath.Join(dir, "one.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(zip)
	modes := map[string]int64{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg || header.Uid != 0 || !header.ModTime.Equal(date) {
			t.Errorf("entry %+v", header)
		}
		modes[header.Name] = header.Mode
	}
	if len(modes) != 2 || modes["LICENSE"] != 0o644 || modes["kubectl-valkey"] != 0o755 {
		t.Errorf("entries are %v", modes)
	}
}

// K-01, K-02: the manifest has every platform, with the license, the right program
// and the checksum of the very archive.
func TestManifestForKrew(t *testing.T) {
	dir := t.TempDir()
	platforms := []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}
	sums := map[string]string{}
	for _, p := range platforms {
		goos, goarch, _ := strings.Cut(p, "/")
		path := write(t, filepath.Join(dir, archiveName("v1.2.3", goos, goarch)), p, 0o644)
		var err error
		if sums[p], err = sum(path); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "valkey.yaml")
	if err := writeKrew("../../plugin-manifest/valkey.yaml", dir, "v1.2.3", out, false); err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version   string
			Platforms []struct {
				Selector struct{ MatchLabels map[string]string }
				URI      string
				SHA256   string
				Bin      string
				Files    []struct{ From, To string }
			}
		}
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, out)), &struct {
		APIVersion, Kind string
		Metadata, Spec   any
	}{}); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(read(t, out)), &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Metadata.Name != "valkey" || manifest.Spec.Version != "v1.2.3" || len(manifest.Spec.Platforms) != len(platforms) {
		t.Errorf("manifest is %+v", manifest)
	}
	for _, p := range manifest.Spec.Platforms {
		goos, goarch := p.Selector.MatchLabels["os"], p.Selector.MatchLabels["arch"]
		program := "kubectl-valkey"
		if goos == "windows" {
			program += ".exe"
		}
		if p.SHA256 != sums[goos+"/"+goarch] || p.Bin != program || !strings.HasSuffix(p.URI, "/v1.2.3/"+archiveName("v1.2.3", goos, goarch)) {
			t.Errorf("%s/%s: %+v", goos, goarch, p)
		}
		if len(p.Files) != 2 || p.Files[0].From != program || p.Files[1].From != "LICENSE" {
			t.Errorf("%s/%s: files are %v", goos, goarch, p.Files)
		}
	}
	if err := writeKrew("../../plugin-manifest/valkey.yaml", dir, "1.2.3", out, false); err == nil || !strings.Contains(err.Error(), "v1.2.3") {
		t.Errorf("a version without v: %v", err)
	}
	if err := writeKrew("../../plugin-manifest/valkey.yaml", t.TempDir(), "v1.2.3", out, false); err == nil {
		t.Error("a manifest was made without archives")
	}
}

func TestChecksums(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b"), "b", 0o644)
	write(t, filepath.Join(dir, "a"), "", 0o644)
	for range 2 { // the list does not list itself
		if err := writeChecksums(dir); err != nil {
			t.Fatal(err)
		}
	}
	want := "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a\n" +
		"3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d  b\n"
	if got := read(t, filepath.Join(dir, checksumsFile)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
