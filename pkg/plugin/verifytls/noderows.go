package verifytls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/checklist"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/tlsprobe"
)

// expected is what every node should show.
type expected struct {
	// Fingerprint of the leaf; empty when it isn't known.
	Fingerprint string
	// NotAfter of that leaf as text; empty when it isn't known.
	NotAfter string
	// Unknown says why the leaf isn't known.
	Unknown string
	// LoggedIn: the commands are sent as a user.
	LoggedIn bool
	// Wait is the command line that waits for a rotation, Restart the one that
	// replaces nodes, Describe one that shows what runs.
	Wait, Restart, Describe string
}

const untrusted = "not tried: the certificate shown is not trusted, so nothing is sent"

// nodeRows judge what was seen of one server. outside is for an address outside
// Kubernetes, where there are neither a bus nor a common name.
func (e expected) nodeRows(where string, n tlsprobe.Node, outside bool) []checklist.Row {
	r := &checklist.Rows{Where: where}
	if n.Own.DialErr != nil {
		r.Fail(checkReachable, n.Own.DialErr.Error(), e.unreachableFix(n.Own.DialErr))
		return r.List
	}
	e.handshake(r, checkHandshake, &n.Own)
	if !outside {
		e.handshake(r, checkService, n.Service)
	}
	e.served(r, n.Own)
	e.answer(r, n)
	clientCertificate(r, n)
	foreign(r, n.Foreign)
	e.plaintext(r, checkPlaintext, n.Plain)
	if !outside {
		e.bus(r, n)
	}
	e.replication(r, n.Session)
	return r.List
}

func (e expected) unreachableFix(err error) string {
	if strings.Contains(err.Error(), "needs create pods/portforward") {
		return "ask for the permission, or run this in a pod of the Kubernetes cluster with --direct"
	}
	return "find out whether the node runs: " + e.Describe
}

// handshake judges one handshake. A server that refuses the client after it has
// shown the right certificate passes here: another check says so.
func (e expected) handshake(r *checklist.Rows, check string, h *tlsprobe.Handshake) {
	switch {
	case h == nil:
		r.Skip(check, "not tried: the server shows no certificate", "")
	case h.DialErr != nil:
		r.Fail(check, h.DialErr.Error(), e.unreachableFix(h.DialErr))
	case h.Trusted:
		r.Pass(check, "verified for "+h.Name)
	default:
		reason, fix := e.mistrust(*h)
		r.Fail(check, reason, fix)
	}
}

