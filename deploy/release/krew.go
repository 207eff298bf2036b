package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
)

// downloads is where archives of a release are found.
const downloads = "https://github.com/kubectl-valkey/kubectl-valkey/releases/download"

// semver is what krew accepts as a version.
var semver = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// archives answers the template's questions.
type archives struct {
	Version string
	dir     string
	// incomplete lets archives be missing, in a build for some platforms only.
	incomplete bool
}

// archiveName of the plugin for a platform.
func archiveName(version, goos, goarch string) string {
	return fmt.Sprintf("kubectl-valkey_%s_%s_%s.tar.gz", version, goos, goarch)
}

// URI of the archive for a platform.
func (a archives) URI(goos, goarch string) string {
	return strings.Join([]string{downloads, a.Version, archiveName(a.Version, goos, goarch)}, "/")
}

// SHA256 of the archive for a platform.
func (a archives) SHA256(goos, goarch string) (string, error) {
	digest, err := sum(filepath.Join(a.dir, archiveName(a.Version, goos, goarch)))
	if a.incomplete && errors.Is(err, os.ErrNotExist) {
		return strings.Repeat("0", 64), nil // what no archive sums up to
	}
	return digest, err
}

// writeKrew fills in the manifest's template.
func writeKrew(from, dir, version, out string, incomplete bool) error {
	if !semver.MatchString(version) {
		return fmt.Errorf("--version %q is no version as krew wants it: write one such as v1.2.3", version)
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("read the manifest's template: %w", err)
	}
	t, err := template.New("manifest").Parse(string(text))
	if err != nil {
		return fmt.Errorf("read the manifest's template: %w", err)
	}
	var buf bytes.Buffer
	if err := t.Execute(&buf, archives{Version: version, dir: dir, incomplete: incomplete}); err != nil {
		return fmt.Errorf("fill in the manifest: %w", err)
	}
	// What is said of the template does not hold for what is made from it.
	manifest := buf.String()
	if at := strings.Index(manifest, "apiVersion:"); at > 0 {
		manifest = manifest[at:]
	}
	if err := os.WriteFile(out, []byte(manifest), 0o644); err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	return nil
}
