package components

import (
	"testing"
	"testing/fstest"
)

func file(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content)} }

func TestKeyChangesWithWhatTheProgramDependsOn(t *testing.T) {
	base := func() fstest.MapFS {
		return fstest.MapFS{"go.mod": file("module m"), "go.sum": file("sum"), "main.go": file("package main")}
	}
	component := Component{Name: "c", Package: ".", LDFlags: "-s"}
	mustKey := func(fs fstest.MapFS, c Component, goVersion, target string) string {
		t.Helper()
		k, err := key(fs, c, goVersion, target)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	want := mustKey(base(), component, "go1", "linux/amd64")

	same := base()
	same["README.md"] = file("text")
	if got := mustKey(same, component, "go1", "linux/amd64"); got != want {
		t.Error("a file that isn't built changes the key")
	}

	changed := map[string]string{}
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		fs := base()
		fs[name] = file("other")
		changed[name] = mustKey(fs, component, "go1", "linux/amd64")
	}
	more := base()
	more["more.go"] = file("package main")
	changed["a new file"] = mustKey(more, component, "go1", "linux/amd64")
	changed["the Go version"] = mustKey(base(), component, "go2", "linux/amd64")
	changed["the target"] = mustKey(base(), component, "go1", "linux/arm64")
	changed["the flags"] = mustKey(base(), Component{Name: "c", Package: ".", LDFlags: "-w"}, "go1", "linux/amd64")
	changed["the links"] = mustKey(base(), Component{Name: "c", Package: ".", LDFlags: "-s", Links: []string{"l"}}, "go1", "linux/amd64")
	changed["a folder"] = mustKey(base(), Component{Name: "c", Package: ".", LDFlags: "-s", Folders: []Folder{{Module: "m", Path: "p", Name: "n"}}}, "go1", "linux/amd64")
	for what, got := range changed {
		if got == want {
			t.Errorf("%s doesn't change the key", what)
		}
	}
}
