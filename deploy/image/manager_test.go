package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestOnlyAStaticProgramOfTheProcessorIsTaken(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	for name, test := range map[string]struct{ path, arch, want string }{
		"not a program":      {script, runtime.GOARCH, "build it for Linux"},
		"another processor":  {"/bin/ls", other, "GOARCH=" + other},
		"dynamically linked": {"/bin/ls", runtime.GOARCH, "CGO_ENABLED=0"},
		"unknown processor":  {"/bin/ls", "z80", "use amd64 or arm64"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkBinary(test.path, test.arch); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestManagerImageHoldsOnlyTheManager(t *testing.T) {
	program := filepath.Join(t.TempDir(), "manager")
	if err := os.WriteFile(program, []byte("code"), 0o600); err != nil {
		t.Fatal(err)
	}
	img, err := managerImage(program, "arm64")
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.Config.User != "65532:65532" || strings.Join(config.Config.Entrypoint, " ") != "/manager" {
		t.Errorf("got %+v", config)
	}
}
