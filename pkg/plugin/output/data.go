package output

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Values of --output.
const (
	Text = ""
	JSON = "json"
	YAML = "yaml"
	Wide = "wide"
	Name = "name"
)

// CheckFormat returns an error that lists the allowed formats unless format is
// one of them. Text, the default, always is.
func CheckFormat(format string, allowed ...string) error {
	if format == Text || slices.Contains(allowed, format) {
		return nil
	}
	return fmt.Errorf("--output %q is not known: use %s", format, strings.Join(allowed, ", "))
}

// Data is v as JSON or YAML, with the names of its json tags.
func Data(format string, v any) (string, error) {
	var data []byte
	var err error
	switch format {
	case JSON:
		data, err = json.MarshalIndent(v, "", "    ")
		data = append(data, '\n')
	case YAML:
		data, err = yaml.Marshal(v)
	default:
		err = CheckFormat(format, JSON, YAML)
	}
	return string(data), err
}
