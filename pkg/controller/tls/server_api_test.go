//go:build api

package tls

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// tlsServer does what a Valkey server does with its certificate: it reads the three
// files when CONFIG SET names them, all or none, and serves what it read last. The
// files are a map, which the test refreshes as a kubelet would.
type tlsServer struct {
	mu     sync.Mutex
	disk   map[string][]byte
	loaded map[string]string
	leaf   *tls.Certificate
	roots  *x509.CertPool
	sets   int
}

// serveTLS starts a server on a loopback address of its own, with files loaded.
func serveTLS(t *testing.T, ip string, disk map[string][]byte, directives [][2]string) *tlsServer {
	t.Helper()
	s := &tlsServer{disk: disk}
	if err := s.load(directives); err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", ip+":6379", &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.leaf, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			go s.talk(conn)
		}
	}()
	return s
}

// load reads the files that directives name.
func (s *tlsServer) load(directives [][2]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	content := map[string][]byte{}
	names := map[string]string{}
	for _, d := range directives {
		data, ok := s.disk[path.Base(d[1])]
		if !ok {
			return errors.New("unable to update TLS configuration")
		}
		content[d[0]], names[d[0]] = data, d[1]
	}
	pair, err := tls.X509KeyPair(content["tls-cert-file"], content["tls-key-file"])
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(content["tls-ca-cert-file"])
	s.leaf, s.roots, s.loaded = &pair, roots, names
	s.sets++
	return nil
}

// accepts reports whether the server would let another be its peer.
func (s *tlsServer) accepts(other *tlsServer) error {
	other.mu.Lock()
	leaf, err := x509.ParseCertificate(other.leaf.Certificate[0])
	other.mu.Unlock()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = leaf.Verify(x509.VerifyOptions{Roots: s.roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err
}

func (s *tlsServer) talk(conn net.Conn) {
	in := bufio.NewReader(conn)
	for {
		words, err := readWords(in)
		if err != nil {
			return
		}
		if _, err := io.WriteString(conn, s.answer(words)); err != nil {
			return
		}
	}
}

func (s *tlsServer) answer(words []string) string {
	switch {
	case words[0] == "HELLO":
		return "%3\r\n$6\r\nserver\r\n$6\r\nvalkey\r\n$7\r\nversion\r\n$5\r\n9.1.2\r\n$5\r\nproto\r\n:3\r\n"
	case len(words) == 8 && words[1] == "SET":
		var directives [][2]string
		for pair := range slices.Chunk(words[2:], 2) {
			directives = append(directives, [2]string{pair[0], pair[1]})
		}
		if err := s.load(directives); err != nil {
			return "-ERR CONFIG SET failed (possibly related to argument 'tls-cert-file') - " + err.Error() + "\r\n"
		}
		return "+OK\r\n"
	case len(words) == 5 && words[1] == "GET":
		s.mu.Lock()
		defer s.mu.Unlock()
		reply := "%3\r\n"
		for _, name := range words[2:] {
			reply += fmt.Sprintf("$%d\r\n%s\r\n$%d\r\n%s\r\n", len(name), name, len(s.loaded[name]), s.loaded[name])
		}
		return reply
	}
	return "-ERR unknown command\r\n"
}

func readWords(in *bufio.Reader) ([]string, error) {
	count, err := readNumber(in)
	if err != nil {
		return nil, err
	}
	words := make([]string, count)
	for i := range words {
		size, err := readNumber(in)
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words[i] = string(word[:size])
	}
	return words, nil
}

func readNumber(in *bufio.Reader) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
