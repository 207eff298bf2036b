package verifytls

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

const service = "demo.team-a.svc.cluster.local"

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// authorities are made once: keys take time.
func newAuthority(t testing.TB, name string, signer *authority) *authority {
	t.Helper()
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: plugintest.Now.Add(-time.Hour), NotAfter: plugintest.Now.AddDate(10, 0, 0),
	}
	c := sign(t, template, signer)
	key, ok := c.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		t.Fatal("the key is no ECDSA key")
	}
	return &authority{certificate: c.Leaf, key: key}
}

func (a *authority) pem() []byte { return pemOf(a.certificate.Raw) }

func pemOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

var serial = struct {
	sync.Mutex
	n int64
}{n: 100}

func sign(t testing.TB, template x509.Certificate, signer *authority) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, by := &template, key
	if signer != nil {
		parent, by = signer.certificate, signer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// leaf signs the documented certificate, changed by f.
func (a *authority) leaf(t testing.TB, f func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	serial.Lock()
	serial.n++
	n := serial.n
	serial.Unlock()
	template := x509.Certificate{
		SerialNumber: big.NewInt(n), Subject: pkix.Name{CommonName: "demo"}, DNSNames: []string{service, "*." + service},
		NotBefore: plugintest.Now.Add(-time.Hour), NotAfter: plugintest.Now.AddDate(0, 0, 90),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if f != nil {
		f(&template)
	}
	return sign(t, template, a)
}

// secret is the cluster's Secret with a leaf.
func secret(t testing.TB, leaf tls.Certificate, ca ...*authority) *corev1.Secret {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	data := map[string][]byte{certs.PrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})}
	for _, der := range leaf.Certificate {
		data[certs.CertificateKey] = append(data[certs.CertificateKey], pemOf(der)...)
	}
	for _, a := range ca {
		data[certs.CAKey] = append(data[certs.CAKey], a.pem()...)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: plugintest.Namespace, Name: "demo-tls"}, Type: corev1.SecretTypeTLS, Data: data,
	}
}

// server is a node with a client port and a bus port, as they behave on a TLS
// cluster unless changed.
type server struct {
	name string
	// shard and slots decide what is answered to GET.
	shard    int
	role     string
	leaf     tls.Certificate
	clients  tls.ClientAuthType
	version  uint16
	bus      tls.ClientAuthType
	plain    bool // the client port speaks plaintext
	plainBus bool
	linkDown bool
	refuse   error
	noauth   bool
	// announced is the name in redirects; it defaults to the pod's.
	announced string

	mu       sync.Mutex
	received []byte
}

// cluster is a set of servers that know each other.
type cluster struct {
	t       testing.TB
	now     func() time.Time
	fixture *plugintest.Fixture
	servers []*server
	byName  map[string]*server

	mu sync.Mutex
	// listening are addresses by server and port.
	listening map[string]string
}

func newCluster(t testing.TB, leaf tls.Certificate) *cluster {
	t.Helper()
	f := plugintest.Active("demo", 3, 1)
	f.Cluster.Spec.TLS = &v1alpha1.TLS{SecretRef: "demo-tls"}
	notAfter := metav1.NewTime(leaf.Leaf.NotAfter)
	f.Cluster.Status.TLS = &v1alpha1.TLSStatus{Fingerprint: certs.Fingerprint(leaf.Leaf.Raw), NotAfter: &notAfter, Nodes: f.Cluster.Status.Nodes}
	f.Condition(v1alpha1.ConditionTLSReady, true, v1alpha1.ReasonTLSServed, "6 of 6 nodes serve the certificate")
	c := &cluster{t: t, now: func() time.Time { return plugintest.Now }, fixture: f, byName: map[string]*server{}, listening: map[string]string{}}
	for _, n := range f.Nodes {
		s := &server{name: n.Name, shard: int(n.Spec.ShardIndex), role: n.Status.Role, leaf: leaf, bus: tls.RequireAnyClientCert}
		c.servers = append(c.servers, s)
		c.byName[n.Name] = s
	}
	return c
}

// Dial connects to a server.
func (c *cluster) Dial(_ context.Context, pod string, port int) (net.Conn, error) {
	s := c.byName[pod]
	if s == nil {
		return nil, fmt.Errorf("pod %s is not there", pod)
	}
	if s.refuse != nil {
		return nil, s.refuse
	}
	return net.Dial("tcp", c.listen(s, port))
}

// listen starts a port of a server when it is first dialled.
func (c *cluster) listen(s *server, port int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := fmt.Sprint(s.name, port)
	if address := c.listening[key]; address != "" {
		return address
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	c.t.Cleanup(func() { l.Close() })
	c.listening[key] = l.Addr().String()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.serve(s, conn, port)
		}
	}()
	return c.listening[key]
}

func (*cluster) Close() {}

// rotate makes new connections see another leaf.
func (s *server) rotate(leaf tls.Certificate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaf = leaf
}

