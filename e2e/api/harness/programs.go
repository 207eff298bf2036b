//go:build api

package harness

import "path/filepath"

// Program is the path of a program beside kube-apiserver, such as valkey-server.
func (s *Server) Program(name string) string {
	return filepath.Join(filepath.Dir(s.kubectl), name)
}
