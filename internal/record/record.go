// Package record frames the records of an append-only log, so that a log which
// ends in the middle of a write is read up to there and no further.
//
// A record is its length and the CRC-32C of that length and its bytes, four
// bytes each, little-endian, and then the bytes.
package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

const (
	// Max is the number of bytes that a record may have.
	Max = 16 << 20

	header = 8
)

// ErrCorrupt is matched by the error for a log that was not cut short but
// changed: a record that is there whole and is not what was written.
var ErrCorrupt = errors.New("record: corrupt log")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Append appends a record with the given bytes to log. It panics if there are
// more than Max.
func Append(log, data []byte) []byte {
	if len(data) > Max {
		panic(fmt.Sprintf("record: Append of %d bytes", len(data)))
	}
	at := len(log)
	log = binary.LittleEndian.AppendUint32(log, uint32(len(data)))
	log = binary.LittleEndian.AppendUint32(log, sum(log[at:at+4], data))
	return append(log, data...)
}

// sum returns the checksum of a record. The length is part of it: a run of
// zeros, which a file system may leave, is then no record.
func sum(length, data []byte) uint32 {
	return crc32.Update(crc32.Checksum(length, castagnoli), castagnoli, data)
}

// Split returns the records of a log, which share its memory, and the length of
// the log up to the end of the last. What comes after that is the beginning of
// a record whose write was cut short. If a record is there whole and is wrong, or
// claims to be longer than the log while whole ones come after its beginning, the
// error matches ErrCorrupt and the records before it are returned.
func Split(log []byte) (records [][]byte, end int, err error) {
	for rest := log; ; rest = log[end:] {
		if len(rest) < header {
			return records, end, nil
		}
		n := int(binary.LittleEndian.Uint32(rest))
		if n > Max {
			return records, end, fmt.Errorf("%w at offset %d: length %d", ErrCorrupt, end, n)
		}
		if len(rest) < header+n {
			if resumes(rest[1:]) {
				return records, end, fmt.Errorf("%w at offset %d: length %d, and the log goes on", ErrCorrupt, end, n)
			}
			return records, end, nil
		}
		data := rest[header : header+n : header+n]
		if binary.LittleEndian.Uint32(rest[4:]) != sum(rest[:4], data) {
			return records, end, fmt.Errorf("%w at offset %d: checksum", ErrCorrupt, end)
		}
		records = append(records, data)
		end += header + n
	}
}

// resumes reports whether a whole record begins somewhere in log. Few places of
// one look like the length of another.
func resumes(log []byte) bool {
	for ; len(log) > header; log = log[1:] {
		n := int(binary.LittleEndian.Uint32(log))
		if n > 0 && n <= len(log)-header && binary.LittleEndian.Uint32(log[4:]) == sum(log[:4], log[header:header+n]) {
			return true
		}
	}
	return false
}
