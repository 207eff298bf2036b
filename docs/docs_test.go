// Package docs_test holds the pages, and every tracked file where it matters, to
// rules that a reader would notice being broken.
package docs_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the checkout.
const root = ".."

// tracked lists the files of the checkout that git tracks or would track, by
// their paths from the root.
func tracked(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list the files of the checkout with git: %v", err)
	}
	var files []string
	for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		if info, err := os.Lstat(filepath.Join(root, name)); err == nil && info.Mode().IsRegular() {
			files = append(files, name)
		}
	}
	if len(files) < 10 {
		t.Fatalf("only %d files found: is this a checkout?", len(files))
	}
	return files
}

func pages(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, name := range tracked(t) {
		if name == "README.md" || strings.HasPrefix(name, "docs/") && strings.HasSuffix(name, ".md") {
			out = append(out, name)
		}
	}
	return out
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// line is the number of the line that holds an offset.
func line(text string, offset int) int { return 1 + strings.Count(text[:offset], "\n") }

// kubectl finds a plugin by the words before the first flag, so flags in front
// of the plugin's name do not work.
var flagBeforePlugin = regexp.MustCompile(`kubectl\s+-[^\n|;&` + "`" + `]*\svalkey\b`)

func TestNoPageWritesFlagsBeforeThePluginsName(t *testing.T) {
	for _, page := range pages(t) {
		text := read(t, page)
		for _, at := range flagBeforePlugin.FindAllStringIndex(text, -1) {
			if match := text[at[0]:at[1]]; !strings.Contains(match, " get ") {
				t.Errorf("%s:%d: %q: kubectl takes no flags before the name of a plugin; write kubectl valkey … first", page, line(text, at[0]), match)
			}
		}
	}
}

func TestFlagsBeforeThePluginsNameAreFound(t *testing.T) {
	for text, want := range map[string]bool{
		"kubectl -n team-a valkey status demo":           true,
		"kubectl --context=prod valkey create demo":      true,
		"kubectl valkey status demo -n team-a":           false,
		"kubectl get valkeyclusters -n valkey":           false,
		"`kubectl -n a get pods` and `valkey-cli`":       false,
		"kubectl -n a get pods\nkubectl valkey status x": false,
	} {
		if got := flagBeforePlugin.MatchString(text); got != want {
			t.Errorf("%q: found %v, want %v", text, got, want)
		}
	}
}

// hosts of registries of images and packages, in parts, as this file is one of
// those that are searched.
var hosts = [][]string{
	{"docker", "io"},
	{"ghcr", "io"},
	{"quay", "io"},
	{"gcr", "io"},
	{"registry", "k8s", "io"},
	{"public", "ecr", "aws"},
	{"mcr", "microsoft", "com"},
	{"azurecr", "io"},
	{"proxy", "golang", "org"},
	{"sum", "golang", "org"},
	{"goproxy", "io"},
	{"goproxy", "cn"},
	{"registry", "npmjs", "org"},
	{"registry", "yarnpkg", "com"},
	{"pypi", "org"},
	{"files", "pythonhosted", "org"},
	{"deb", "debian", "org"},
	{"security", "debian", "org"},
	{"ftp", "debian", "org"},
	{"snapshot", "debian", "org"},
	{"archive", "ubuntu", "com"},
	{"packages", "microsoft", "com"},
	{"pkgs", "k8s", "io"},
	{"dl", "k8s", "io"},
	{"static", "crates", "io"},
	{"rubygems", "org"},
	{"repo1", "maven", "org"},
}

func TestNoFileNamesTheHostOfARegistry(t *testing.T) {
	var alternatives []string
	for _, parts := range hosts {
		alternatives = append(alternatives, regexp.QuoteMeta(strings.Join(parts, ".")))
	}
	// Bounded, so that "quay.iox" and "mydocker.io" are no hits.
	pattern := regexp.MustCompile(`(^|[^A-Za-z0-9-])(` + strings.Join(alternatives, "|") + `)([^A-Za-z0-9-]|$)`)
	if !pattern.MatchString("image: " + strings.Join(hosts[0], ".") + "/valkey") {
		t.Fatal("the pattern finds nothing")
	}
	for _, name := range tracked(t) {
		text := read(t, name)
		if bytes.IndexByte([]byte(text), 0) >= 0 {
			continue
		}
		for _, at := range pattern.FindAllStringIndex(text, -1) {
			t.Errorf("%s:%d: names a registry: %q; write images as valkey/valkey:<tag> and leave hosts to the machine's own settings", name, line(text, at[0]), text[at[0]:at[1]])
		}
	}
}

func TestNoFileNeedsAPathOfTheWorkplace(t *testing.T) {
	// In parts, as this file is one of those that are searched.
	paths := []string{"/" + "work/", "../" + "shared/"}
	for _, name := range tracked(t) {
		text := read(t, name)
		for _, path := range paths {
			if at := strings.Index(text, path); at >= 0 {
				t.Errorf("%s:%d: names %s, which a clone does not have", name, line(text, at), path)
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestEveryLinkBetweenPagesResolves(t *testing.T) {
	found := 0
	for _, page := range pages(t) {
		text := read(t, page)
		for _, at := range link.FindAllStringSubmatchIndex(text, -1) {
			target := text[at[2]:at[3]]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			found++
			path, anchor, _ := strings.Cut(target, "#")
			to := page
			if path != "" {
				to = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s:%d: link to %s leads nowhere", page, line(text, at[0]), target)
				continue
			}
			if anchor != "" && !hasAnchor(read(t, to), anchor) {
				t.Errorf("%s:%d: %s has no heading #%s", page, line(text, at[0]), to, anchor)
			}
		}
	}
	if found == 0 {
		t.Error("no link found between pages")
	}
}

var (
	heading     = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}\s_-]`)
)

// hasAnchor says whether one of a page's headings has the anchor, as the usual
// viewers of Markdown make it.
func hasAnchor(text, anchor string) bool {
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		name := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(match[1])), "")
		if strings.ReplaceAll(name, " ", "-") == anchor {
			return true
		}
	}
	return false
}

func TestEveryPageIsReachedFromTheReadme(t *testing.T) {
	seen := map[string]bool{}
	queue := []string{"README.md"}
	for len(queue) > 0 {
		page := queue[0]
		queue = queue[1:]
		if seen[page] {
			continue
		}
		seen[page] = true
		for _, match := range link.FindAllStringSubmatch(read(t, page), -1) {
			path, _, _ := strings.Cut(match[1], "#")
			if to := filepath.Join(filepath.Dir(page), path); !strings.Contains(path, "://") && strings.HasSuffix(path, ".md") {
				if _, err := os.Stat(filepath.Join(root, to)); err == nil {
					queue = append(queue, to)
				}
			}
		}
	}
	for _, page := range pages(t) {
		if !seen[page] {
			t.Errorf("%s is linked from no page that a reader of README.md comes to", page)
		}
	}
}
