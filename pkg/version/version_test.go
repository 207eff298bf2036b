package version

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFrom(t *testing.T) {
	recorded := &debug.BuildInfo{
		Main: debug.Module{Version: "v0.0.0-20260101000000-abcdef"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abcdef"},
			{Key: "vcs.time", Value: "2026-01-01T00:00:00Z"},
			{Key: "vcs.modified", Value: "true"},
		},
	}
	tests := []struct {
		name   string
		linked Info
		build  *debug.BuildInfo
		want   Info
	}{
		{
			name:   "the linker's values win over the toolchain's",
			linked: Info{Version: "v1.2.3", Commit: "123", Date: "2026-02-02T00:00:00Z"},
			build:  recorded,
			want:   Info{Version: "v1.2.3", Commit: "123", Date: "2026-02-02T00:00:00Z"},
		},
		{
			name:  "a plain build says what the toolchain recorded, and that the tree had changes",
			build: recorded,
			want:  Info{Version: "v0.0.0-20260101000000-abcdef", Commit: "abcdef-dirty", Date: "2026-01-01T00:00:00Z"},
		},
		{
			name:  "a build without any record admits it",
			build: &debug.BuildInfo{},
			want:  Info{Version: "(devel)", Commit: Unknown},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.GoVersion = runtime.Version()
			tt.want.Platform = runtime.GOOS + "/" + runtime.GOARCH
			if diff := cmp.Diff(tt.want, from(tt.linked, tt.build)); diff != "" {
				t.Errorf("from() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUserAgentHoldsNoParenthesesInTheProductToken(t *testing.T) {
	got := Info{Version: "(devel)", Platform: "linux/amd64"}.UserAgent("kubectl-valkey")
	if want := "kubectl-valkey/devel (linux/amd64)"; got != want {
		t.Errorf("UserAgent() = %q, want %q", got, want)
	}
}
