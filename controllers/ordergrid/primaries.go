package ordergrid

// primaries assigns the preferred primary of each partition of a shard to its pods, so that no pod has more than its
// share. asked and before are by partition as in partitions: the requested pod, and the one in the record; "" for none.
// A partition keeps its pod unless the pod is not among them or has too many; requested pods do not count for that.
func primaries(pods []string, asked, before []string) []string {
	chosen := make([]string, len(before))
	if len(pods) == 0 {
		return chosen
	}
	has, kept, most := make(map[string]int, len(pods)), map[string]int{}, (len(before)+len(pods)-1)/len(pods)
	for _, pod := range pods {
		has[pod] = 0
	}
	give := func(i int, pod string) {
		chosen[i] = pod
		has[pod]++
	}
	for i, pod := range asked {
		if _, there := has[pod]; there {
			give(i, pod)
		}
	}
	for i, pod := range before {
		if _, there := has[pod]; there && kept[pod] < most && chosen[i] == "" {
			give(i, pod)
			kept[pod]++
		}
	}
	for i := range chosen {
		if chosen[i] != "" {
			continue
		}
		fewest := pods[0]
		for _, pod := range pods {
			if has[pod] < has[fewest] {
				fewest = pod
			}
		}
		give(i, fewest)
	}
	return chosen
}
