package wire

// TypeFeatures answers a Beacon or a Prepare with FlagWantFeatures.
const TypeFeatures Type = 0x43

// FeatureSet is what a release knows beyond what flags of PrepareAck say, as bits. An entry that
// needs a feature is made once every replica of the partition has said that it knows it. A frame
// that needs one is sent to a node that has said so in Welcome, which has the lowest 16 bits.
type FeatureSet uint64

// The features. A bit keeps its meaning for good.
const (
	FeatureFixBooks      FeatureSet = 1 << iota // orders of FIX sessions that match, their reports and states
	FeatureKillCancels                          // kills that cancel what rests in books
	FeatureSessionOrders                        // mass cancels of FIX sessions
	FeatureInvoke                               // changes of regions that a function decided, with their reply
	FeatureDropCopy                             // FIX sessions that get copies of reports of others
	FeatureLapse                                // FIX sessions whose orders are cancelled when they are gone
	FeatureReadOrders                           // the frame ReadOrders
	FeatureMarketBand                           // price bands in the frame Market
	FeatureLimitSource                          // limits that say which RiskProfile they are of
	FeatureCalendar                             // phases of a calendar of sessions

	FeatureFix50     FeatureSet = 1 << 10 // orders of FIX 5.0 SP2
	FeatureMapOrders FeatureSet = 1 << 11 // the frame MapOrders

	FeatureRegionSource FeatureSet = 1 << 12 // definitions of regions that say which GridRegion they are of
	FeatureRegionBatch  FeatureSet = 1 << 13 // the frame RegionBatch, and its entries
)

// Features are all features of this release.
const Features = FeatureFixBooks | FeatureKillCancels | FeatureSessionOrders | FeatureInvoke | FeatureDropCopy | FeatureLapse | FeatureReadOrders | FeatureMarketBand |
	FeatureLimitSource | FeatureCalendar | FeatureFix50 | FeatureMapOrders | FeatureRegionSource | FeatureRegionBatch

// NeededFeatures are those that a node has to know to be sent a frame of a client.
func NeededFeatures(frame []byte) FeatureSet {
	t := FrameType(frame)
	if t == TypeMarket && frame[32] == MarketBand {
		return FeatureMarketBand
	}
	return Row(t).Feature
}

// MaxComputes is how many functions of kind Compute a node may have.
const MaxComputes = 8

// FeaturesAre are those of the sender.
type FeaturesAre struct {
	PeerHead
	Known FeatureSet
	// Computes are hashes of the names of its functions of kind Compute, FNV-1a of 64 bits; the rest is 0.
	Computes [MaxComputes]uint64
}

const featuresSize = peerFixed + 8 + 8*MaxComputes

// AppendFeatures appends a Features frame.
func AppendFeatures(dst []byte, p PartitionID, m *FeaturesAre) []byte {
	dst, f := begin(dst, TypeFeatures, 0, p, featuresSize)
	putHead(f, &m.PeerHead)
	le.PutUint64(f[32:], uint64(m.Known))
	for i, h := range m.Computes {
		le.PutUint64(f[40+8*i:], h)
	}
	return dst
}

// DecodeFeatures decodes a Features frame.
func DecodeFeatures(f []byte, m *FeaturesAre) error {
	if err := open(f, TypeFeatures, featuresSize, true); err != nil {
		return err
	}
	m.get(f)
	m.Known = FeatureSet(le.Uint64(f[32:]))
	for i := range m.Computes {
		m.Computes[i] = le.Uint64(f[40+8*i:])
	}
	return nil
}
