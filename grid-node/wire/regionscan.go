package wire

// MaxRegionPageBytes is the maximum size of the rows of a RegionPage, unless its only row is
// longer.
const MaxRegionPageBytes = 256 << 10

// RegionScan reads a page of the entries of a region in this partition, in the order of
// their keys' bytes. A page is read at once; changes may come between two.
type RegionScan struct {
	ReqID    uint64
	Mode     uint8
	Behind   bool   // without From itself
	MaxBytes uint32 // of rows; 0 and anything over MaxRegionPageBytes mean that
	Region   []byte
	From     []byte // the first key; empty: the first of all
	Prefix   []byte // only keys that begin so
}

const regionScanFixed = HeaderSize + 24

// AppendRegionScan appends a RegionScan frame.
func AppendRegionScan(dst []byte, p PartitionID, m *RegionScan) []byte {
	region, from, prefix := clip(m.Region, MaxString), clip(m.From, MaxRegionPair), clip(m.Prefix, MaxRegionPair)
	dst, f := begin(dst, TypeRegionScan, 0, p, regionScanFixed+len(region)+len(from)+len(prefix))
	le.PutUint64(f[8:], m.ReqID)
	f[16], f[17], f[18], f[19] = m.Mode, uint8(len(region)), 0, 0
	if m.Behind {
		f[18] = 1
	}
	le.PutUint32(f[20:], m.MaxBytes)
	le.PutUint32(f[24:], uint32(len(from)))
	le.PutUint32(f[28:], uint32(len(prefix)))
	b := f[regionScanFixed:]
	b = b[copy(b, region):]
	copy(b[copy(b, from):], prefix)
	return dst
}

// DecodeRegionScan decodes a RegionScan frame.
func DecodeRegionScan(f []byte, m *RegionScan) error {
	if err := open(f, TypeRegionScan, regionScanFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Mode, m.Behind, m.MaxBytes = le.Uint64(f[8:]), f[16], f[18] == 1, le.Uint32(f[20:])
	var err error
	if m.Region, m.From, m.Prefix, err = regionKey(TypeRegionScan, f[regionScanFixed:], int(f[17]), le.Uint32(f[24:])); err != nil {
		return err
	}
	if n := le.Uint32(f[28:]); uint64(n) != uint64(len(m.Prefix)) {
		return &FrameError{Type: TypeRegionScan, Field: "prefixLen", Value: uint64(n), Allowed: "the bytes that follow"}
	}
	if f[18] > 1 {
		return &FrameError{Type: TypeRegionScan, Field: "behind", Value: uint64(f[18]), Allowed: "0, 1"}
	}
	if len(m.From) > MaxRegionPair || len(m.Prefix) > MaxRegionPair {
		return &FrameError{Type: TypeRegionScan, Field: "fromLen", Value: uint64(max(len(m.From), len(m.Prefix))), Allowed: "0..65440, the prefix too"}
	}
	return checkMode(TypeRegionScan, m.Mode)
}

// RegionPage answers a RegionScan.
type RegionPage struct {
	ReqID     uint64
	Epoch     uint64
	CommitSeq uint64
	Next      []byte // where the next page goes on, behind this key; empty: there is none
	Rows      []byte // see NextRegionRow
}

const regionPageFixed = HeaderSize + 32

// AppendRegionPage appends a RegionPage frame.
func AppendRegionPage(dst []byte, p PartitionID, m *RegionPage) []byte {
	dst, f := begin(dst, TypeRegionPage, 0, p, regionPageFixed+len(m.Next)+len(m.Rows))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Epoch)
	le.PutUint64(f[24:], m.CommitSeq)
	le.PutUint32(f[32:], uint32(len(m.Next)))
	le.PutUint32(f[36:], uint32(len(m.Rows)))
	b := f[regionPageFixed:]
	copy(b[copy(b, m.Next):], m.Rows)
	return dst
}

