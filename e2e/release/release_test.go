//go:build release

// Package release builds what a release holds, twice, and uses it: the plugin is
// installed by the real krew from its archive. `make test-release` runs it; it needs
// no cluster.
package release

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// version is that of a release, as no tag may exist in a checkout.
const version = "v9.8.7"

// full is whether every platform is built, as make test-full does: a machine that has
// compiled for this one only needs many minutes for that.
func full() bool { return os.Getenv("E2E_FULL") != "" }

func platforms() []string {
	if full() {
		return []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "windows_amd64", "windows_arm64"}
	}
	return []string{runtime.GOOS + "_" + runtime.GOARCH}
}

func arches() []string {
	if full() {
		return []string{"amd64", "arm64"}
	}
	return []string{runtime.GOARCH}
}

// build makes a release of this checkout in a folder.
func build(t *testing.T, dir string) {
	t.Helper()
	args := []string{"release", "RELEASE=" + dir, "VERSION=" + version}
	if !full() {
		args = append(args, "PLATFORMS="+runtime.GOOS+"/"+runtime.GOARCH, "MANAGER_ARCHES="+runtime.GOARCH)
	}
	cmd := exec.CommandContext(t.Context(), "make", args...)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make release: %v\n%s", err, out)
	}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", filepath.Base(name), args, err, out)
	}
	return string(out)
}

// K-01, K-02
func TestRelease(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "release"), filepath.Join(t.TempDir(), "elsewhere")
	build(t, first)
	t.Run("the same bytes twice", func(t *testing.T) {
		build(t, second)
		if a, b := read(t, first, "SHA256SUMS"), read(t, second, "SHA256SUMS"); a != b {
			t.Errorf("two builds differ:\n%s\n%s", a, b)
		}
	})
	t.Run("everything is there and sums up", func(t *testing.T) { checkFiles(t, first) })
	t.Run("the version is everywhere", func(t *testing.T) { checkVersions(t, first) })
	t.Run("krew installs the plugin", func(t *testing.T) { installWithKrew(t, first) })
}

func checkFiles(t *testing.T, dir string) {
	sums := read(t, dir, "SHA256SUMS")
	names := []string{
		"install.yaml", "crds.yaml", "starter.yaml", "valkey.yaml", "LICENSE",
		"kubectl-valkey_" + version + ".cdx.json", "manager_" + version + ".cdx.json",
	}
	for _, arch := range arches() {
		names = append(names, "manager-image_"+version+"_linux_"+arch+".tar")
	}
	for _, name := range names {
		if !strings.Contains(sums, "  "+name+"\n") {
			t.Errorf("%s is missing", name)
		}
	}
	for _, platform := range platforms() {
		name := "kubectl-valkey_" + version + "_" + platform + ".tar.gz"
		if !strings.Contains(sums, "  "+name+"\n") {
			t.Errorf("%s is missing", name)
			continue
		}
		for line := range strings.Lines(run(t, os.Environ(), "tar", "-tvzf", filepath.Join(dir, name))) {
			if !strings.HasPrefix(line, "-") {
				t.Errorf("%s holds something else than a regular file: %s", name, line)
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("checksums: %v\n%s", err, out)
	}
	var sbom struct {
		BOMFormat  string `json:"bomFormat"`
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal([]byte(read(t, dir, "manager_"+version+".cdx.json")), &sbom); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, c := range sbom.Components {
		found = found || c.Name == "sigs.k8s.io/controller-runtime" && c.Version != ""
	}
	if sbom.BOMFormat != "CycloneDX" || !found {
		t.Errorf("the SBOM is %s with %d components, controller-runtime among them: %v", sbom.BOMFormat, len(sbom.Components), found)
	}
}

func checkVersions(t *testing.T, dir string) {
	install := read(t, dir, "install.yaml")
	if !strings.Contains(install, "image: kubectl-valkey/manager:"+version+"\n") {
		t.Error("install.yaml names another image")
	}
	for _, document := range strings.Split(install, "\n---\n") {
		var object struct {
			Kind     string
			Metadata struct {
				Name   string
				Labels map[string]string
			}
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		if object.Metadata.Labels["app.kubernetes.io/version"] != version {
			t.Errorf("%s %s carries no version", object.Kind, object.Metadata.Name)
		}
	}
	image := run(t, os.Environ(), "tar", "-xOf", filepath.Join(dir, "manager-image_"+version+"_linux_"+runtime.GOARCH+".tar"), "manifest.json")
	if !strings.Contains(image, `"kubectl-valkey/manager:`+version+`"`) {
		t.Errorf("the image's archive is %s", image)
	}
}

func installWithKrew(t *testing.T, dir string) {
	krew, kubectl := os.Getenv("RELEASE_KREW"), os.Getenv("RELEASE_KUBECTL")
	if krew == "" || kubectl == "" {
		t.Fatal("RELEASE_KREW and RELEASE_KUBECTL name no programs; run make test-release")
	}
	home := t.TempDir()
	root := filepath.Join(home, "krew")
	env := []string{
		"HOME=" + home, "KREW_ROOT=" + root, "KUBECONFIG=/dev/null", "KREW_NO_UPGRADE_CHECK=1",
		"PATH=" + strings.Join([]string{filepath.Join(root, "bin"), filepath.Dir(kubectl), os.Getenv("PATH")}, string(os.PathListSeparator)),
	}
	// An index that holds our manifest alone, as krew reads it.
	index := filepath.Join(home, "index")
	if err := os.MkdirAll(filepath.Join(index, "plugins"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(index, "plugins", "valkey.yaml"), []byte(read(t, dir, "valkey.yaml")), 0o644); err != nil {
		t.Fatal(err)
	}
	env = append(env, "KREW_DEFAULT_INDEX_URI="+index)
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "x"}} {
		run(t, env, "git", append([]string{"-C", index}, args...)...)
	}
	run(t, env, krew, "update")
	if out := run(t, env, krew, "info", "valkey"); !strings.Contains(out, "VERSION: "+version) {
		t.Errorf("krew says of the plugin: %s", out)
	}
	archive := filepath.Join(dir, "kubectl-valkey_"+version+"_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz")
	run(t, env, krew, "install", "--manifest="+filepath.Join(dir, "valkey.yaml"), "--archive="+archive)
	if out := run(t, env, kubectl, "valkey", "version", "--client"); !strings.Contains(out, version) {
		t.Errorf("kubectl valkey version says %q, want %s", out, version)
	}
	if out := run(t, env, krew, "list"); !strings.Contains(out, "valkey") {
		t.Errorf("krew lists %q", out)
	}
	if _, err := os.Stat(filepath.Join(root, "store", "valkey", version, "LICENSE")); err != nil {
		t.Errorf("the license was not installed: %v", err)
	}
	run(t, env, krew, "uninstall", "valkey")
	if _, err := os.Lstat(filepath.Join(root, "bin", "kubectl-valkey")); !os.IsNotExist(err) {
		t.Errorf("something is left of the plugin: %v", err)
	}
}
