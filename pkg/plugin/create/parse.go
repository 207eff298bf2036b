package create

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// pairs reads repeated key=value flags. Values may hold commas and equal signs;
// annotations often do.
func pairs[V ~string](flag string, values []string) (map[string]V, error) {
	if len(values) == 0 {
		return nil, nil
	}
	m := map[string]V{}
	for _, v := range values {
		key, value, ok := strings.Cut(v, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--%s %q must be key=value", flag, v)
		}
		if _, twice := m[key]; twice {
			return nil, fmt.Errorf("--%s %s is given twice", flag, key)
		}
		m[key] = V(value)
	}
	return m, nil
}

// parseTolerations reads tolerations in the notation of kubectl taint: an equal
// sign compares the value, none tolerates any; no effect means all effects.
func parseTolerations(values []string) ([]corev1.Toleration, error) {
	var all []corev1.Toleration
	for _, v := range values {
		t, err := parseToleration(v)
		if err != nil {
			return nil, fmt.Errorf("--toleration %q: %w", v, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// parseToleration reads key[=value][:Effect[:seconds]].
func parseToleration(v string) (corev1.Toleration, error) {
	taint, effect, hasEffect := strings.Cut(v, ":")
	t := corev1.Toleration{Operator: corev1.TolerationOpExists, Key: taint}
	if key, value, ok := strings.Cut(taint, "="); ok {
		t.Key, t.Operator, t.Value = key, corev1.TolerationOpEqual, value
	}
	if t.Key == "" {
		return t, fmt.Errorf("name the taint's key: key=value:Effect or key:Effect")
	}
	if !hasEffect {
		return t, nil
	}
	effect, seconds, limited := strings.Cut(effect, ":")
	switch t.Effect = corev1.TaintEffect(effect); t.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		return t, fmt.Errorf("effect %q is not known: use NoSchedule, PreferNoSchedule or NoExecute", effect)
	}
	if !limited {
		return t, nil
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < 0 || t.Effect != corev1.TaintEffectNoExecute {
		return t, fmt.Errorf("only NoExecute may be followed by a number of seconds")
	}
	t.TolerationSeconds = &n
	return t, nil
}

// gatewayReference reads name or namespace/name.
func gatewayReference(v string) v1alpha1.GatewayReference {
	if namespace, name, ok := strings.Cut(v, "/"); ok {
		return v1alpha1.GatewayReference{Namespace: namespace, Name: name}
	}
	return v1alpha1.GatewayReference{Name: v}
}
