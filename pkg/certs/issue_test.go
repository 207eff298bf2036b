package certs

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestASelfSignedSecretPassesEveryCheck(t *testing.T) {
	outside := Names{Service: service, External: []string{"shard-0.example.com"}}
	data, err := SelfSigned(outside, now, 90*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	leaf, fatal, warnings := Check(data, tlsType, outside, now)
	if len(fatal)+len(warnings) > 0 {
		t.Errorf("fatal %v, warnings %v", fatal, warnings)
	}
	if want := []string{service, wildcard, "shard-0.example.com"}; !slices.Equal(leaf.DNSNames, want) {
		t.Errorf("names %v, want %v", leaf.DNSNames, want)
	}
	if !leaf.NotAfter.Equal(now.Add(90 * 24 * time.Hour)) {
		t.Errorf("it ends %s", leaf.NotAfter)
	}
	again, err := SelfSigned(outside, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for key := range data {
		if bytes.Equal(data[key], again[key]) {
			t.Errorf("%s is the same twice", key)
		}
	}
}

func TestASelfSignedSecretForTheLongestNames(t *testing.T) {
	long := Names{Service: strings.Repeat("c", 53) + "." + strings.Repeat("n", 63) + ".svc.cluster.local"}
	data, err := SelfSigned(long, now, time.Hour*24*90)
	if err != nil {
		t.Fatal(err)
	}
	if _, fatal, warnings := Check(data, tlsType, long, now); len(fatal)+len(warnings) > 0 {
		t.Errorf("fatal %v, warnings %v", fatal, warnings)
	}
}

func TestAFileIsSortedByWhatItsBlocksAre(t *testing.T) {
	ca := issue(t, caTemplate("ca"), nil)
	middle := issue(t, caTemplate("middle"), &ca)
	leaf := issue(t, leafTemplate(), &middle)
	data := Sort(concat(leaf.keyPEM(t), leaf.certPEM(), middle.certPEM(), ca.certPEM()))
	want := map[string]string{
		CertificateKey: string(concat(leaf.certPEM(), middle.certPEM())), PrivateKeyKey: string(leaf.keyPEM(t)), CAKey: string(ca.certPEM()),
	}
	for key, text := range want {
		if string(data[key]) != text {
			t.Errorf("%s = %s", key, data[key])
		}
	}
}
