package apply

import "reflect"

// covers reports whether the live value holds everything that is wanted. Fields that only the live object has, such as
// defaults, status and what other managers added, do not count.
func covers(have, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		if have == nil {
			return len(want) == 0
		}
		have, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for k, w := range want {
			if k == "apiVersion" || k == "kind" {
				// A typed object read from the API server does not carry its kind.
				if _, there := have[k]; !there {
					continue
				}
			}
			if !covers(have[k], w) {
				return false
			}
		}
		return true
	case []any:
		if have == nil {
			return len(want) == 0
		}
		have, ok := have.([]any)
		if !ok {
			return false
		}
		return coversList(have, want)
	default:
		return reflect.DeepEqual(have, want)
	}
}

// coversList compares lists of objects by their merge key, so that a container added by an admission webhook is left
// alone, and all other lists item by item, in order and in number.
func coversList(have, want []any) bool {
	if len(want) > 0 && mergeKey(want[0]) != "" {
		return coversByKey(have, want)
	}
	if len(have) != len(want) {
		return false
	}
	for i := range want {
		if !covers(have[i], want[i]) {
			return false
		}
	}
	return true
}

func coversByKey(have, want []any) bool {
	live := make(map[string]any, len(have))
	for _, item := range have {
		live[mergeKey(item)] = item
	}
	for _, item := range want {
		found, ok := live[mergeKey(item)]
		if !ok || !covers(found, item) {
			return false
		}
	}
	return true
}

// mergeKey identifies an item of a list that server-side apply merges by key: containers, volumes, env and ports have a
// name, volume mounts a mountPath, owner references a uid. Empty: the list is not merged.
func mergeKey(item any) string {
	m, ok := item.(map[string]any)
	if !ok {
		return ""
	}
	for _, key := range []string{"mountPath", "uid", "name"} {
		if s, ok := m[key].(string); ok {
			return key + "=" + s
		}
	}
	return ""
}
