package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// contentDigits of a SHA-256 tell one version of a file from the next.
const contentDigits = 16

// TLSMaterial is what nodes load: PEM, checked before it gets here.
type TLSMaterial struct {
	CA, Certificate, Key []byte
}

// TLSFiles are the names, within TLSDir, of the three files that belong together.
type TLSFiles struct {
	CA, Certificate, Key string
}

// Files names the files of the material. Each name holds a hash of the content,
// so that a server that accepts the names proves that it has read the content:
// one path for all times could still show the file before.
func (m TLSMaterial) Files() TLSFiles {
	return TLSFiles{
		CA:          "ca-" + contentHash(m.CA) + ".crt",
		Certificate: "tls-" + contentHash(m.Certificate) + ".crt",
		Key:         "tls-" + contentHash(m.Key) + ".key",
	}
}

func contentHash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])[:contentDigits]
}

// TLSSecret is the manager's checked copy of the TLS Secret. Its type is Opaque,
// because kubernetes.io/tls fixes the names of the files.
func TLSSecret(cluster *v1alpha1.ValkeyCluster, material TLSMaterial) *corev1.Secret {
	files := material.Files()
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: clusterMeta(cluster, TLSSecretName(cluster.Name), Labels(cluster.Name)),
		Type:       corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			files.CA:          material.CA,
			files.Certificate: material.Certificate,
			files.Key:         material.Key,
		},
	}
}

// TLSFilesOf finds the files in the manager's copy. It fails unless there is one
// of each.
func TLSFilesOf(secret *corev1.Secret) (TLSFiles, error) {
	var files TLSFiles
	for _, want := range []struct {
		name           *string
		prefix, suffix string
	}{
		{&files.CA, "ca-", ".crt"},
		{&files.Certificate, "tls-", ".crt"},
		{&files.Key, "tls-", ".key"},
	} {
		var found []string
		for name := range secret.Data {
			if strings.HasPrefix(name, want.prefix) && strings.HasSuffix(name, want.suffix) {
				found = append(found, name)
			}
		}
		if len(found) != 1 {
			slices.Sort(found)
			return TLSFiles{}, fmt.Errorf("secret %s/%s holds %d files %s*%s, want one: %v",
				secret.Namespace, secret.Name, len(found), want.prefix, want.suffix, found)
		}
		*want.name = found[0]
	}
	return files, nil
}
