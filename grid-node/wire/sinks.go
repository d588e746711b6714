package wire

// The files of a node's sink.
const (
	TypeListSinks Type = 0x64
	TypeSinkFiles Type = 0x65
	TypeReadSink  Type = 0x66
	TypeSinkChunk Type = 0x67
)

var sinkFrames = []Frame{
	{Type: TypeListSinks, Name: "ListSinks", From: FromClient, Needs: MayAdmin, codec: codecFor(TypeListSinks, DecodeRequest, appendRequestOn),
		Example: &Request{ReqID: 14}},
	{Type: TypeSinkFiles, Name: "SinkFiles", From: FromNode, codec: codecOn(DecodeSinkFiles, AppendSinkFiles),
		Example: &SinkFiles{ReqID: 14, Total: 2, Files: []SinkFile{{Size: 4096, SetAside: true, Name: []byte("g-p33.log.20261121T064229.852000000Z")}, {Size: 300, Name: []byte("g-p33.log")}}}},
	{Type: TypeReadSink, Name: "ReadSink", From: FromClient, Needs: MayAdmin, codec: codecOn(DecodeReadSink, AppendReadSink),
		Example: &ReadSink{ReqID: 15, Offset: 65536, MaxBytes: 65536, Name: []byte("g-p33.log")}},
	{Type: TypeSinkChunk, Name: "SinkChunk", From: FromNode, codec: codecOn(DecodeSinkChunk, AppendSinkChunk),
		Example: &SinkChunk{ReqID: 15, Offset: 65536, Size: 65540, File: 77, Bytes: []byte("17\t3\t")}},
}

func appendRequestOn(dst []byte, t Type, m *Request) []byte {
	return AppendRequestOn(dst, t, examplePartition, m)
}

func (m *ReadSink) request() (uint64, uint32) { return m.ReqID, 0 }

// MaxSinkFiles bounds the files of one SinkFiles frame.
const MaxSinkFiles = 1024

// MaxSinkBytes bounds the bytes of one SinkChunk: it is read off the loop, but the loop
// copies it, which must not delay orders.
const MaxSinkBytes = 64 << 10

// ListSinks requests the files of a node's write-behind sink of a partition. It is a
// Request.

// SinkFiles answers a ListSinks.
type SinkFiles struct {
	ReqID uint64
	Total uint32 // number of files; the latest MaxSinkFiles are listed
	Files []SinkFile
}

// SinkFile is one file of a sink.
type SinkFile struct {
	Size     uint64 // bytes it has now
	SetAside bool   // belongs to an earlier history, no longer written
	Name     []byte // names it in ReadSink
}

const (
	sinkFilesFixed = HeaderSize + 16
	sinkFileFixed  = 9
)

// AppendSinkFiles appends a SinkFiles frame.
func AppendSinkFiles(dst []byte, p PartitionID, m *SinkFiles) []byte {
	files := m.Files[:min(len(m.Files), MaxSinkFiles)]
	size := sinkFilesFixed
	for i := range files {
		size += sinkFileFixed + size8(files[i].Name)
	}
	dst, f := begin(dst, TypeSinkFiles, 0, p, size)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint32(f[16:], m.Total)
	le.PutUint32(f[20:], uint32(len(files)))
	b := f[sinkFilesFixed:]
	for i := range files {
		le.PutUint64(b, files[i].Size)
		b[8] = 0
		if files[i].SetAside {
			b[8] = 1
		}
		b = putString8(b[sinkFileFixed:], files[i].Name)
	}
	return dst
}

// DecodeSinkFiles decodes a SinkFiles frame. m.Files is reused.
func DecodeSinkFiles(f []byte, m *SinkFiles) (err error) {
	if err := open(f, TypeSinkFiles, sinkFilesFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Total = le.Uint64(f[8:]), le.Uint32(f[16:])
	n := le.Uint32(f[20:])
	if n > MaxSinkFiles || n > m.Total {
		return &FrameError{Type: TypeSinkFiles, Field: "nFiles", Value: uint64(n), Allowed: "0..1024, at most total"}
	}
	m.Files = m.Files[:0]
	b := f[sinkFilesFixed:]
	for range n {
		if len(b) < sinkFileFixed {
			return &FrameError{Type: TypeSinkFiles, Field: "files", Value: uint64(len(b)), Allowed: "9 bytes and the name"}
		}
		file := SinkFile{Size: le.Uint64(b), SetAside: b[8]&1 != 0}
		if file.Name, b, err = cutString8(b[sinkFileFixed:], TypeSinkFiles, "name"); err != nil {
			return err
		}
		m.Files = append(m.Files, file)
	}
	return done(b, TypeSinkFiles)
}

// ReadSink requests a piece of a file of a node's sink.
type ReadSink struct {
	ReqID    uint64
	Offset   uint64 // of the first byte
	MaxBytes uint32 // 0 and anything over MaxSinkBytes mean MaxSinkBytes
	Name     []byte // as in SinkFiles; empty: the current file
}

const readSinkFixed = HeaderSize + 20

// AppendReadSink appends a ReadSink frame.
func AppendReadSink(dst []byte, p PartitionID, m *ReadSink) []byte {
	dst, f := begin(dst, TypeReadSink, 0, p, readSinkFixed+size8(m.Name))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Offset)
	le.PutUint32(f[24:], m.MaxBytes)
	putString8(f[readSinkFixed:], m.Name)
	return dst
}

// DecodeReadSink decodes a ReadSink frame.
func DecodeReadSink(f []byte, m *ReadSink) (err error) {
	if err := open(f, TypeReadSink, readSinkFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Offset, m.MaxBytes = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint32(f[24:])
	if m.Offset > maxOffset {
		return &FrameError{Type: TypeReadSink, Field: "offset", Value: m.Offset, Allowed: "0..9223372036854775807"}
	}
	b := f[readSinkFixed:]
	if m.Name, b, err = cutString8(b, TypeReadSink, "name"); err != nil {
		return err
	}
	return done(b, TypeReadSink)
}

// maxOffset is the limit of operating systems.
const maxOffset = 1<<63 - 1

// SinkChunk answers a ReadSink with bytes of the file. None: the file ended at or before
// Offset at that time.
type SinkChunk struct {
	ReqID  uint64
	Offset uint64 // as requested
	Size   uint64 // of the file when it was read
	File   uint64 // identifies the file behind the name; 0 if unknown
	Bytes  []byte // at most MaxSinkBytes
}

// SinkChunkFixed is the size of a SinkChunk frame without its bytes.
const SinkChunkFixed = HeaderSize + 32

// AppendSinkChunk appends a SinkChunk frame.
func AppendSinkChunk(dst []byte, p PartitionID, m *SinkChunk) []byte {
	b := clip(m.Bytes, MaxSinkBytes)
	dst, f := begin(dst, TypeSinkChunk, 0, p, SinkChunkFixed+len(b))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Offset)
	le.PutUint64(f[24:], m.Size)
	le.PutUint64(f[32:], m.File)
	copy(f[SinkChunkFixed:], b)
	return dst
}

// DecodeSinkChunk decodes a SinkChunk frame.
func DecodeSinkChunk(f []byte, m *SinkChunk) error {
	if err := open(f, TypeSinkChunk, SinkChunkFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Offset, m.Size, m.File = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint64(f[24:]), le.Uint64(f[32:])
	m.Bytes = f[SinkChunkFixed:]
	if len(m.Bytes) > MaxSinkBytes {
		return &FrameError{Type: TypeSinkChunk, Field: "bytes", Value: uint64(len(m.Bytes)), Allowed: "at most 65536"}
	}
	return nil
}
