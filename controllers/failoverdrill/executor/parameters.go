package executor

import "slices"

// check validates the parameters of one kind of network fault: parameters that the kind does not use must not be set,
// because they would be ignored silently.
func (p *Parameters) check(kind string) error {
	if err := p.checkDelay(kind); err != nil {
		return err
	}
	for _, percent := range []struct {
		field, kind string
		value       float64
	}{
		{"loss", NetworkLoss, p.Loss},
		{"duplicate", NetworkDuplicate, p.Duplicate},
		{"corrupt", NetworkCorrupt, p.Corrupt},
	} {
		field := "parameters." + percent.field
		switch {
		case kind != percent.kind && percent.value != 0:
			return wrong(field, "%v; it belongs to %s and this is %s", percent.value, percent.kind, kind)
		case kind == percent.kind && !(percent.value > 0 && percent.value <= 100): // so that NaN is refused
			return wrong(field, "%v is not above 0 and at most 100 per cent", percent.value)
		}
	}
	if !slices.Contains([]string{"", DirectionTo, DirectionFrom, DirectionBoth}, p.Direction) {
		return wrong("parameters.direction", "%.80q is not a direction; use To, From or Both", p.Direction)
	}
	if p.Interface != "" && (!interfaceForm.MatchString(p.Interface) || p.Interface == "lo") {
		return wrong("parameters.interface", "%.80q is not a network interface of a pod's traffic", p.Interface)
	}
	return nil
}

func (p *Parameters) checkDelay(kind string) error {
	switch {
	case kind != NetworkDelay && p.Latency != nil:
		return wrong("parameters.latency", "%s; it belongs to %s and this is %s", p.Latency.Duration, NetworkDelay, kind)
	case kind != NetworkDelay && p.Jitter != nil:
		return wrong("parameters.jitter", "%s; it belongs to %s and this is %s", p.Jitter.Duration, NetworkDelay, kind)
	case kind != NetworkDelay:
		return nil
	case p.Latency == nil:
		return wrong("parameters.latency", "%s needs it", kind)
	case p.Latency.Duration < 0 || p.Latency.Duration > MaxLatency:
		return wrong("parameters.latency", "%s is not within 0s to %s", p.Latency.Duration, MaxLatency)
	case p.Jitter != nil && (p.Jitter.Duration < 0 || p.Jitter.Duration > p.Latency.Duration):
		return wrong("parameters.jitter", "%s is not within 0s to the latency, %s", p.Jitter.Duration, p.Latency.Duration)
	}
	return nil
}
