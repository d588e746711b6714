package wire

// TypeFeatures answers a Beacon or a Prepare with FlagWantFeatures.
const TypeFeatures Type = 0x43

// FeatureSet is what a release knows beyond what flags of PrepareAck say, as bits. An entry that
// needs a feature is made once every replica of the partition has said that it knows it.
type FeatureSet uint64

// The features. A bit keeps its meaning for good.
const (
	FeatureFixBooks      FeatureSet = 1 << iota // orders of FIX sessions that match, their reports and states
	FeatureKillCancels                          // kills that cancel what rests in books
	FeatureSessionOrders                        // mass cancels of FIX sessions
	FeatureInvoke                               // changes of regions that a function decided, with their reply
	_
	FeatureLapse // FIX sessions whose orders are cancelled when they are gone
)

// Features are all features of this release.
const Features = FeatureFixBooks | FeatureKillCancels | FeatureSessionOrders | FeatureInvoke | FeatureLapse

// FeaturesAre are those of the sender.
type FeaturesAre struct {
	PeerHead
	Known FeatureSet
}

// AppendFeatures appends a Features frame.
func AppendFeatures(dst []byte, p PartitionID, m *FeaturesAre) []byte {
	dst, f := begin(dst, TypeFeatures, 0, p, peerFixed+8)
	putHead(f, &m.PeerHead)
	le.PutUint64(f[32:], uint64(m.Known))
	return dst
}

// DecodeFeatures decodes a Features frame.
func DecodeFeatures(f []byte, m *FeaturesAre) error {
	if err := open(f, TypeFeatures, peerFixed+8, true); err != nil {
		return err
	}
	m.get(f)
	m.Known = FeatureSet(le.Uint64(f[32:]))
	return nil
}
