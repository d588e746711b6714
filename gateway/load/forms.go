package load

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// forms are how a shape has values whose types the source knows, so that Parquet and a database, which write them in
// their own ways, have the same rows. Times are RFC 3339 in UTC, numbers decimal.
type forms struct {
	date    string // layout
	yes, no string
}

func (f *forms) bool(b bool) string {
	if b {
		return f.yes
	}
	return f.no
}

// ofParquet is a value of a Parquet column; empty for null.
func (f *forms) ofParquet(v parquet.Value, t parquet.Type) string {
	if v.IsNull() {
		return ""
	}
	if l := t.LogicalType(); l != nil {
		switch l := l.Value.(type) {
		case *format.TimestampType:
			return moment(v.Int64(), l.Unit.String()).Format(time.RFC3339Nano)
		case *format.TimeType:
			return moment(v.Int64(), l.Unit.String()).Format("15:04:05.999999999")
		case *format.DateType:
			return time.Unix(int64(v.Int32())*24*3600, 0).UTC().Format(f.date)
		case *format.DecimalType:
			return decimal(v, int(l.Scale))
		case *format.UUIDType:
			b := v.ByteArray()
			return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
		}
	}
	switch v.Kind() {
	case parquet.Boolean:
		return f.bool(v.Boolean())
	case parquet.Int32, parquet.Int64:
		return strconv.FormatInt(v.Int64(), 10)
	case parquet.Float:
		return strconv.FormatFloat(float64(v.Float()), 'f', -1, 32)
	case parquet.Double:
		return strconv.FormatFloat(v.Double(), 'f', -1, 64)
	}
	return string(v.ByteArray())
}

// ofSQL makes the form of a type of PostgreSQL from the text that COPY writes; nil: it is the text. What Parquet cannot have,
// such as infinity or a year of five digits, stays as it stands.
func (f *forms) ofSQL(oid uint32) func(text string) string {
	switch oid {
	case pgtype.BoolOID:
		return func(text string) string {
			if text == "t" || text == "f" {
				return f.bool(text == "t")
			}
			return text
		}
	case pgtype.DateOID:
		return again("2006-01-02", f.date)
	case pgtype.TimestampOID:
		return again("2006-01-02 15:04:05.999999999", time.RFC3339Nano)
	case pgtype.TimestamptzOID:
		return again("2006-01-02 15:04:05.999999999Z07", time.RFC3339Nano)
	case pgtype.Float4OID:
		return plain(32)
	case pgtype.Float8OID:
		return plain(64)
	case pgtype.ByteaOID:
		return func(text string) string {
			b, err := hex.DecodeString(strings.TrimPrefix(text, `\x`))
			if err != nil {
				return text
			}
			return string(b)
		}
	}
	return nil
}

// again is a time in another layout, in UTC.
func again(layout, form string) func(string) string {
	return func(text string) string {
		t, err := time.Parse(layout, text)
		if err != nil {
			return text
		}
		return t.UTC().Format(form)
	}
}

// plain is a number without an exponent.
func plain(bits int) func(string) string {
	return func(text string) string {
		n, err := strconv.ParseFloat(text, bits)
		if err != nil {
			return text
		}
		return strconv.FormatFloat(n, 'f', -1, bits)
	}
}
