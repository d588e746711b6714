package order

// tableSize is one more than the highest tag the tables know. FIX 4.4 ends at
// 956; tags from 5000 on are user-defined. Those of FIX 5.0 SP2 are in fix_later.go.
const tableSize = 1024

// Classes of tags. Those below classMember may occur once in a message.
const (
	classPlain uint8 = iota
	classEnvelope
	classClOrdID
	classSymbol
	classAccount
	classEnum
	classQty
	classPrice
	classInt
	classBool
	classTime
	classData   // data without its length before it: always invalid
	classCount  // of a repeating group
	classMember // of a repeating group
	classNestedCount
	classDataLen // once, unless it belongs to a group
	classLater   // of groups that FIX 5.0 SP2 has, plain before
)

// group is a repeating group of a NewOrderSingle or of the standard header. Every entry of
// it begins with tag first.
type group struct {
	count, first uint16
	parent       uint8 // index of the group it is nested in
	members      []uint16
}

const nGroups = 15

// groups of FIX 4.2 and 4.4; index 0 is none.
var groups = [nGroups]group{
	1:  {count: 453, first: 448, members: []uint16{448, 447, 452}},
	2:  {count: 802, first: 523, parent: 1, members: []uint16{523, 803}},
	3:  {count: 78, first: 79, members: []uint16{79, 80, 661, 736, 467, 360}},
	4:  {count: 539, first: 524, parent: 3, members: []uint16{524, 525, 538}},
	5:  {count: 804, first: 545, parent: 4, members: []uint16{545, 805}},
	6:  {count: 386, first: 336, members: []uint16{336, 625}},
	7:  {count: 454, first: 455, members: []uint16{455, 456}},
	8:  {count: 711, first: 311, members: []uint16{311, 312, 309, 305, 462, 463, 310, 763, 313, 542, 241, 242, 243, 244, 245, 246, 256, 595, 592, 593, 594, 247, 316, 941, 317, 436, 435, 308, 306, 362, 307, 364, 877, 878, 318, 879, 810, 882, 883, 884, 885, 886}},
	9:  {count: 457, first: 458, parent: 8, members: []uint16{458, 459}},
	10: {count: 887, first: 888, parent: 8, members: []uint16{888, 889}},
	11: {count: 864, first: 865, members: []uint16{865, 866, 867, 868}},
	12: {count: 232, first: 233, members: []uint16{233, 234}},
	13: {count: 627, first: 628, members: []uint16{628, 629, 630}},
	14: {count: 382, first: 375, members: []uint16{375, 337, 437, 438}},
}

// dataPairs are pairs of length field and data field.
var dataPairs = [][2]uint16{
	{90, 91}, {93, 89}, {95, 96}, {212, 213}, {348, 349}, {350, 351}, {352, 353}, {354, 355}, {356, 357}, {358, 359},
	{360, 361}, {362, 363}, {364, 365}, {445, 446}, {618, 619}, {621, 622},
}

// required in every order: the standard header and the required fields of D. A cancel has
// no OrdType (40), see finish.
var required = [...]uint16{49, 56, 34, 52, 11, 55, 54, 60, 40}

// requiredMask has the bits of required: all of them are below 64.
var requiredMask = makeRequiredMask()

func makeRequiredMask() (m uint64) {
	for _, tag := range required {
		m |= 1 << tag
	}
	return m
}

var (
	classes = makeClasses()
	groupOf = makeGroupOf()
)

func makeClasses() (c [tableSize]uint8) {
	set := func(class uint8, tags ...uint16) {
		for _, t := range tags {
			c[t] = class
		}
	}
	set(classEnvelope, 8, 9, 10, 35)
	set(classClOrdID, 11)
	set(classSymbol, 55)
	set(classAccount, 1)
	set(classEnum, 54, 40, 59, 21)
	set(classQty, 38, 152, 110, 111, 210)
	set(classPrice, 44, 99, 140, 211)
	set(classInt, 34, 369)
	set(classBool, 43, 97, 114, 121, 377)
	set(classTime, 52, 60, 126, 168, 122)
	for _, g := range groups[1:] {
		set(classMember, g.members...)
	}
	for _, g := range groups[1:] {
		if set(classCount, g.count); g.parent != 0 {
			set(classNestedCount, g.count)
		}
	}
	for tag := range c {
		if laterOf[tag] != 0 {
			set(classLater, uint16(tag))
		}
	}
	for _, p := range dataPairs {
		set(classDataLen, p[0])
		set(classData, p[1])
	}
	return c
}

func makeGroupOf() (of [tableSize]uint8) {
	for i, g := range groups {
		for _, t := range g.members {
			of[t] = uint8(i)
		}
	}
	return of
}

func groupByCount(tag uint32) int {
	for i := range groups {
		if uint32(groups[i].count) == tag {
			return i
		}
	}
	return 0
}

func dataTag(lenTag uint32) uint32 {
	for _, p := range dataPairs {
		if uint32(p[0]) == lenTag {
			return uint32(p[1])
		}
	}
	return 0
}

// IsStructure reports whether a tag decides how others are read: length and bytes of data
// fields, counts and members of repeating groups.
func IsStructure(tag uint32) bool {
	if tag >= tableSize {
		return false
	}
	switch classes[tag] {
	case classData, classDataLen, classCount, classNestedCount, classMember:
		return true
	}
	return false
}

// tagNames is for error texts only.
var tagNames = map[uint32]string{
	1: "Account", 8: "BeginString", 9: "BodyLength", 10: "CheckSum", 11: "ClOrdID", 21: "HandlInst", 34: "MsgSeqNum",
	35: "MsgType", 38: "OrderQty", 40: "OrdType", 41: "OrigClOrdID", 44: "Price", 49: "SenderCompID", 52: "SendingTime", 54: "Side",
	55: "Symbol", 56: "TargetCompID", 59: "TimeInForce", 60: "TransactTime", 95: "RawDataLength", 96: "RawData",
	99: "StopPx", 126: "ExpireTime", 152: "CashOrderQty", 354: "EncodedTextLen", 355: "EncodedText", 453: "NoPartyIDs",
	448: "PartyID", 78: "NoAllocs", 79: "AllocAccount", 386: "NoTradingSessions", 336: "TradingSessionID", 114: "LocateReqd",
	110: "MinQty", 111: "MaxFloor", 58: "Text", 957: "NoStrategyParameters", 1018: "NoInstrumentParties", 1128: "ApplVerID",
	1184: "SecurityXMLLen", 1185: "SecurityXML",
}
