package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// checksumsFile lists the checksums of all others, as sha256sum -c reads them.
const checksumsFile = "SHA256SUMS"

// writeArchive packs files under their base names, in the order of these, as
// regular files of root. Nothing of the machine that packs gets in.
func writeArchive(out string, files []string, at time.Time) error {
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	var buf bytes.Buffer
	zip, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(zip)
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read what to pack: %w", err)
		}
		name, mode := filepath.Base(path), int64(0o644)
		if strings.HasPrefix(name, "kubectl-valkey") {
			mode = 0o755
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: at.UTC(), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("pack %s: %w", path, err)
		}
		if _, err := archive.Write(content); err != nil {
			return fmt.Errorf("pack %s: %w", path, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("pack %s: %w", out, err)
	}
	if err := zip.Close(); err != nil {
		return fmt.Errorf("pack %s: %w", out, err)
	}
	if err := os.WriteFile(out, buf.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return nil
}

func sum(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read what to sum up: %w", err)
	}
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:]), nil
}

// writeChecksums writes the checksums of a folder into it.
func writeChecksums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list what to sum up: %w", err)
	}
	var lines strings.Builder
	for _, entry := range entries { // sorted by name
		if entry.Name() == checksumsFile || !entry.Type().IsRegular() {
			continue
		}
		digest, err := sum(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", digest, entry.Name())
	}
	if err := os.WriteFile(filepath.Join(dir, checksumsFile), []byte(lines.String()), 0o644); err != nil {
		return fmt.Errorf("write checksums: %w", err)
	}
	return nil
}
