// Package kinds renders the reference page of the API from the CRDs, so that it
// shows what the API server enforces: limits, defaults and the words of every
// rule.
package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const header = `<!-- Made by make generate from deploy/crd; edits are lost. -->

# Kinds

Group and version of all kinds: ` + "`%s`" + `. The category ` + "`%s`" + ` names them all: ` + "`kubectl get %s -A`" + `.
`

// order is the order of a first reading: the menu, then what is made from it.
var order = []string{"ValkeyImage", "ValkeyConfig", "ValkeyRole", "ValkeyCluster", "ValkeyNode"}

// kubernetesOwn are fields whose type Kubernetes documents.
var kubernetesOwn = map[string]string{
	"conditions":  "list of Kubernetes conditions",
	"tolerations": "list of Kubernetes tolerations",
}

// Page renders one page from the texts of the CRDs.
func Page(crds ...[]byte) (string, error) {
	var parsed []apiextensionsv1.CustomResourceDefinition
	for _, text := range crds {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			return "", fmt.Errorf("read a CRD: %w", err)
		}
		if !slices.Contains(order, crd.Spec.Names.Kind) {
			return "", fmt.Errorf("kind %q has no place in the reference: add it to the order of kinds", crd.Spec.Names.Kind)
		}
		parsed = append(parsed, crd)
	}
	if len(parsed) == 0 {
		return "", fmt.Errorf("no CRD given")
	}
	slices.SortFunc(parsed, func(a, b apiextensionsv1.CustomResourceDefinition) int {
		return slices.Index(order, a.Spec.Names.Kind) - slices.Index(order, b.Spec.Names.Kind)
	})

	var page strings.Builder
	category := strings.Join(parsed[0].Spec.Names.Categories, " ")
	fmt.Fprintf(&page, header, parsed[0].Spec.Group+"/"+parsed[0].Spec.Versions[0].Name, category, category)
	page.WriteString("\n| Kind | Scope | Short name | What it is |\n|---|---|---|---|\n")
	for i := range parsed {
		names := parsed[i].Spec.Names
		fmt.Fprintf(&page, "| [%s](#%s) | %s | `%s` | %s |\n", names.Kind, strings.ToLower(names.Kind),
			scope(parsed[i].Spec.Scope), strings.Join(names.ShortNames, "`, `"), cell(schemaOf(&parsed[i]).Description))
	}
	for i := range parsed {
		kind(&page, &parsed[i])
	}
	return page.String(), nil
}

func scope(s apiextensionsv1.ResourceScope) string {
	if s == apiextensionsv1.ClusterScoped {
		return "cluster"
	}
	return "namespace"
}

func schemaOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

func kind(page *strings.Builder, crd *apiextensionsv1.CustomResourceDefinition) {
	schema := schemaOf(crd)
	fmt.Fprintf(page, "\n## %s\n\n%s\n", crd.Spec.Names.Kind, prose(schema.Description))
	for _, part := range []string{"spec", "status"} {
		props, ok := schema.Properties[part]
		if !ok {
			continue
		}
		fmt.Fprintf(page, "\n### %s %s\n\n%s\n\n", crd.Spec.Names.Kind, part, prose(props.Description))
		page.WriteString("| Field | Type | Rules | Meaning |\n|---|---|---|---|\n")
		fields(page, "", &props)
	}
	rules := append(messages("", schema), nested("", schema)...)
	if len(rules) > 0 {
		page.WriteString("\nRules that look at more than one field, in the words of the error:\n\n")
		for _, rule := range rules {
			fmt.Fprintf(page, "- %s\n", rule)
		}
	}
	if columns := crd.Spec.Versions[0].AdditionalPrinterColumns; len(columns) > 0 {
		var names []string
		for _, column := range columns {
			names = append(names, column.Name)
		}
		fmt.Fprintf(page, "\nColumns of `kubectl get`: %s.\n", strings.Join(names, ", "))
	}
}

// fields writes a row for every field under one object, depth first.
func fields(page *strings.Builder, prefix string, object *apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		field := object.Properties[name]
		path := prefix + name
		var notes []string
		if slices.Contains(object.Required, name) {
			notes = append(notes, "required")
		}
		notes = append(notes, limits(&field)...)
		if scalar(&field) {
			notes = append(notes, messages("", &field)...)
		}
		typ, inner, step := typeOf(name, &field)
		fmt.Fprintf(page, "| `%s` | %s | %s | %s |\n", path, typ, strings.Join(notes, "; "), cell(field.Description))
		if inner != nil {
			fields(page, path+step, inner)
		}
	}
}

