//go:build api

package validation

import (
	"fmt"
	"strings"
	"testing"
)

func TestRole(t *testing.T) {
	categories := func(text string) string { return fmt.Sprintf(`{spec: {categories: [%s]}}`, text) }
	commands := func(text string) string { return fmt.Sprintf(`{spec: {commands: [%s]}}`, text) }
	rules := func(field string, n int) string {
		return fmt.Sprintf(`{spec: {%s: %s}}`, field, list(n, func(i int) string { return fmt.Sprintf(`{name: r%d, access: allow}`, i) }))
	}
	const nameRule = "name must start with a letter and hold only letters, digits, '_' and '-'"
	run(t, "ValkeyRole", []manifest{
		{intent: "a role that grants nothing is accepted", overlay: `{}`},
		{intent: "categories and commands are accepted", overlay: `{spec: {categories: [{name: read, access: allow}], commands: [{name: config, subcommand: get, access: allow}, {name: FLUSHALL, access: deny}]}}`},
		{intent: "64 categories are accepted", overlay: rules("categories", 64)},
		{intent: "65 categories are refused", overlay: rules("categories", 65), refusal: refused("spec.categories", "must have at most 64 items")},
		{intent: "256 commands are accepted", overlay: rules("commands", 256)},
		{intent: "257 commands are refused", overlay: rules("commands", 257), refusal: refused("spec.commands", "must have at most 256 items")},
		{intent: "a category with @ is refused", overlay: categories(`{name: "@read", access: allow}`), refusal: refused("spec.categories[0].name", nameRule, "write categories without @")},
		{intent: "a category without a name is refused", overlay: categories(`{access: allow}`), refusal: refused("spec.categories[0].name: Required value")},
		{intent: "another access is refused", overlay: categories(`{name: read, access: grant}`), refusal: refused("spec.categories[0].access", `"allow", "deny"`)},
		{intent: "access is required", overlay: commands(`{name: get}`), refusal: refused("spec.commands[0].access: Required value")},
		{intent: "an empty command is refused", overlay: commands(`{name: "", access: allow}`), refusal: refused("spec.commands[0].name", "at least 1 chars")},
		{intent: "a command with its subcommand in the name is refused", overlay: commands(`{name: "config|get", access: allow}`), refusal: refused("spec.commands[0].name", nameRule, "subcommands in their own field")},
		{intent: "a command with a rule behind it is refused", overlay: commands(`{name: "get ~*", access: allow}`), refusal: refused("spec.commands[0].name", nameRule)},
		{intent: "a command that starts with a digit is refused", overlay: commands(`{name: 2get, access: allow}`), refusal: refused("spec.commands[0].name", nameRule)},
		{intent: "a subcommand with a space is refused", overlay: commands(`{name: config, subcommand: "get x", access: allow}`), refusal: refused("spec.commands[0].subcommand", nameRule)},
		{intent: "a command of 64 characters is accepted", overlay: commands(fmt.Sprintf(`{name: %s, access: allow}`, strings.Repeat("c", 64)))},
		{intent: "a command of 65 characters is refused", overlay: commands(fmt.Sprintf(`{name: %s, access: allow}`, strings.Repeat("c", 65))), refusal: refused("spec.commands[0].name", "64")},
	})
}
