package objects

import (
	"encoding/hex"
	"fmt"
	"io"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// Keys of the auth Secret.
const (
	// AuthKeyOperator holds the password of the manager's user.
	AuthKeyOperator = "operator-password"
	// AuthKeyReplication holds the password of the replication user.
	AuthKeyReplication = "repl-password"
	// AuthKeyPrimaryAuth holds the line that valkey.conf includes. It is the only
	// key that pods mount.
	AuthKeyPrimaryAuth = "primaryauth.conf"
	// AuthKeyNextOperator and AuthKeyNextReplication hold the passwords to come while
	// a rotation is under way: servers accept them beside the ones in use.
	AuthKeyNextOperator    = "next-operator-password"
	AuthKeyNextReplication = "next-repl-password"
	// AuthKeyRotation holds the ID of the request that was carried out last.
	AuthKeyRotation = "rotation"
)

// passwordBytes of randomness make a password of twice as many hex digits, which
// need no quoting anywhere.
const passwordBytes = 64

// Passwords of the two system users. They print as a placeholder.
type Passwords struct {
	Operator    string
	Replication string
	// NextOperator and NextReplication are set while a rotation is under way.
	NextOperator    string
	NextReplication string
}

// Rotating reports whether a rotation is under way.
func (p Passwords) Rotating() bool { return p.NextOperator != "" && p.NextReplication != "" }

// Format keeps the passwords out of logs and errors, whatever the verb.
func (Passwords) Format(s fmt.State, _ rune) { fmt.Fprint(s, "[redacted]") }

// MarshalJSON keeps the passwords out of structured logs.
func (Passwords) MarshalJSON() ([]byte, error) { return []byte(`"[redacted]"`), nil }

// NewPasswords draws two passwords of 128 hex digits each. random has to be
// cryptographically secure (crypto/rand.Reader).
func NewPasswords(random io.Reader) (Passwords, error) {
	var b [2 * passwordBytes]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return Passwords{}, fmt.Errorf("draw passwords: %w", err)
	}
	return Passwords{
		Operator:    hex.EncodeToString(b[:passwordBytes]),
		Replication: hex.EncodeToString(b[passwordBytes:]),
	}, nil
}

// PasswordsOf reads the passwords from the data of an auth Secret. It fails when
// one is missing, which only an edit by hand can bring about.
func PasswordsOf(secret *corev1.Secret) (Passwords, error) {
	p := Passwords{
		Operator:        string(secret.Data[AuthKeyOperator]),
		Replication:     string(secret.Data[AuthKeyReplication]),
		NextOperator:    string(secret.Data[AuthKeyNextOperator]),
		NextReplication: string(secret.Data[AuthKeyNextReplication]),
	}
	for _, key := range []string{AuthKeyOperator, AuthKeyReplication} {
		if len(secret.Data[key]) == 0 {
			return Passwords{}, fmt.Errorf("secret %s/%s has no key %s: restore it from a backup", secret.Namespace, secret.Name, key)
		}
	}
	return p, nil
}

// AuthSecret holds the passwords of the system users, and as a file of its own
// the directive that replicas log in with.
func AuthSecret(cluster *v1alpha1.ValkeyCluster, passwords Passwords) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: clusterMeta(cluster, AuthSecretName(cluster.Name), Labels(cluster.Name)),
		Type:       corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			AuthKeyOperator:    []byte(passwords.Operator),
			AuthKeyReplication: []byte(passwords.Replication),
			AuthKeyPrimaryAuth: primaryAuth(passwords.Replication),
		},
	}
}

func primaryAuth(password string) []byte { return []byte("primaryauth \"" + password + "\"\n") }

// NextAuthData is the content of an auth Secret to which the passwords to come are
// added.
func NextAuthData(secret *corev1.Secret, next Passwords) map[string][]byte {
	data := maps.Clone(secret.Data)
	data[AuthKeyNextOperator], data[AuthKeyNextReplication] = []byte(next.Operator), []byte(next.Replication)
	return data
}

// RotatedAuthData is the content of an auth Secret in which the passwords to come
// have become those in use, as the request with an ID asked for.
func RotatedAuthData(secret *corev1.Secret, request string) map[string][]byte {
	data := maps.Clone(secret.Data)
	next := string(data[AuthKeyNextReplication])
	data[AuthKeyOperator], data[AuthKeyReplication] = data[AuthKeyNextOperator], []byte(next)
	data[AuthKeyPrimaryAuth] = primaryAuth(next)
	data[AuthKeyRotation] = []byte(request)
	delete(data, AuthKeyNextOperator)
	delete(data, AuthKeyNextReplication)
	return data
}