// DecodeRegionPage decodes a RegionPage frame.
func DecodeRegionPage(f []byte, m *RegionPage) error {
	if err := open(f, TypeRegionPage, regionPageFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Epoch, m.CommitSeq = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint64(f[24:])
	n, b := uint64(le.Uint32(f[32:])), f[regionPageFixed:]
	if n > uint64(len(b)) || uint64(le.Uint32(f[36:])) != uint64(len(b))-n {
		return &FrameError{Type: TypeRegionPage, Field: "nextLen", Value: n, Allowed: "with the rows the bytes that follow"}
	}
	m.Next, m.Rows = b[:n:n], b[n:]
	for rest := m.Rows; len(rest) > 0; {
		var row RegionRow
		var err error
		if rest, err = NextRegionRow(rest, &row); err != nil {
			return err
		}
	}
	return nil
}

// RegionRow is an entry of a region.
type RegionRow struct {
	Version  uint64
	ExpireNs int64
	Key      []byte
	Value    []byte
}

// RegionRowFixed is the size of a row without key and value: u64 version, i64 expireNs, u32
// bytes of the key, u32 bytes of the value.
const RegionRowFixed = 24

// AppendRegionRow appends a row of a RegionPage.
func AppendRegionRow(dst []byte, r *RegionRow) []byte {
	dst = le.AppendUint64(le.AppendUint64(dst, r.Version), uint64(r.ExpireNs))
	dst = le.AppendUint32(le.AppendUint32(dst, uint32(len(r.Key))), uint32(len(r.Value)))
	return append(append(dst, r.Key...), r.Value...)
}

// NextRegionRow decodes the first of several rows and returns the bytes after it.
func NextRegionRow(b []byte, r *RegionRow) (rest []byte, err error) {
	if len(b) < RegionRowFixed {
		return nil, &FrameError{Type: TypeRegionPage, Field: "rows", Value: uint64(len(b)), Allowed: "24 bytes, a key and a value each"}
	}
	r.Version, r.ExpireNs = le.Uint64(b), int64(le.Uint64(b[8:]))
	key, value := uint64(le.Uint32(b[16:])), uint64(le.Uint32(b[20:]))
	if b = b[RegionRowFixed:]; key+value > uint64(len(b)) {
		return nil, &FrameError{Type: TypeRegionPage, Field: "keyLen", Value: key, Allowed: "with the value no more than the bytes that follow"}
	}
	r.Key, r.Value = b[:key:key], b[key:key+value:key+value]
	return b[key+value:], nil
}

// RegionList asks for the regions of a partition.
type RegionList struct{ ReqID uint64 }

// AppendRegionList appends a RegionList frame.
func AppendRegionList(dst []byte, p PartitionID, m *RegionList) []byte {
	dst, f := begin(dst, TypeRegionList, 0, p, HeaderSize+8)
	le.PutUint64(f[8:], m.ReqID)
	return dst
}

// DecodeRegionList decodes a RegionList frame.
func DecodeRegionList(f []byte, m *RegionList) error {
	if err := open(f, TypeRegionList, HeaderSize+8, true); err != nil {
		return err
	}
	m.ReqID = le.Uint64(f[8:])
	return nil
}

// RegionListed answers a RegionList, from the state of the replica that was asked.
type RegionListed struct {
	ReqID       uint64
	Used, Limit uint64 // bytes, of all regions of the partition
	Rows        []byte // see NextRegionInfo
}

const regionListedFixed = HeaderSize + 32

// AppendRegionListed appends a RegionListed frame.
func AppendRegionListed(dst []byte, p PartitionID, m *RegionListed) []byte {
	dst, f := begin(dst, TypeRegionListed, 0, p, regionListedFixed+len(m.Rows))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Used)
	le.PutUint64(f[24:], m.Limit)
	le.PutUint64(f[32:], uint64(len(m.Rows)))
	copy(f[regionListedFixed:], m.Rows)
	return dst
}

// DecodeRegionListed decodes a RegionListed frame.
func DecodeRegionListed(f []byte, m *RegionListed) error {
	if err := open(f, TypeRegionListed, regionListedFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Used, m.Limit, m.Rows = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint64(f[24:]), f[regionListedFixed:]
	if n := le.Uint64(f[32:]); n != uint64(len(m.Rows)) {
		return &FrameError{Type: TypeRegionListed, Field: "rowsLen", Value: n, Allowed: "the bytes that follow"}
	}
	for rest := m.Rows; len(rest) > 0; {
		var row RegionInfo
		var err error
		if rest, err = NextRegionInfo(rest, &row); err != nil {
			return err
		}
	}
	return nil
}

// RegionInfo is a region in one partition.
type RegionInfo struct {
	Entries, Bytes, MaxBytes uint64
	LifeNs                   int64
	Name                     []byte
}

const regionInfoFixed = 33

// AppendRegionInfo appends a row of a RegionListed: u64 entries, bytes and maxBytes, i64
// lifeNs, u8 bytes of the name, the name.
func AppendRegionInfo(dst []byte, r *RegionInfo) []byte {
	for _, v := range [...]uint64{r.Entries, r.Bytes, r.MaxBytes, uint64(r.LifeNs)} {
		dst = le.AppendUint64(dst, v)
	}
	name := clip(r.Name, MaxString)
	return append(append(dst, uint8(len(name))), name...)
}

// NextRegionInfo decodes the first of several rows and returns the bytes after it.
func NextRegionInfo(b []byte, r *RegionInfo) (rest []byte, err error) {
	if len(b) < regionInfoFixed || len(b) < regionInfoFixed+int(b[32]) {
		return nil, &FrameError{Type: TypeRegionListed, Field: "rows", Value: uint64(len(b)), Allowed: "33 bytes and a name each"}
	}
	r.Entries, r.Bytes, r.MaxBytes, r.LifeNs = le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:]), int64(le.Uint64(b[24:]))
	n := regionInfoFixed + int(b[32])
	r.Name = b[regionInfoFixed:n:n]
	return b[n:], nil
}
