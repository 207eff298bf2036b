package objects

import (
	"encoding/hex"
	"fmt"
	"io"

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
)

// passwordBytes of randomness make a password of twice as many hex digits, which
// need no quoting anywhere.
const passwordBytes = 64

// Passwords of the two system users. They print as a placeholder.
type Passwords struct {
	Operator    string
	Replication string
}

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
		Operator:    string(secret.Data[AuthKeyOperator]),
		Replication: string(secret.Data[AuthKeyReplication]),
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
			AuthKeyPrimaryAuth: []byte("primaryauth \"" + passwords.Replication + "\"\n"),
		},
	}
}
