// Package version says what build of kubectl-valkey is running. Release builds
// set the variables through the linker:
//
//	go build -ldflags "-X github.com/kubectl-valkey/kubectl-valkey/pkg/version.version=v1.2.3
//	  -X github.com/kubectl-valkey/kubectl-valkey/pkg/version.commit=<40 hex>
//	  -X github.com/kubectl-valkey/kubectl-valkey/pkg/version.date=<RFC 3339>"
//
// Other builds fall back to what the Go toolchain recorded.
package version

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// Set by the linker; see the package comment.
var (
	version string
	commit  string
	date    string
)

// Unknown stands for what neither the linker nor the toolchain recorded.
const Unknown = "unknown"

// Info describes one build. Its JSON form is stable.
type Info struct {
	// Version is the release, for example v1.2.3, or (devel).
	Version string `json:"version"`
	// Commit is the git commit, with "-dirty" when the tree had changes.
	Commit string `json:"commit"`
	// Date of the commit or of the build, RFC 3339; empty when not recorded.
	Date string `json:"date,omitempty"`
	// GoVersion that compiled the program.
	GoVersion string `json:"goVersion"`
	// Platform is <os>/<architecture>.
	Platform string `json:"platform"`
}

// Get returns the build that is running.
func Get() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	return from(Info{Version: version, Commit: commit, Date: date}, build)
}

// from completes what the linker set with what the toolchain recorded.
func from(linked Info, build *debug.BuildInfo) Info {
	info := linked
	settings := map[string]string{}
	for _, s := range build.Settings {
		settings[s.Key] = s.Value
	}
	if info.Commit == "" {
		info.Commit = settings["vcs.revision"]
		if info.Commit != "" && settings["vcs.modified"] == "true" {
			info.Commit += "-dirty"
		}
	}
	if info.Date == "" {
		info.Date = settings["vcs.time"]
	}
	if info.Version == "" {
		info.Version = build.Main.Version
	}
	if info.Version == "" {
		info.Version = "(devel)"
	}
	if info.Commit == "" {
		info.Commit = Unknown
	}
	info.GoVersion = runtime.Version()
	info.Platform = runtime.GOOS + "/" + runtime.GOARCH
	return info
}

// UserAgent is how program (for example kubectl-valkey) names itself to the API
// server.
func (i Info) UserAgent(program string) string {
	v := strings.Trim(i.Version, "()")
	return program + "/" + v + " (" + i.Platform + ")"
}

// String is the build in one line.
func (i Info) String() string {
	return i.Version + " (commit " + i.Commit + ", " + i.GoVersion + ", " + i.Platform + ")"
}