// mistrust says why a handshake failed, and what to do.
func (e expected) mistrust(h tlsprobe.Handshake) (reason, fix string) {
	if len(h.Chain) == 0 {
		return e.noCertificate(h)
	}
	leaf := certs.Served(h.Chain[0])
	var (
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		authority x509.UnknownAuthorityError
	)
	shown := fmt.Sprintf("%s, issued by %s", leaf.Subject, leaf.Issuer)
	if e.Fingerprint != "" && leaf.Fingerprint != e.Fingerprint {
		shown += ", which is not the Secret's"
		fix = "if a rotation is under way, wait for it: " + e.Wait + "; if it stays so, this is not a node of the cluster: " + e.Describe
	}
	switch {
	case errors.As(h.Err, &hostname):
		names := strings.Join(leaf.DNSNames, ", ")
		if names == "" {
			names = "no name"
		}
		reason, fix = fmt.Sprintf("the certificate shown (%s) is for %s, not for %s", shown, names, h.Name), orElse(fix, checklist.Fix(certs.CheckNames))
	case errors.As(h.Err, &authority):
		reason, fix = fmt.Sprintf("the certificate shown (%s) is not signed by a CA in ca.crt", shown), orElse(fix, checklist.Fix(certs.CheckChain))
	case errors.As(h.Err, &invalid) && invalid.Reason == x509.Expired:
		verb := "expired on " + checklist.Date(invalid.Cert.NotAfter)
		if strings.Contains(invalid.Detail, "before") {
			verb = "is not valid before " + checklist.Date(invalid.Cert.NotBefore)
		}
		reason, fix = fmt.Sprintf("the certificate %s of the chain shown %s", invalid.Cert.Subject, verb), orElse(fix, checklist.Fix(certs.CheckDates))
	case errors.As(h.Err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		reason, fix = fmt.Sprintf("the certificate shown (%s) may not be used by servers", shown), orElse(fix, checklist.Fix(certs.CheckUsages))
	default:
		reason, fix = fmt.Sprintf("the certificate shown (%s) does not verify: %v", shown, h.Err), orElse(fix, checklist.Fix(certs.CheckChain))
	}
	return reason, fix
}

func (e expected) noCertificate(h tlsprobe.Handshake) (reason, fix string) {
	fix = "find out what runs there: " + e.Describe
	var record tls.RecordHeaderError
	switch {
	case errors.As(h.Err, &record):
		return "what listens there does not speak TLS", fix
	case errors.Is(h.Err, io.EOF), errors.Is(h.Err, io.ErrUnexpectedEOF), errors.Is(h.Err, syscall.ECONNRESET):
		return "the server closes the connection instead of a TLS handshake", fix
	}
	return fmt.Sprintf("no TLS handshake came about: %v", h.Err), fix
}

// served compares the leaf shown with that of the Secret.
func (e expected) served(r *checklist.Rows, h tlsprobe.Handshake) {
	switch {
	case len(h.Chain) == 0:
		r.Skip(checkServed, "the server shows no certificate", "")
	case e.Fingerprint == "":
		r.Skip(checkServed, "which leaf it should be is not known: "+e.Unknown, "")
	default:
		leaf := certs.Served(h.Chain[0])
		if leaf.Fingerprint == e.Fingerprint {
			r.Pass(checkServed, "the Secret's leaf, valid until "+checklist.Date(leaf.NotAfter))
			return
		}
		want := e.Fingerprint[:12]
		if e.NotAfter != "" {
			want += ", valid until " + e.NotAfter
		}
		r.Fail(checkServed, fmt.Sprintf("shows the leaf %s, valid until %s; the Secret's is %s", leaf.Fingerprint[:12], checklist.Date(leaf.NotAfter), want),
			"a rotation takes seconds, two minutes at most: wait for it with "+e.Wait+"; TLSReady in kubectl valkey status says what holds it up")
	}
}

// answer is about the first command after the handshake. An error of the server is
// proof enough of TLS.
func (e expected) answer(r *checklist.Rows, n tlsprobe.Node) {
	switch s := n.Session; {
	case s == nil:
		r.Skip(checkAnswer, untrusted, "")
	case s.Err != nil && !demanded(n):
		r.Fail(checkAnswer, fmt.Sprintf("no answer after a good handshake: %v", s.Err), "find out how the node is: "+e.Describe)
	case s.Err != nil:
		r.Skip(checkAnswer, "the server wants a client certificate first", "")
	case s.Refusal != "":
		reason := fmt.Sprintf("TLS is fine; the server answers %q, which is a matter of users, not of TLS", s.Refusal)
		if !e.LoggedIn {
			reason += " (--valkey-user logs in)"
		}
		r.Pass(checkAnswer, reason)
	default:
		r.Pass(checkAnswer, "PONG over TLS")
	}
}

// demanded is whether the server wanted a certificate of the client. With TLS 1.3
// it says so only after the handshake.
func demanded(n tlsprobe.Node) bool {
	return n.Own.ClientCertificate && (n.Own.Err != nil || n.Session != nil && n.Session.Err != nil)
}

func clientCertificate(r *checklist.Rows, n tlsprobe.Node) {
	const fix = "the manager sets tls-auth-clients no: the server runs with other settings; replace it with kubectl valkey restart"
	switch {
	case !n.Own.Trusted:
		r.Skip(checkNoClient, "the certificate shown is not trusted", "")
	case demanded(n):
		r.Fail(checkNoClient, "the server demands a client certificate", fix)
	case n.Own.ClientCertificate:
		r.Fail(checkNoClient, "the server asks for a client certificate, though it takes clients without one", fix)
	default:
		r.Pass(checkNoClient, "none is asked for")
	}
}

func foreign(r *checklist.Rows, h *tlsprobe.Handshake) {
	switch {
	case h == nil:
		r.Skip(checkForeign, "the certificate shown is not trusted", "")
	case h.Trusted:
		r.Fail(checkForeign, "a client that trusts another CA accepts the server", "the client does not verify what it is shown: check the machine that this runs on")
	case len(h.Chain) == 0:
		r.Skip(checkForeign, fmt.Sprintf("no certificate was shown: %v", errors.Join(h.DialErr, h.Err)), "")
	default:
		r.Pass(checkForeign, "a client that trusts another CA refuses the server")
	}
}

func (e expected) plaintext(r *checklist.Rows, check string, p *tlsprobe.Plaintext) {
	switch {
	case p == nil:
		r.Skip(check, untrusted, "")
	case p.DialErr != nil:
		r.Skip(check, p.DialErr.Error(), "")
	case p.Answered():
		r.Fail(check, fmt.Sprintf("a plaintext PING is answered with %q: this is not a server of a TLS cluster", strings.TrimSpace(string(p.Reply))),
			"send it nothing; find out what runs there: "+e.Describe)
	default:
		r.Pass(check, "a plaintext PING gets no reply")
	}
}

// bus demands more than the client port: peers need certificates there.
func (e expected) bus(r *checklist.Rows, n tlsprobe.Node) {
	switch h := n.Bus; {
	case h == nil:
		r.Skip(checkBus, "not tried", "")
	case h.DialErr != nil:
		r.Fail(checkBus, h.DialErr.Error(), e.unreachableFix(h.DialErr))
	case !h.Trusted:
		reason, fix := e.mistrust(*h)
		if len(h.Chain) == 0 {
			fix = "the manager sets tls-cluster yes: the server runs with other settings; replace it with " + e.Restart
		}
		r.Fail(checkBus, reason, fix)
	case n.BusPlain != nil && n.BusPlain.Answered():
		r.Fail(checkBus, fmt.Sprintf("something is answered in plaintext: %q", n.BusPlain.Reply), "find out what runs there: "+e.Describe)
	case !h.ClientCertificate:
		r.Fail(checkBus, "peers without a certificate are let in", "a Valkey server always demands one on its bus: find out what runs there: "+e.Describe)
	default:
		r.Pass(checkBus, "TLS only, and peers have to show a certificate")
	}
}

func (e expected) replication(r *checklist.Rows, s *tlsprobe.Session) {
	const login = "log in with --valkey-user NAME --password-stdin; the user needs the command info"
	switch {
	case s == nil || s.Err != nil:
		r.Skip(checkReplication, "no command was answered", "")
	case s.Refusal != "":
		r.Skip(checkReplication, fmt.Sprintf("the server answers %q", s.Refusal), login)
	case s.ReplicationRefusal != "":
		r.Skip(checkReplication, fmt.Sprintf("the server answers %q", s.ReplicationRefusal), login)
	case s.Replication["role"] != "slave":
		r.Pass(checkReplication, fmt.Sprintf("a primary; replicas that follow it: %s", orElse(s.Replication["connected_slaves"], "0")))
	case s.Replication["master_link_status"] == "up":
		r.Pass(checkReplication, "a replica; its link to the primary is up")
	default:
		r.Fail(checkReplication, fmt.Sprintf("a replica; its link to the primary has been down for %s s", orElse(s.Replication["master_link_down_since_seconds"], "some")),
			"the server's log has the reason: "+e.Describe+"; peers verify each other by ca.crt, and need client auth in the certificate")
	}
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
