package ordergrid

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// lackedTerms is empty if one of the terms of a required node affinity matches the node. The operator writes one term
// itself; others come from spec.podTemplate.
func lackedTerms(terms []corev1.NodeSelectorTerm, node *corev1.Node) string {
	if len(terms) == 0 {
		return ""
	}
	var first string
	for i := range terms {
		lack := lackedTerm(&terms[i], node)
		if lack == "" {
			return ""
		}
		if first == "" {
			first = lack
		}
	}
	if len(terms) > 1 {
		return fmt.Sprintf("none of the %d terms of the required node affinity, the first lacks: %s", len(terms), first)
	}
	return first
}

func lackedTerm(term *corev1.NodeSelectorTerm, node *corev1.Node) string {
	if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
		return "a node affinity term without expressions, which matches nothing"
	}
	for _, r := range term.MatchExpressions {
		value, there := node.Labels[r.Key]
		if !satisfied(&r, value, there) {
			return expected("label", &r)
		}
	}
	for _, r := range term.MatchFields { // the API server admits metadata.name only
		if !satisfied(&r, node.Name, true) {
			return expected("field", &r)
		}
	}
	return ""
}

func satisfied(r *corev1.NodeSelectorRequirement, value string, there bool) bool {
	switch r.Operator {
	case corev1.NodeSelectorOpExists:
		return there
	case corev1.NodeSelectorOpDoesNotExist:
		return !there
	case corev1.NodeSelectorOpIn:
		return there && slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !there || !slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		has, err := strconv.ParseInt(value, 10, 64)
		if !there || err != nil || len(r.Values) != 1 {
			return false
		}
		limit, err := strconv.ParseInt(r.Values[0], 10, 64)
		return err == nil && (r.Operator == corev1.NodeSelectorOpGt && has > limit || r.Operator == corev1.NodeSelectorOpLt && has < limit)
	}
	return true // an operator of a later Kubernetes: left to the scheduler
}

func expected(what string, r *corev1.NodeSelectorRequirement) string {
	switch r.Operator {
	case corev1.NodeSelectorOpExists:
		return fmt.Sprintf("no %s %s", what, r.Key)
	case corev1.NodeSelectorOpDoesNotExist:
		return fmt.Sprintf("%s %s", what, r.Key)
	}
	return fmt.Sprintf("%s %s not %s %s", what, r.Key, r.Operator, fewNames(append([]string(nil), strings.Fields(strings.Join(r.Values, " "))...)))
}
