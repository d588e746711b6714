// Package allow holds what an administrator allows the users of a namespace beyond the default. It is set by the
// operator's flags, so that only users who may change the operator can extend it, not those who may only create a grid
// or a drill.
package allow

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// AllNamespaces in place of a namespace means all namespaces.
const AllNamespaces = "*"

// List is what is allowed, by namespace or AllNamespaces. The zero value allows nothing.
type List map[string][]string

// Parse reads entries of the form NAMESPACE=WHAT, as given by flags. check validates a WHAT.
func Parse(flag string, entries []string, check func(what string) error) (List, error) {
	list := List{}
	for _, e := range entries {
		namespace, what, found := strings.Cut(e, "=")
		if !found || what == "" {
			return nil, fmt.Errorf("%s: %q is not NAMESPACE=WHAT; write it as trading=WHAT, or *=WHAT for every namespace", flag, e)
		}
		if namespace != AllNamespaces && len(validation.IsDNS1123Label(namespace)) > 0 {
			return nil, fmt.Errorf("%s: %q: %q is not the name of a namespace; write one, or * for every namespace", flag, e, namespace)
		}
		if err := check(what); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", flag, e, err)
		}
		if !slices.Contains(list[namespace], what) {
			list[namespace] = append(list[namespace], what)
		}
	}
	return list, nil
}

// In returns what is allowed in a namespace, sorted.
func (l List) In(namespace string) []string {
	all := slices.Concat(l[AllNamespaces], l[namespace])
	slices.Sort(all)
	return slices.Compact(all)
}

// Sentence describes what is allowed in a namespace, for a message.
func (l List) Sentence(namespace string) string {
	if all := l.In(namespace); len(all) > 0 {
		return fmt.Sprintf("allowed in namespace %s: %s", namespace, strings.Join(all, ", "))
	}
	return fmt.Sprintf("allowed in namespace %s: none", namespace)
}
