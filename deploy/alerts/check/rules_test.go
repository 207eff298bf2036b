// Package check lets Prometheus's own code read the alert rules. It is a module of
// its own, so that what Prometheus depends on is nothing that the product depends on.
package check

import (
	"errors"
	"log/slog"
	"os"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

func parse(text []byte) []error {
	_, errs := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	return errs
}

func TestAlertRulesParse(t *testing.T) {
	text, err := os.ReadFile("../valkey.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if errs := parse(text); len(errs) > 0 {
		t.Error(errors.Join(errs...))
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	for _, text := range []string{
		"groups: [{name: x, rules: [{alert: A, expr: 'valkey_clusters ><'}]}]",
		"groups: [{name: x, rules: [{alert: A, expr: up, annotations: {summary: '{{ .Nothing'}}]}]",
		"groups: [{name: x, rules: [{alert: A, expr: up, lables: {}}]}]",
	} {
		if len(parse([]byte(text))) == 0 {
			t.Errorf("it was accepted: %s", text)
		}
	}
}
