// Package allow is what an administrator lets the users of a namespace do beyond the default. It comes with the operator's
// command line, so that who may change the operator says it, and nobody who may only create a grid or a drill.
package allow

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// AllNamespaces in the place of a namespace means every one.
const AllNamespaces = "*"

// List is what is allowed, by namespace or AllNamespaces. The zero value allows nothing.
type List map[string][]string

// Parse reads entries of the form NAMESPACE=WHAT, as the command line has them. check says what is wrong with a WHAT.
func Parse(flag string, entries []string, check func(what string) error) (List, error) {
	list := List{}
	for _, e := range entries {
		namespace, what, found := strings.Cut(e, "=")
		if !found || what == "" {
			return nil, fmt.Errorf("%s: %q is not NAMESPACE=WHAT; write it as trading=WHAT, or *=WHAT for every namespace", flag, e)
		}
		if namespace != AllNamespaces && len(validation.IsDNS1123Label(namespace)) > 0 {
			return nil, fmt.Errorf("%s: %q: %q is no name of a namespace; write one, or * for every namespace", flag, e, namespace)
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

// In gives what is allowed in a namespace, sorted.
func (l List) In(namespace string) []string {
	all := slices.Concat(l[AllNamespaces], l[namespace])
	slices.Sort(all)
	return slices.Compact(all)
}

// Sentence says what is allowed in a namespace, for a message.
func (l List) Sentence(namespace string) string {
	if all := l.In(namespace); len(all) > 0 {
		return fmt.Sprintf("allowed in namespace %s: %s", namespace, strings.Join(all, ", "))
	}
	return fmt.Sprintf("allowed in namespace %s: none", namespace)
}