func (s *server) shown(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &s.leaf, nil
}

func (s *server) record(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = append(s.received, p...)
}

// sent is what reached the server as application data, in the clear or not.
func (s *server) sent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.received)
}

func (c *cluster) serve(s *server, raw net.Conn, port int) {
	defer raw.Close()
	auth, plain := s.clients, s.plain
	if port == busPort {
		auth, plain = s.bus, s.plainBus
	}
	conn := raw
	if !plain {
		// What isn't TLS is noted before the handshake fails on it.
		peek := bufio.NewReader(raw)
		if first, err := peek.Peek(1); err == nil && first[0] != 0x16 {
			s.record(first)
			return
		}
		encrypted := tls.Server(peeked{raw, peek}, &tls.Config{
			GetCertificate: s.shown, ClientAuth: auth, MinVersion: tls.VersionTLS12, MaxVersion: s.version,
			SessionTicketsDisabled: true, Time: c.now,
		})
		if encrypted.Handshake() != nil {
			return
		}
		conn = encrypted
	}
	if port == busPort {
		_, _ = io.ReadFull(conn, make([]byte, 8)) // a header that is none
		return
	}
	c.answer(s, conn)
}

type peeked struct {
	net.Conn
	r io.Reader
}

func (p peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// answer speaks as much of the protocol as is asked.
func (c *cluster) answer(s *server, conn net.Conn) {
	r := bufio.NewReader(io.TeeReader(conn, recorder{s}))
	for {
		words, err := command(r)
		if err != nil {
			return
		}
		if _, err := io.WriteString(conn, c.reply(s, words)); err != nil {
			return
		}
	}
}

type recorder struct{ s *server }

func (r recorder) Write(p []byte) (int, error) { r.s.record(p); return len(p), nil }

func command(r *bufio.Reader) ([]string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "*") {
		return strings.Fields(line), nil
	}
	var n int
	if _, err := fmt.Sscanf(line, "*%d", &n); err != nil {
		return nil, err
	}
	words := make([]string, n)
	for i := range words {
		if _, err := r.ReadString('\n'); err != nil {
			return nil, err
		}
		if line, err = r.ReadString('\n'); err != nil {
			return nil, err
		}
		words[i] = strings.TrimRight(line, "\r\n")
	}
	return words, nil
}

func (c *cluster) reply(s *server, words []string) string {
	if len(words) == 0 {
		return "-ERR empty\r\n"
	}
	if s.noauth {
		return "-NOAUTH Authentication required.\r\n"
	}
	switch strings.ToUpper(strings.Join(words[:min(2, len(words))], " ")) {
	case "HELLO 2":
		return "*2\r\n$5\r\nproto\r\n:2\r\n"
	case "PING":
		return "+PONG\r\n"
	case "INFO REPLICATION":
		text := "role:master\r\nconnected_slaves:1\r\n"
		if s.role == "replica" {
			text = "role:slave\r\nmaster_link_status:up\r\n"
			if s.linkDown {
				text = "role:slave\r\nmaster_link_status:down\r\nmaster_link_down_since_seconds:17\r\n"
			}
		}
		return bulk("# Replication\r\n" + text)
	case "CLUSTER SLOTS":
		return c.slots()
	}
	if strings.EqualFold(words[0], "GET") && len(words) == 2 {
		slot := keySlot(words[1])
		for _, shard := range c.fixture.Cluster.Status.Shards {
			if !has(shard.Slots, slot) {
				continue
			}
			if s.name == shard.Primary {
				return "$-1\r\n"
			}
			return fmt.Sprintf("-MOVED %d %s:6379\r\n", slot, c.announcedBy(shard.Primary))
		}
	}
	return "-ERR unknown command\r\n"
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func (c *cluster) announcedBy(name string) string {
	if s := c.byName[name]; s != nil && s.announced != "" {
		return s.announced
	}
	return name + "." + service
}

func (c *cluster) slots() string {
	shards := c.fixture.Cluster.Status.Shards
	out := fmt.Sprintf("*%d\r\n", len(shards))
	for _, shard := range shards {
		var from, to int
		if _, err := fmt.Sscanf(shard.Slots, "%d-%d", &from, &to); err != nil {
			panic(err)
		}
		nodes := append([]string{shard.Primary}, shard.Replicas...)
		out += fmt.Sprintf("*%d\r\n:%d\r\n:%d\r\n", 2+len(nodes), from, to)
		for _, n := range nodes {
			out += "*3\r\n" + bulk(c.announcedBy(n)) + ":6379\r\n" + bulk(n)
		}
	}
	return out
}

func has(ranges string, slot int) bool {
	var from, to int
	_, err := fmt.Sscanf(ranges, "%d-%d", &from, &to)
	return err == nil && from <= slot && slot <= to
}

// keySlot is CRC16 (XMODEM) of a key without a hash tag, modulo the slots.
func keySlot(key string) int {
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % 16384
}
