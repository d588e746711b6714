package replica_test

import (
	"slices"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// digests are the Digest frames while orders flow.
func (p *pair) digests(batches int) int {
	before := p.frames[wire.TypeDigest]
	for range batches {
		for range pairBatch {
			p.submit()
		}
		p.exchange()
	}
	return p.frames[wire.TypeDigest] - before
}

func comparing(tb testing.TB) *pair {
	return newPair(tb, seedOrder(tb), func(l *replica.Limits) { l.DigestEvery = pairBatch })
}

// TestDigestsGoWithTheLog: one for every DigestEvery entries, and, as states are equal, no
// answer and no alarm.
func TestDigestsGoWithTheLog(t *testing.T) {
	p := comparing(t)
	if n := p.digests(10); n != 10 {
		t.Errorf("%d Digest frames for 10 times %d entries, want 10", n, pairBatch)
	}
	if slices.Contains(p.alarms, replica.AlarmStateDiverged) {
		t.Errorf("equal states were taken for different ones: %v", p.alarms)
	}
}

// TestDigestsOfAnotherForm are not compared: they come from a release that includes more.
func TestDigestsOfAnotherForm(t *testing.T) {
	p := comparing(t)
	p.alter = func(frame []byte) {
		if wire.FrameType(frame) == wire.TypeDigest {
			frame[48]++ // the state
			frame[56]++ // the form
		}
	}
	if n := p.digests(3); n != 3 || slices.Contains(p.alarms, replica.AlarmStateDiverged) {
		t.Errorf("%d Digest frames of another form, alarms %v; want 3 and no StateDiverged", n, p.alarms)
	}
}

// TestForgedDigest: a frame in the primary's name only makes a copy send its own digest,
// which the primary compares.
func TestForgedDigest(t *testing.T) {
	p := comparing(t)
	forged := 0
	p.alter = func(frame []byte) {
		if wire.FrameType(frame) == wire.TypeDigest && forged == 0 {
			forged++
			frame[48]++
		}
	}
	if n := p.digests(3); n != 4 {
		t.Errorf("%d Digest frames, want 3 and an answer to the one that was forged", n)
	}
	if want := []replica.AlarmKind{replica.AlarmStateDiverged}; !slices.Equal(p.alarms[len(p.alarms)-1:], want) || len(p.a.Status().Config.InSync) != 2 {
		t.Errorf("alarms %v, in sync %v; want the copy's alarm alone, and both in sync", p.alarms, p.a.Status().Config)
	}
}

// TestStateDiffers: both raise the alarm, and the primary proposes to continue without the
// copy. A second difference is only reported.
func TestStateDiffers(t *testing.T) {
	p := comparing(t)
	p.digests(1)
	p.alarms = nil
	p.b.Spoil()
	p.digests(1)
	p.a.Step(p.now, &replica.Event{Kind: replica.EventTick}, &p.ao)
	p.digests(1)
	if want := []replica.AlarmKind{replica.AlarmStateDiverged, replica.AlarmStateDiverged, replica.AlarmRetired, replica.AlarmStateDiverged, replica.AlarmStateDiverged}; !slices.Equal(p.alarms, want) {
		t.Errorf("alarms %v, want %v: of the copy, of the primary, its proposal, and both again", p.alarms, want)
	}
}