// typeOf names a field's type; inner is the object to go on with, if any, and
// step what leads from the field into it.
func typeOf(name string, field *apiextensionsv1.JSONSchemaProps) (typ string, inner *apiextensionsv1.JSONSchemaProps, step string) {
	if own, ok := kubernetesOwn[name]; ok {
		return own, nil, ""
	}
	switch {
	case field.XIntOrString:
		return "quantity", nil, ""
	case field.Type == "array" && field.Items != nil && field.Items.Schema != nil:
		item := field.Items.Schema
		itemType, itemInner, itemStep := typeOf("", item)
		return "list of " + itemType, itemInner, "[]" + itemStep
	case field.Type == "object" && field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		value := field.AdditionalProperties.Schema
		return "map of " + value.Type, nil, ""
	case field.Type == "object":
		return "object", field, "."
	case field.Format == "date-time":
		return "time", nil, ""
	default:
		return field.Type, nil, ""
	}
}

func scalar(field *apiextensionsv1.JSONSchemaProps) bool {
	return field.Type != "object" || field.AdditionalProperties != nil
}

// limits lists what the schema allows, in words.
func limits(field *apiextensionsv1.JSONSchemaProps) []string {
	var notes []string
	if len(field.Enum) > 0 {
		var values []string
		for _, value := range field.Enum {
			values = append(values, "`"+strings.Trim(string(value.Raw), `"`)+"`")
		}
		notes = append(notes, strings.Join(values, " or "))
	}
	if field.Default != nil {
		notes = append(notes, "default `"+strings.Trim(string(field.Default.Raw), `"`)+"`")
	}
	if field.Minimum != nil || field.Maximum != nil {
		notes = append(notes, span(number(field.Minimum), number(field.Maximum), ""))
	}
	if field.MinItems != nil || field.MaxItems != nil {
		notes = append(notes, span(count(field.MinItems), count(field.MaxItems), " entries"))
	}
	if field.MaxProperties != nil {
		notes = append(notes, span("", count(field.MaxProperties), " keys"))
	}
	if field.MaxLength != nil {
		notes = append(notes, span(count(field.MinLength), count(field.MaxLength), " characters"))
	}
	if field.Pattern != "" && !field.XIntOrString {
		notes = append(notes, "matches `"+strings.ReplaceAll(field.Pattern, "|", `\|`)+"`")
	}
	if len(field.XListMapKeys) > 0 {
		notes = append(notes, "unique by `"+strings.Join(field.XListMapKeys, "`, `")+"`")
	}
	if part := element(field); part != nil && scalar(part) {
		for _, note := range append(limits(part), messages("", part)...) {
			notes = append(notes, "each: "+note)
		}
	}
	return notes
}

// element is the schema of a list's items or of a map's values.
func element(field *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if field.Items != nil {
		return field.Items.Schema
	}
	if field.AdditionalProperties != nil {
		return field.AdditionalProperties.Schema
	}
	return nil
}

func number(n *float64) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

func count(n *int64) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

func span(low, high, unit string) string {
	switch {
	case low == "" || low == "0" && unit != "":
		return "at most " + high + unit
	case high == "":
		return "at least " + low + unit
	case low == high:
		return "exactly " + low + unit
	default:
		return low + " to " + high + unit
	}
}

// messages are the rules on one schema in the words of their errors.
func messages(path string, schema *apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	for _, rule := range schema.XValidations {
		text := rule.Message
		if text == "" {
			text = rule.Rule
		}
		text = literal.Replace(text)
		if path != "" {
			text = "`" + path + "`: " + text
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// nested are the rules on objects below a schema.
func nested(path string, schema *apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		field := schema.Properties[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		for field.Type == "array" && field.Items != nil && field.Items.Schema != nil {
			field, at = *field.Items.Schema, at+"[]"
		}
		if scalar(&field) {
			continue
		}
		out = append(out, messages(at, &field)...)
		out = append(out, nested(at, &field)...)
	}
	return out
}

// prose joins the wrapped lines of a doc comment, paragraph by paragraph.
func prose(text string) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = cell(p)
	}
	return strings.Join(paragraphs, "\n\n")
}

// literal keeps Markdown from reading a plain text as markup.
var literal = strings.NewReplacer("<", `\<`, "_", `\_`, "*", `\*`, "|", `\|`)

// cell makes a plain text fit a table cell.
func cell(text string) string { return literal.Replace(strings.Join(strings.Fields(text), " ")) }
