// Package apt finds the machine's Debian mirror in its own apt sources, in
// both forms that apt reads, so that the project names no host.
package apt

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Source is one archive of binary packages.
type Source struct {
	URI      string
	Suites   []string
	SignedBy string
}

// Mirror is the base address of the machine's Debian archive, as debootstrap
// takes it.
func Mirror() (string, error) {
	var files []string
	for _, pattern := range []string{"/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list", "/etc/apt/sources.list.d/*.sources"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", fmt.Errorf("look for apt sources: %w", err)
		}
		files = append(files, found...)
	}
	var sources []Source
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read apt sources: %w", err)
		}
		if strings.HasSuffix(file, ".sources") {
			sources = append(sources, ParseDeb822(string(text))...)
		} else {
			sources = append(sources, ParseOneLine(string(text))...)
		}
	}
	return pick(sources)
}

// pick chooses the main Debian archive: the path of its address ends with
// "debian", and its suite is neither a security nor an updates one alone.
func pick(sources []Source) (string, error) {
	for _, s := range sources {
		u, err := url.Parse(s.URI)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" {
			continue
		}
		if strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/debian") && slices.ContainsFunc(s.Suites, isRelease) {
			return s.URI, nil
		}
	}
	return "", errors.New("the machine's apt sources name no Debian archive; this needs a Debian machine with an entry for its main archive in /etc/apt")
}

func isRelease(suite string) bool { return !strings.ContainsAny(suite, "-/") }

// ParseDeb822 reads a .sources file: paragraphs of "Key: value" lines, where
// lines that begin with a space continue the one before.
func ParseDeb822(text string) []Source {
	var sources []Source
	fields := map[string]string{}
	var last string
	flush := func() {
		if slices.Contains(strings.Fields(fields["types"]), "deb") && !strings.EqualFold(fields["enabled"], "no") {
			for _, uri := range strings.Fields(fields["uris"]) {
				sources = append(sources, Source{URI: uri, Suites: strings.Fields(fields["suites"]), SignedBy: fields["signed-by"]})
			}
		}
		fields, last = map[string]string{}, ""
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			flush()
		case line[0] == ' ' || line[0] == '\t':
			fields[last] += " " + strings.TrimSpace(line)
		default:
			key, value, _ := strings.Cut(line, ":")
			last = strings.ToLower(strings.TrimSpace(key))
			fields[last] = strings.TrimSpace(value)
		}
	}
	flush()
	return sources
}

// ParseOneLine reads a sources.list file: "deb [options] uri suite component…".
func ParseOneLine(text string) []Source {
	var sources []Source
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] != "deb" {
			continue
		}
		fields = fields[1:]
		var s Source
		if strings.HasPrefix(fields[0], "[") {
			for len(fields) > 0 {
				option := strings.Trim(fields[0], "[]")
				if by, ok := strings.CutPrefix(option, "signed-by="); ok {
					s.SignedBy = by
				}
				end := strings.HasSuffix(fields[0], "]")
				fields = fields[1:]
				if end {
					break
				}
			}
		}
		if len(fields) < 2 {
			continue
		}
		s.URI, s.Suites = fields[0], fields[1:2]
		sources = append(sources, s)
	}
	return sources
}
